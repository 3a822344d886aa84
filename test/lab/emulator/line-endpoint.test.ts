import assert from "node:assert/strict";
import { after, test } from "node:test";
import { contracts } from "../../../src/contract/contracts.ts";
import type { Call, ContractName } from "../../../src/core/call.ts";
import { Presence } from "../../../src/core/presence.ts";
import type { EmulatedReply } from "../../../src/lab/emulator/emulator.ts";
import type { FrameFault } from "../../../src/lab/emulator/faults/frame-faults.ts";
import type { WireFault } from "../../../src/lab/emulator/faults/wire-fault.ts";
import { lineEndpoint } from "../../../src/lab/emulator/line-endpoint.ts";
import { frameOf } from "../../../src/wire/framing.ts";

import { VirtualTime } from "../../support/virtual-time.ts";

const time = new VirtualTime();
after(() => time.restore());

const text = Buffer.from('{"status":"success","data":{"rrn":"1"}}');

/** An emulator that answers all alike, with these faults one after the other. */
function answering(...faults: readonly (WireFault | undefined)[]) {
  const waiting = [...faults];
  const asked: Call[] = [];
  const answer = (call: Call): EmulatedReply => {
    asked.push(call);
    return { reply: { payload: [text], status: "success", code: undefined, queueMs: 0, lineMs: 0 }, fault: waiting.shift() };
  };
  return { answer, asked };
}

function callOf(service: ContractName = "bank"): Call {
  return { service, contract: service, route: "/sale", body: [], requestId: "r", key: undefined, caller: new Presence() };
}

const framed = (payload: readonly Buffer[], service: ContractName = "bank") =>
  frameOf(contracts[service].framing, payload, "arc");

const frameFaults: readonly FrameFault[] = [
  { kind: "no-answer" },
  { kind: "after-next" },
  { kind: "corrupt" },
  { kind: "truncated" },
  { kind: "wrong-length" },
  { kind: "pieces", ms: 5 },
  { kind: "noise" },
  { kind: "twice", ms: 0 },
  { kind: "unplug", ms: 5 },
];

for (const fault of frameFaults) {
  test(`lineEndpoint() applies ${fault.kind} to the frame of its answer, and only that`, async () => {
    const { handler, stepsFor } = lineEndpoint(answering(undefined, fault, undefined), "arc");
    const [before, spoilt, next] = [await handler(callOf()), await handler(callOf()), await handler(callOf())];
    assert.deepEqual(Buffer.concat(spoilt.payload), text);
    // A listener's own answer goes out between the handler's answer and its frame, or the frame never goes out.
    assert.equal(stepsFor(framed([Buffer.from(text)])), undefined);
    assert.equal(stepsFor(framed(before.payload)), undefined);
    assert.equal(stepsFor(framed(next.payload)), undefined);
    assert.notEqual(stepsFor(framed(spoilt.payload)), undefined);
  });
}

test("lineEndpoint() answers late, and at once when nobody waits any more", async () => {
  const { handler, stepsFor } = lineEndpoint(answering({ kind: "late", ms: 5_000 }, { kind: "late", ms: 5_000 }), "arc");
  const began = time.nowMs;
  let endedMs = 0;
  const ended = handler(callOf()).then((reply) => {
    endedMs = time.nowMs;
    return reply;
  });
  await time.advance(60_000);
  assert.equal(endedMs - began, 5_000);
  assert.equal(stepsFor(framed((await ended).payload)), undefined);
  const call = callOf();
  const abandoned = handler(call);
  await time.advance(10);
  call.caller.leave();
  await abandoned;
  const run = time.timersRun;
  await time.advance(10_000);
  assert.equal(time.timersRun, run, "its timer is gone with the caller");
});

test("lineEndpoint() carries a call out before a fault of its answer is applied", async () => {
  const emulator = answering({ kind: "late", ms: 5_000 });
  const { handler } = lineEndpoint(emulator, "arc");
  const reply = handler(callOf());
  assert.equal(emulator.asked.length, 1);
  await time.advance(5_000);
  await reply;
});

for (const service of ["fiscal", "bank", "qr"] as const) {
  test(`lineEndpoint() gives a ${service} answer white space that puts 02 and 03 into its CRC`, async () => {
    const { handler, stepsFor } = lineEndpoint(answering({ kind: "reserved-crc" }), "arc");
    const { payload } = await handler(callOf(service));
    assert.deepEqual(JSON.parse(Buffer.concat(payload).toString()), JSON.parse(text.toString()));
    const frame = framed(payload, service);
    assert.equal(stepsFor(frame), undefined);
    const bytes = Buffer.concat(frame);
    const sum = service === "fiscal" ? bytes.subarray(-5, -1) : bytes.subarray(-2);
    assert.ok(sum.includes(0x02) && sum.includes(service === "fiscal" ? 0x20 : 0x03), sum.toString("hex"));
  });
}
