import assert from "node:assert/strict";
import { test } from "node:test";
import { headerMs, payloadMsMin } from "../../src/config/limits.ts";
import { FrameReader } from "../../src/line/frame-reader.ts";
import { corruptQuietMs, payloadMsMax } from "../../src/line/limits.ts";
import type { Decoded, Framing } from "../../src/wire/decoded.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { frame } from "../support/fake-device.ts";
import { configOf } from "./lines.ts";

const slow = configOf({ baudRate: 1_200 });
const msPerByte = 10_000 / 1_200;

function hear(reader: FrameReader, bytes: Uint8Array, now: number): readonly Decoded[] {
  const decoded: Decoded[] = [];
  for (let from = 0; from < bytes.length; ) {
    const space = reader.space();
    const n = Math.min(space.length, bytes.length - from);
    space.set(bytes.subarray(from, from + n));
    decoded.push(...reader.heard(n, now));
    from += n;
  }
  return decoded;
}

/** The line pauses while a frame comes: nothing is found, and nothing given up. */
function pause(reader: FrameReader): void {
  assert.equal(reader.dueMs, reader.heardMs + corruptQuietMs);
  assert.deepEqual(reader.overdue(reader.dueMs), []);
}

const readerOf = (...framings: Framing[]) => new FrameReader(slow, new Set(framings));

test("FrameReader has nothing due while nothing is pending", () => {
  const reader = readerOf("length");
  assert.equal(reader.dueMs, Number.POSITIVE_INFINITY);
  assert.equal(hear(reader, frame("length", "{}"), 1_000).length, 1);
  assert.equal(reader.dueMs, Number.POSITIVE_INFINITY);
  assert.equal(reader.between, true);
});

test("FrameReader gives a header headerMs from its first byte", () => {
  const reader = readerOf("length");
  hear(reader, Buffer.from([0]), 1_000);
  hear(reader, Buffer.from([0]), 2_500);
  assert.equal(reader.begun, true);
  assert.equal(reader.dueMs, 1_000 + headerMs);
});

test("FrameReader gives a short payload payloadMsMin from the frame's first byte", () => {
  const reader = readerOf("length");
  const bytes = frame("length", '{"a":1}');
  hear(reader, bytes.subarray(0, 3), 1_000);
  hear(reader, bytes.subarray(3, 8), 2_000);
  pause(reader);
  assert.equal(reader.dueMs, 1_000 + payloadMsMin);
});

test("FrameReader gives a long payload twice its time on the wire, as long as it keeps coming", () => {
  const reader = readerOf("length");
  const bytes = frame("length", "x".repeat(2_000));
  hear(reader, bytes.subarray(0, 500), 1_000);
  pause(reader);
  assert.equal(reader.dueMs, 1_000 + payloadMsMin, "nothing may come for payloadMsMin");
  hear(reader, bytes.subarray(500, 1_900), 30_000);
  pause(reader);
  assert.equal(Math.round(reader.dueMs), Math.round(1_000 + 2 * bytes.length * msPerByte));
});

test("FrameReader gives no payload more than payloadMsMax, whatever its header says", () => {
  const reader = readerOf("length");
  hear(reader, Buffer.from("007f0000", "hex"), 1_000);
  for (let now = 2_000; now <= payloadMsMax; now += 4_000) hear(reader, Buffer.from("x"), now);
  pause(reader);
  assert.equal(reader.dueMs, 1_000 + payloadMsMax);
});

test("FrameReader of one that sends anew gives a payload no time for what a header only announces", () => {
  const reader = new FrameReader(slow, new Set<Framing>(["length"]), 8 * 1024 * 1024, true);
  hear(reader, Buffer.from("007f0000", "hex"), 1_000);
  for (let now = 2_000; now < 1_000 + payloadMsMin; now += 1_000) hear(reader, Buffer.from("x"), now);
  assert.equal(reader.dueMs, 1_000 + payloadMsMin);
  // What keeps coming at the wire's pace has its time.
  const bytes = 10_000;
  hear(reader, Buffer.alloc(bytes), 1_000 + bytes * msPerByte);
  assert.equal(reader.dueMs, reader.heardMs + payloadMsMin);
});

test("FrameReader looks for the next frame corruptQuietMs after the last byte of what is none", () => {
  const reader = readerOf("length");
  hear(reader, Buffer.from("AT\r"), 1_000);
  assert.equal(reader.begun, false);
  assert.equal(reader.between, false);
  hear(reader, Buffer.from("AT\r"), 1_070);
  assert.equal(reader.dueMs, 1_070 + corruptQuietMs);
  assertMapped(reader.reset(), [["noise", 6]], ({ reason, wireBytes }) => [reason, wireBytes]);
  assert.equal(reader.dueMs, Number.POSITIVE_INFINITY);
});

test("FrameReader gives a frame that begins behind another its own time", () => {
  const reader = readerOf("length");
  const [first, second] = [frame("length", '{"a":1}'), frame("length", '{"b":2}')];
  hear(reader, first.subarray(0, 6), 1_000);
  const decoded = hear(reader, Buffer.concat([first.subarray(6), second.subarray(0, 2)]), 3_500);
  assert.equal(decoded.length, 1);
  assert.equal(reader.dueMs, 3_500 + headerMs);
});

test("FrameReader tells STX and length frames apart, and reports a torn one at its reset", () => {
  const reader = readerOf("length", "stx");
  const kinds = hear(reader, Buffer.concat([frame("stx", "{}"), frame("length", "{}")]), 1_000);
  assertMapped(kinds, ["stx", "length"], (item) => (item.kind === "frame" ? item.framing : item.reason));
  hear(reader, frame("stx", '{"a":1}').subarray(0, 5), 2_000);
  assert.equal(reader.begun, true);
  assertMapped(reader.reset(), ["reset"], ({ reason }) => reason);
});

// --- pace, rest and burst

/** A frame of so many bytes on the wire. */
const wireOf = (bytes: number) => frame("length", "x".repeat(bytes - 6));

/** Gives a reader the next pieces of these bytes: how many, and when. */
function hearPieces(reader: FrameReader, bytes: Buffer, ...pieces: readonly (readonly [number, number])[]): void {
  let from = 0;
  for (const [n, now] of pieces) {
    hear(reader, bytes.subarray(from, from + n), now);
    from += n;
  }
}

/** Two pieces of 10 bytes, 10 ms apart: 2 bytes a millisecond. */
const twoPieces = [
  [10, 1_000],
  [10, 1_010],
] as const;

function restOf(bytes: number, pieces: readonly (readonly [number, number])[] = twoPieces): number {
  const reader = readerOf("length");
  hearPieces(reader, wireOf(bytes), ...pieces);
  return reader.restMs();
}

test("FrameReader.restMs() lets bytes lie until a piece and a millisecond before the frame could be whole", () => {
  assert.equal(restOf(70), 19);
  assert.equal(restOf(200), 32, "no longer than a frame may be late");
  assert.equal(restOf(38), 3);
  assert.equal(restOf(37), 0, "too short to be worth a wake-up");
});

test("FrameReader.restMs() is 0 where the frame's end or pace isn't known", () => {
  const reader = readerOf("length");
  assert.equal(reader.restMs(), 0);
  assert.equal(restOf(70, [[10, 1_000]]), 0);
  const inHeader = [
    [1, 1_000],
    [1, 1_010],
  ] as const;
  assert.equal(restOf(70, inHeader), 0);
  const secondAt = (ms: number) => restOf(230, [twoPieces[0], [10, ms]]);
  assert.equal(secondAt(1_000.5), 0, "what came at once has no pace");
  assert.equal(secondAt(1_001), 9);
});

test("FrameReader.restMs() lets no more gather than half of what the kernel holds, as fast as the wire could bring it", () => {
  const fast = [
    [1_025, 1_000],
    [1_024, 1_016],
  ] as const;
  assert.equal(restOf(10_000, fast), 15);
  const reader = new FrameReader(configOf({ baudRate: 1_000_000 }), new Set<Framing>(["length"]));
  hearPieces(reader, wireOf(400), ...twoPieces);
  assert.equal(reader.restMs(), 20);
});

test("FrameReader.restMs() is 0 for the rest of a frame that once filled the kernel's buffer, and not for the next frame", () => {
  const slowly = (first: number, reader = readerOf("length")) => {
    hearPieces(reader, wireOf(20_000), [first, 1_000], [1_000, 1_010]);
    return reader.restMs();
  };
  assert.equal(slowly(3_071), 5);
  const reader = readerOf("length");
  assert.equal(slowly(3_072, reader), 0);
  hear(reader, wireOf(20_000).subarray(4_072), 11_000);
  assert.equal(reader.between, true);
  hearPieces(reader, wireOf(70), [10, 12_000], [10, 12_010]);
  assert.equal(reader.restMs(), 19);
});

test("FrameReader.restMs() goes by the faster of this frame's pace and the last one's", () => {
  const second = (...pieces: readonly (readonly [number, number])[]) => {
    const reader = readerOf("length");
    hearPieces(reader, wireOf(40), [10, 1_000], [10, 1_005], [10, 1_015], [10, 1_020]);
    hearPieces(reader, wireOf(60), ...pieces);
    return reader.restMs();
  };
  assert.equal(second([10, 2_000]), 19);
  assert.equal(second([10, 2_000], [10, 2_020]), 14, "slower than the last");
  assert.equal(second([10, 2_000], [10, 2_005]), 6, "faster");
});

test("FrameReader takes no pace from a frame that was whole when a rest ended, and takes the next one's", () => {
  const reader = readerOf("length");
  hearPieces(reader, wireOf(70), ...twoPieces);
  assert.equal(reader.restMs(), 19);
  hear(reader, wireOf(70).subarray(20), 1_030);
  const first = wireOf(40);
  hear(reader, first.subarray(0, 10), 2_000);
  assert.equal(reader.restMs(), 0);
  hear(reader, first.subarray(10), 2_020);
  hear(reader, wireOf(60).subarray(0, 10), 3_000);
  assert.equal(reader.restMs(), 19);
});

/** Until when a frame of so many bytes may go on, that came in these pieces. */
function burstOf(bytes: number, ...pieces: readonly (readonly [number, number])[]): number {
  const reader = readerOf("length");
  hearPieces(reader, wireOf(bytes), ...pieces);
  assert.equal(reader.between, true);
  return reader.burstUntilMs;
}

test("FrameReader expects a copy of a frame for as long as two of its pieces take, unless its last piece was cut short", () => {
  assert.equal(burstOf(40, [10, 1_000], [10, 1_005], [10, 1_015], [10, 1_020]), 1_030);
  assert.equal(burstOf(35, [10, 1_000], [10, 1_005], [10, 1_015], [5, 1_020]), 0);
  assert.equal(burstOf(32, [10, 1_000], [10, 1_010], [12, 1_016]), 1_026);
  assert.equal(burstOf(35, [10, 1_000], [15, 1_010], [10, 1_014]), 1_022);
  assert.equal(burstOf(40, [10, 1_000], [10, 1_100], [10, 1_200], [10, 1_300]), 1_364, "four of an adapter's 16 ms at most");
});

test("FrameReader expects no copy of a frame that came at once, nor behind bytes of another frame", () => {
  assert.equal(burstOf(40, [40, 1_000]), 0);
  assert.equal(burstOf(40, [20, 1_000], [20, 1_000.5]), 0);
  const reader = readerOf("length");
  hear(reader, wireOf(40).subarray(0, 20), 1_000);
  hear(reader, Buffer.concat([wireOf(40).subarray(20), wireOf(40).subarray(0, 2)]), 1_010);
  assert.equal(reader.burstUntilMs, 0);
  assert.deepEqual(reader.receiving, { phase: "in-frame", heardMs: 1_010, burstUntilMs: 0 });
});

test("FrameReader that let bytes lie can't tell by the size of the last piece whether a copy comes", () => {
  const rested = (bytes: number) => {
    const reader = readerOf("length");
    hearPieces(reader, wireOf(bytes), ...twoPieces);
    assert.ok(reader.restMs() > 0);
    hear(reader, wireOf(bytes).subarray(20), 1_040);
    return reader.burstUntilMs;
  };
  assert.equal(rested(75), 0);
  assert.equal(rested(80), 1_050, "pieces of one size, to the last");
  assert.equal(Math.round(burstOf(75, ...twoPieces, [55, 1_040])), 1_051, "where nothing lay");
});

test("FrameReader.receiving says what comes, since when nothing came, and until when more may", () => {
  const reader = readerOf("length");
  hearPieces(reader, wireOf(40), [10, 1_000], [10, 1_005], [10, 1_015], [10, 1_020]);
  assert.deepEqual(reader.receiving, { phase: "idle", heardMs: 1_020, burstUntilMs: 1_030 });
  hear(reader, Buffer.from("AT\r"), 1_025);
  assert.equal(reader.receiving.burstUntilMs, 0);
  assert.equal(reader.receiving.phase, "garbage");
});
