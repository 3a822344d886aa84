import assert from "node:assert/strict";
import { after, test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { type Call, present, type ServiceName } from "../../src/core/call.ts";
import type { Emulated } from "../../src/emulator/emulator.ts";
import { overLine } from "../../src/emulator/over-line.ts";
import type { FrameFault } from "../../src/emulator/spoil.ts";
import type { WireFault } from "../../src/emulator/wire-fault.ts";
import { frameOf } from "../../src/wire/framing.ts";

import { VirtualTime } from "../support/virtual-time.ts";

const time = new VirtualTime();
after(() => time.restore());

const text = Buffer.from('{"status":"success","data":{"rrn":"1"}}');

/** An emulator that answers all alike, with these faults one after the other. */
function answering(...faults: readonly (WireFault | undefined)[]) {
  const waiting = [...faults];
  const asked: Call[] = [];
  const answer = (call: Call): Emulated => {
    asked.push(call);
    return { reply: { payload: [text], status: "success", code: undefined, queueMs: 0, lineMs: 0 }, fault: waiting.shift() };
  };
  return { answer, asked };
}

function callOf(service: ServiceName = "bank"): Call {
  return { service, route: "/sale", body: [], requestId: "r", key: undefined, caller: present() };
}

const framed = (payload: readonly Buffer[], service: ServiceName = "bank") =>
  frameOf(contracts[service].framing, payload, "arc");

const frameFaults: readonly FrameFault[] = [
  { kind: "no-answer" },
  { kind: "after-next" },
  { kind: "corrupt" },
  { kind: "truncated" },
  { kind: "wrong-length" },
  { kind: "pieces", pauseMs: 5 },
  { kind: "noise" },
  { kind: "twice", pauseMs: 0 },
  { kind: "unplug", ms: 5 },
];

for (const fault of frameFaults) {
  test(`overLine spoils the frame of the answer that ${fault.kind} befalls, and only that`, async () => {
    const { handler, spoil } = overLine(answering(undefined, fault, undefined), "arc");
    const [before, spoilt, next] = [await handler(callOf()), await handler(callOf()), await handler(callOf())];
    assert.deepEqual(Buffer.concat(spoilt.payload), text);
    // A listener's own answer goes out between the handler's answer and its frame, or the frame never goes out.
    assert.equal(spoil(framed([Buffer.from(text)])), undefined);
    assert.equal(spoil(framed(before.payload)), undefined);
    assert.equal(spoil(framed(next.payload)), undefined);
    assert.notEqual(spoil(framed(spoilt.payload)), undefined);
  });
}

test("overLine answers late, and at once when nobody waits any more", async () => {
  const { handler, spoil } = overLine(answering({ kind: "late", ms: 5_000 }, { kind: "late", ms: 5_000 }), "arc");
  const began = time.nowMs;
  let endedMs = 0;
  const ended = handler(callOf()).then((reply) => {
    endedMs = time.nowMs;
    return reply;
  });
  await time.advance(60_000);
  assert.equal(endedMs - began, 5_000);
  assert.equal(spoil(framed((await ended).payload)), undefined);
  const call = callOf();
  const abandoned = handler(call);
  await time.advance(10);
  call.caller.gone = true;
  call.caller.onGone?.();
  await abandoned;
  const run = time.timersRun;
  await time.advance(10_000);
  assert.equal(time.timersRun, run, "its timer is gone with the caller");
});

test("overLine carries a call out before anything befalls its answer", async () => {
  const emulator = answering({ kind: "late", ms: 5_000 });
  const { handler } = overLine(emulator, "arc");
  const reply = handler(callOf());
  assert.equal(emulator.asked.length, 1);
  await time.advance(5_000);
  await reply;
});

for (const service of ["fiscal", "bank", "qr"] as const) {
  test(`overLine gives a ${service} answer white space that puts 02 and 03 into its CRC`, async () => {
    const { handler, spoil } = overLine(answering({ kind: "reserved-crc" }), "arc");
    const { payload } = await handler(callOf(service));
    assert.deepEqual(JSON.parse(Buffer.concat(payload).toString()), JSON.parse(text.toString()));
    const frame = framed(payload, service);
    assert.equal(spoil(frame), undefined);
    const bytes = Buffer.concat(frame);
    const sum = service === "fiscal" ? bytes.subarray(-5, -1) : bytes.subarray(-2);
    assert.ok(sum.includes(0x02) && sum.includes(service === "fiscal" ? 0x20 : 0x03), sum.toString("hex"));
  });
}
