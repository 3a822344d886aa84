import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { FrameReader } from "../../src/line/frame-reader.ts";
import type { Frame, Framing } from "../../src/wire/decoded.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { configOf, ending, hasEnded, idOf, lineOver, merchantId, requestFor } from "./lines.ts";

/**
 * Tests src/line/frame-reader.ts, src/line/engine.ts. What comes back as it was written is no answer, to a call as to posline's own
 * questions, and a line that gives it back works.
 */

const time = virtualTime();

const good = (id: string) => `{"status":"success","id":"${id}"}`;

function hear(reader: FrameReader, bytes: Buffer, now = 1_000): readonly Frame[] {
  const space = reader.space();
  bytes.copy(space);
  return reader.heard(bytes.length, now).filter((item) => item.kind === "frame");
}

test("FrameReader marks a frame that is what was written last, in either framing, and no other", () => {
  const reader = new FrameReader(configOf(), new Set<Framing>(["length", "stx"]));
  const marks = (bytes: Buffer) => hear(reader, bytes).map(({ isEcho }) => isEcho === true);
  for (const framing of ["length", "stx"] as const) {
    const written = frame(framing, "/sale\n{1}");
    assert.deepEqual(marks(written), [false], "nothing was written yet");
    // A frame is written in pieces.
    reader.writes([written.subarray(0, 3), written.subarray(3, 8), written.subarray(8)]);
    assert.deepEqual(marks(Buffer.concat([written, frame(framing, "{}"), written])), [true, false, true]);
    assert.deepEqual(marks(frame(framing, "/sale\n{2}")), [false], "of the same length");
    reader.writes([frame(framing, "/check\n{}")]);
    assert.deepEqual(marks(written), [false], "something else was written since");
  }
});

/** A line that gives back what it is sent, and a terminal behind it, or none. */
function echoing(service: ContractName, answers = true, ms = 5) {
  const device: FakeDevice = new FakeDevice((framing, text) => {
    const payload = framing === "stx" ? frame("stx", text) : frame("length", text);
    device.send(payload);
    const reply = probeReply({ framing, text, number: 0 }) ?? good(idOf(text));
    if (answers) setTimeout(() => device.reply(framing, reply), ms);
  });
  const { line, told } = lineOver(device.open, { services: [service], merchantId, config: { queueWaitMs: 600_000 } });
  line.start();
  return { device, line, told };
}

for (const service of ["bank", "fiscal", "qr"] as const) {
  test(`Line with ${service} gives each call its answer where it hears what it sends, and says once that it does`, async () => {
    const { line, told } = echoing(service);
    assert.ok(await time.until(() => line.state === "idle", 60_000), line.reason);
    for (let n = 0; n < 20; n++) {
      const end = ending(line, requestFor(`A-${n}`, { service }));
      await time.until(() => hasEnded(end));
      assert.equal(end.text, good(`A-${n}`), end.fault?.message);
      await time.advance(n % 4 === 0 ? 70_000 : 1);
    }
    assert.deepEqual(told.echoed, ["what is sent comes back, and is ignored"]);
    assert.deepEqual([told.lates, told.discards, told.liveness], [0, [], []]);
    assert.equal(told.states.filter((state) => state === "recovering").length, 1, "in step all the time");
    assertMapped(line.liveness(), ["heard"], ({ state }) => state);
    await line.stop(0);
  });
}

test("Line that hears nothing but what it sends is never ready, and says why", async () => {
  const { line, told } = echoing("bank", false);
  const refused: string[] = [];
  for (let n = 0; n < 20; n++) {
    await time.advance(30_000);
    assertMapped(line.liveness(), ["unheard"], ({ state }) => state);
    const { refusal } = line;
    if (refusal !== undefined) refused.push(refusal.message);
  }
  assert.deepEqual(told.liveness, ["bank unheard: what was sent comes back: no terminal answers"]);
  await line.stop(0);
});

test("Line takes an answer that comes in one read with the echo, twice echoed, and behind stray bytes", async () => {
  const between = [Buffer.alloc(0), Buffer.of(0), Buffer.of(0xff), Buffer.from("\r\n")];
  for (const stray of between) {
    const device: FakeDevice = new FakeDevice((framing, text) => {
      const echo = frame(framing, text);
      const answer = frame(framing, probeReply({ framing, text, number: 0 }) ?? good(idOf(text)));
      device.send(Buffer.concat([echo, echo, stray, answer]));
    });
    const { line, told } = lineOver(device.open, { config: { idleProbeMs: 0 } });
    line.start();
    assert.ok(await time.until(() => line.state === "idle", 60_000), line.reason);
    for (const id of ["A", "B"]) {
      const end = ending(line, requestFor(id));
      await time.until(() => hasEnded(end));
      assert.equal(end.text, good(id), `${stray.toString("hex")}: ${end.fault?.message}`);
    }
    assert.equal(told.echoed.length, 1);
    await line.stop(0);
  }
});

test("Line takes an echo that comes while the request is still being written for no answer, and says again after an opening that it echoes", async () => {
  const { device, line, told } = echoing("bank");
  assert.ok(await time.until(() => line.state === "idle", 60_000));
  const request = requestFor("A", { replyTimeoutMs: 10_000 });
  device.takesBytes = 5;
  const end = ending(line, request);
  device.send(frame("length", Buffer.concat(request.payload).toString()));
  device.takeRest();
  device.takesBytes = Number.POSITIVE_INFINITY;
  await time.until(() => hasEnded(end));
  assert.equal(end.text, good("A"), end.fault?.message);
  assert.equal(told.echoed.length, 1);
  device.unplug();
  device.plug();
  assert.ok(await time.until(() => told.echoed.length === 2, 60_000));
  await line.stop(0);
});
