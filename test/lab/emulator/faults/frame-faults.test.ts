import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TransportStep } from "../../../../src/lab/emulator/faults/faulty-transport.ts";
import { frameFaultSteps, withReservedCrc } from "../../../../src/lab/emulator/faults/frame-faults.ts";
import { parseFaultChance, parseWireFault, wireFaultKinds } from "../../../../src/lab/emulator/faults/wire-fault.ts";
import type { Crc16 } from "../../../../src/wire/crc16.ts";
import type { Decoded, Framing } from "../../../../src/wire/decoded.ts";
import { createDecoder } from "../../../../src/wire/decoder.ts";
import { encodeLength } from "../../../../src/wire/length.ts";
import { encodeStx } from "../../../../src/wire/stx.ts";

const framings = ["length", "stx"] as const;
const readings = ["arc", "umts"] as const;

const frameOf = (framing: Framing, payload: Buffer, crc16: Crc16 = "arc"): Buffer =>
  Buffer.concat(framing === "stx" ? encodeStx([payload]) : encodeLength(crc16, [payload]));

/** What a reader makes of bytes on a line of its framing alone. */
function read(framing: Framing, bytes: Buffer, crc16: Crc16 = "arc"): readonly Decoded[] {
  const decoder = createDecoder({ stx: framing === "stx", length: framing === "length", crc16, payloadBytesMax: 1 << 20 });
  return [...decoder.push(bytes), ...decoder.reset()];
}

const kinds = (decoded: readonly Decoded[]) => decoded.map((item) => (item.kind === "frame" ? "frame" : item.reason));
const bytesIn = (steps: readonly TransportStep[]) =>
  Buffer.concat(steps.flatMap((step) => ("bytes" in step ? [step.bytes] : [])));
const json = fc.json({ depthSize: "small" }).map((text) => Buffer.from(text));
const cases = fc.record({ framing: fc.constantFrom(...framings), crc16: fc.constantFrom(...readings), payload: json });

/** Checks a property of what becomes of any answer's frame. */
function everyFrame(check: (frame: Buffer, framing: Framing, crc16: Crc16, payload: Buffer) => void): void {
  fc.assert(
    fc.property(cases, ({ framing, crc16, payload }) => check(frameOf(framing, payload, crc16), framing, crc16, payload)),
    { numRuns: 300 },
  );
}

test("frameFaultSteps(no-answer) does nothing, frameFaultSteps(unplug) pulls the cable, frameFaultSteps(after-next) holds the whole frame back", () => {
  everyFrame((frame) => {
    assert.deepEqual(frameFaultSteps({ kind: "no-answer" }, frame), []);
    assert.deepEqual(frameFaultSteps({ kind: "unplug", ms: 70 }, frame), [{ unplugMs: 70 }]);
    assert.deepEqual(frameFaultSteps({ kind: "after-next" }, frame), [{ hold: frame }]);
  });
});

test("frameFaultSteps(corrupt) changes the payload, so that a reader finds one whole frame with a wrong checksum", () => {
  everyFrame((frame, framing, crc16) => {
    const before = Buffer.from(frame);
    const steps = frameFaultSteps({ kind: "corrupt" }, frame);
    assert.deepEqual(frame, before, "the frame itself must stay");
    const bytes = bytesIn(steps);
    assert.equal(bytes.length, frame.length);
    const decoded = read(framing, bytes, crc16);
    assert.deepEqual(kinds(decoded), ["checksum"]);
    const tail = framing === "stx" ? 5 : 2;
    assert.deepEqual(bytes.subarray(-tail), frame.subarray(-tail));
    if (framing === "stx") assert.equal(bytes.subarray(1, -tail).filter((byte) => byte === 2 || byte === 3).length, 0);
  });
});

test("frameFaultSteps(truncated) writes the first half and no more", () => {
  everyFrame((frame, framing, crc16) => {
    const bytes = bytesIn(frameFaultSteps({ kind: "truncated" }, frame));
    assert.deepEqual(bytes, frame.subarray(0, frame.length >> 1));
    assert.equal(kinds(read(framing, bytes, crc16)).includes("frame"), false);
  });
});

test("frameFaultSteps(wrong-length) announces more than comes, or leaves out the ETX", () => {
  everyFrame((frame, framing, crc16) => {
    const bytes = bytesIn(frameFaultSteps({ kind: "wrong-length" }, frame));
    assert.deepEqual(kinds(read(framing, bytes, crc16)), ["reset"]);
    if (framing === "stx") assert.deepEqual(bytes, frame.subarray(0, -1));
    else assert.equal(bytes.readUInt32BE(0), frame.readUInt32BE(0) + 16);
    assert.deepEqual(bytes.subarray(4), framing === "stx" ? frame.subarray(4, -1) : frame.subarray(4));
  });
});

test("frameFaultSteps(pieces) writes the whole frame with pauses, cut within its header and its CRC", () => {
  everyFrame((frame, framing) => {
    const steps = frameFaultSteps({ kind: "pieces", ms: 30 }, frame);
    assert.deepEqual(bytesIn(steps), frame);
    const sizes: number[] = [];
    steps.forEach((step, index) => {
      if (index % 2 === 1) assert.deepEqual(step, { waitMs: 30 });
      else if ("bytes" in step) sizes.push(step.bytes.length);
    });
    assert.equal(sizes.length * 2 - 1, steps.length);
    assert.ok(sizes.every((size) => size > 0));
    assert.equal(sizes[0], framing === "stx" ? 1 : 2);
    assert.equal(sizes.at(-1), framing === "stx" ? 3 : 1);
    if (frame.length > 20) assert.equal(sizes.length, 5);
  });
});

test("frameFaultSteps(noise) writes AT+CPIN? and a silence before the frame, and frameFaultSteps(twice) the frame two times", () => {
  everyFrame((frame) => {
    assert.deepEqual(frameFaultSteps({ kind: "noise" }, frame), [
      { bytes: Buffer.from("AT+CPIN?\r\n") },
      { waitMs: 200 },
      { bytes: frame },
    ]);
    assert.deepEqual(frameFaultSteps({ kind: "twice", ms: 0 }, frame), [{ bytes: Buffer.concat([frame, frame]) }]);
    assert.deepEqual(frameFaultSteps({ kind: "twice", ms: 9 }, frame), [{ bytes: frame }, { waitMs: 9 }, { bytes: frame }]);
  });
});

test("withReservedCrc() gives the same JSON in a good frame whose checksum holds 02 and 03 as far as it can", () => {
  const both = { length: 0, stx: 0 };
  fc.assert(
    fc.property(cases, ({ framing, crc16, payload }) => {
      const changed = withReservedCrc(payload, framing, crc16);
      assert.deepEqual(JSON.parse(changed.toString()), JSON.parse(payload.toString()));
      assert.deepEqual(changed.subarray(0, payload.length), payload);
      const frame = frameOf(framing, changed, crc16);
      assert.deepEqual(kinds(read(framing, frame, crc16)), ["frame"]);
      const sum = framing === "stx" ? frame.subarray(-5, -1) : frame.subarray(-2);
      // Fiscal frames write 03 as 20, so 20 is what is left of it.
      const two = sum.includes(0x02);
      const three = sum.includes(framing === "stx" ? 0x20 : 0x03);
      assert.ok(two || three);
      if (two && three) both[framing]++;
    }),
    { numRuns: 60, seed: 7 },
  );
  assert.ok(both.length > 15 && both.stx > 15, JSON.stringify(both));
});

test("parseWireFault() reads every kind, with the milliseconds that it has or may be given", () => {
  assert.deepEqual(
    wireFaultKinds.map((kind) => parseWireFault(kind)),
    [
      { kind: "no-answer" },
      { kind: "late", ms: 5_000 },
      { kind: "after-next" },
      { kind: "corrupt" },
      { kind: "truncated" },
      { kind: "wrong-length" },
      { kind: "pieces", ms: 300 },
      { kind: "noise" },
      { kind: "twice", ms: 0 },
      { kind: "unplug", ms: 2_000 },
      { kind: "reserved-crc" },
    ],
  );
  assert.deepEqual(parseWireFault("late:1"), { kind: "late", ms: 1 });
  assert.deepEqual(parseWireFault("unplug:600000"), { kind: "unplug", ms: 600_000 });
  assert.deepEqual(parseWireFault("twice:0"), { kind: "twice", ms: 0 });
  assert.deepEqual(parseWireFault("pieces:20"), { kind: "pieces", ms: 20 });
});

test("parseWireFault() says what is wrong and what is allowed", () => {
  const wrong = (text: string, message: RegExp) => assert.throws(() => parseWireFault(text), { name: "RangeError", message });
  wrong("", /^Cannot read the fault "": there is no fault of that name: use one of no-answer, late, after-next, /);
  wrong("toString", /no fault of that name/);
  wrong("Late", /no fault of that name/);
  wrong("corrupt:5", /^Cannot read the fault "corrupt:5": corrupt has no time: leave out the colon$/);
  wrong("corrupt:", /corrupt has no time/);
  for (const text of ["late:0", "late:", "late:x", "late:1.5", "late:-1", "late:1e3", "late:600001", "late:5:5", "late: 5"]) {
    wrong(text, /its time is not valid: use late alone \(5000 ms\), or late:<ms> with a whole number from 1 to 600000$/);
  }
});

test("parseFaultChance() reads a fault with its share, and says what is wrong with either", () => {
  assert.deepEqual(parseFaultChance("corrupt=0.05"), { fault: { kind: "corrupt" }, share: 0.05 });
  assert.deepEqual(parseFaultChance("late:5000=0.1"), { fault: { kind: "late", ms: 5_000 }, share: 0.1 });
  for (const share of [0, 1, 0.25]) assert.equal(parseFaultChance(`noise=${share}`).share, share);
  const wrong = (text: string, message: RegExp) => assert.throws(() => parseFaultChance(text), { name: "RangeError", message });
  wrong("corrupt", /^Cannot read the chance "corrupt": it has no share: write it as corrupt=0.05$/);
  for (const share of ["", "2", "1.5", "-0.1", "5%", "x", "1e-3", "0.1.2", "."])
    wrong(`corrupt=${share}`, /its share is not valid/);
  wrong("corupt=0.1", /no fault of that name/);
  wrong("=0.1", /no fault of that name/);
});
