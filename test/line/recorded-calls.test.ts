import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Deadline, nowMs } from "../../src/core/clock.ts";
import { Fault } from "../../src/core/fault.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { ending, hasEnded, idOf, type LineSetup, lineOver, requestFor } from "./lines.ts";

/**
 * Tests src/line/engine.ts, src/line/caller.ts.
 *
 * A call that must be recorded before its first byte goes out, and the watchdog's question, with the clock in the test's hand.
 */

const time = virtualTime();

const good = (id: string) => `{"status":"success","id":"${id}"}`;

/** A line that is idle, over a terminal that answers each call in 20 ms, and the ids of the calls that came to it. */
async function idleLine(setup: LineSetup = {}) {
  const seen: string[] = [];
  const device: FakeDevice = new FakeDevice((framing, text) => {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe !== undefined) return device.reply(framing, probe);
    seen.push(idOf(text));
    time.after(20, () => device.reply(framing, good(idOf(text))));
  });
  const { line, told } = lineOver(device.open, setup);
  line.start();
  assert.ok(await time.until(() => line.state === "idle"));
  return { line, told, device, seen };
}

/** What precedes a call, in the test's hand. */
function recording() {
  const { promise, resolve, reject } = deferred();
  let begun = 0;
  const beforeSend = () => {
    begun++;
    return promise;
  };
  return { beforeSend, done: resolve, fail: reject, begun: () => begun };
}

function deferred() {
  let resolve: () => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

test("Line sends nothing before beforeSend has settled, and nobody else meanwhile, not even an urgent call", async () => {
  const { line, seen } = await idleLine();
  const record = recording();
  const ends = [
    ending(line, requestFor("A", { beforeSend: record.beforeSend })),
    ending(line, requestFor("B")),
    ending(line, requestFor("ABORT", { urgent: true })),
  ];
  assert.equal(line.state, "idle");
  assert.equal(record.begun(), 1);
  await time.advance(1_000);
  assert.deepEqual(seen, []);
  record.done();
  await time.advance(1_000);
  assert.deepEqual(seen, ["A", "ABORT", "B"]);
  assertMapped(ends, ["A", "B", "ABORT"].map(good), ({ text }) => text);
});

test("Line runs beforeSend once the call's turn has come, not while it waits", async () => {
  const { line, seen } = await idleLine();
  const record = recording();
  const first = ending(line, requestFor("A"));
  const second = ending(line, requestFor("B", { beforeSend: record.beforeSend }));
  await time.advance(10);
  assert.equal(record.begun(), 0);
  await time.advance(20);
  assert.ok(hasEnded(first));
  assert.equal(record.begun(), 1);
  record.done();
  await time.advance(50);
  assert.equal(second.text, good("B"));
  assert.deepEqual(seen, ["A", "B"]);
});

test("Line refuses a call with the fault of its beforeSend, as not sent, and goes on with the next", async () => {
  const { line, seen } = await idleLine();
  const record = recording();
  const fault = new Fault("unavailable", "Cannot send /sale: the disk is full");
  const [first, second] = [
    ending(line, requestFor("A", { beforeSend: record.beforeSend })),
    ending(line, requestFor("B", { beforeSend: () => Promise.reject(new TypeError("a bug")) })),
  ];
  const third = ending(line, requestFor("C"));
  record.fail(fault);
  await time.advance(100);
  assert.equal(first.fault, fault);
  assert.equal(second.fault?.outcome, "not-sent");
  assert.match(second.fault?.message ?? "", /the call could not be recorded \(TypeError: a bug\)\. Nothing was sent/);
  assert.equal(third.text, good("C"));
  assert.deepEqual(seen, ["C"]);
});

test("Line doesn't take the record of a call that was refused for that of the next", async () => {
  const { line, device, seen } = await idleLine();
  const [one, other] = [recording(), recording()];
  ending(line, requestFor("A", { beforeSend: one.beforeSend }));
  device.unplug();
  device.plug();
  assert.ok(await time.until(() => line.state === "idle"));
  const second = ending(line, requestFor("B", { beforeSend: other.beforeSend }));
  one.done();
  await time.advance(100);
  assert.deepEqual(seen, []);
  other.done();
  await time.advance(100);
  assert.equal(second.text, good("B"));
});

test("Line refuses a call that is still being recorded when it has waited queueWaitMs", async () => {
  const { line, seen } = await idleLine({ config: { queueWaitMs: 500 } });
  const record = recording();
  const first = ending(line, requestFor("A", { beforeSend: record.beforeSend }));
  await time.advance(510);
  assert.match(
    first.fault?.message ?? "",
    /^Cannot send to line till: it was still being recorded in the journal, and the call waited 50\d ms/,
  );
  record.done();
  await time.advance(100);
  assert.deepEqual(seen, []);
  assert.equal(ending(line, requestFor("B")).fault, undefined);
});

test("Line refuses a call as not sent when it stops, or is lost, while the call is recorded", async () => {
  for (const how of ["stop", "unplug"] as const) {
    const { line, device, seen } = await idleLine();
    const record = recording();
    const end = ending(line, requestFor("A", { beforeSend: record.beforeSend }));
    if (how === "stop") void line.stop(1_000);
    else device.unplug();
    await time.settle();
    assert.equal(end.fault?.outcome, "not-sent", how);
    device.plug();
    record.done();
    await time.advance(10_000);
    assert.deepEqual(seen, [], how);
    await line.stop(0);
  }
});

test("Line keeps the place of a call that was recorded when the line had to be proven again, and records it once", async () => {
  const { line, device, seen } = await idleLine();
  ending(line, requestFor("FIRST"));
  await time.advance(100);
  const record = recording();
  const first = ending(line, requestFor("A", { beforeSend: record.beforeSend }));
  const second = ending(line, requestFor("ABORT", { urgent: true }));
  device.reply("length", good("STRAY"));
  assert.equal(line.state, "recovering");
  record.done();
  await time.settle();
  assert.equal(seen.includes("A"), false, "it isn't sent before the line is clean");
  assert.ok(await time.until(() => hasEnded(first) && hasEnded(second)));
  assert.deepEqual(seen.slice(-2), ["A", "ABORT"]);
  assert.equal(first.text, good("A"));
  assert.equal(record.begun(), 1);
});

test("Line counts a call that is recorded as none that waits", async () => {
  const { line } = await idleLine({ config: { queueCallsMax: 1 } });
  const first = ending(line, requestFor("A", { beforeSend: recording().beforeSend }));
  const second = ending(line, requestFor("B"));
  const third = ending(line, requestFor("C"));
  await time.settle();
  assert.deepEqual([first, second, third].map(hasEnded), [false, false, true]);
  assert.equal(line.waiting, 1);
  await line.stop(0);
});

test("Line.stalledMs is 0 through a line's life, whatever happens to it", async () => {
  const { line, device } = await idleLine({ config: { lateReplyMs: 4_000 } });
  const check = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 10) {
      await time.advance(10);
      assert.equal(line.stalledMs(nowMs()), 0, `${line.state}: ${line.reason}`);
    }
  };
  const record = recording();
  const ends = [
    ending(line, requestFor("A", { beforeSend: record.beforeSend })),
    ...["B", "C"].map((id) => ending(line, requestFor(id, { replyTimeoutMs: 10 }))),
  ];
  await check(300);
  record.done();
  await check(4_000);
  assert.ok(ends.every(hasEnded));
  device.unplug();
  await check(6_000);
  device.plug();
  await check(6_000);
  device.takesBytes = 3;
  ending(line, requestFor("D"));
  await check(7_000);
  await line.stop(0);
  assert.equal(line.stalledMs(nowMs()), 0);
});

test("Line.stalledMs grows when a clock of the line is lost, and when none was set", async () => {
  for (const lost of ["timer", "deadline"] as const) {
    const { line, seen } = await idleLine();
    ending(line, requestFor("A", { replyTimeoutMs: 5_000 }));
    await time.advance(1);
    // The sabotage: what the line relies on for its clocks does nothing any more.
    if (lost === "timer") time.forgetTimers();
    else {
      mock.method(Deadline.prototype, "set", () => {});
      ending(line, requestFor("B"));
      await time.advance(40);
      assert.deepEqual(seen, ["A", "B"]);
      time.forgetTimers();
    }
    await time.advance(20_000);
    assert.ok(line.stalledMs(nowMs()) > 10_000, lost);
    mock.restoreAll();
  }
});

test("Line.stalledMs is 0 while the device is away, and grows when the next attempt to open it never begins", async () => {
  const { line, device } = await idleLine();
  device.unplug();
  await time.advance(60_000);
  assert.equal(line.stalledMs(nowMs()), 0);
  time.forgetTimers();
  await time.advance(60_000);
  assert.ok(line.stalledMs(nowMs()) > 50_000);
  await line.stop(0);
  assert.equal(line.stalledMs(nowMs()), 0);
});

test("Line.stalledMs is the time since the last event where something is awaited and no clock was ever set for it", async () => {
  const { line, device } = await idleLine({ config: { idleProbeMs: 0 } });
  device.wireMs = Number.MAX_SAFE_INTEGER;
  mock.method(Deadline.prototype, "set", () => {});
  ending(line, requestFor("A"));
  await time.advance(20_000);
  assert.equal(line.stalledMs(nowMs()), 20_000);
  mock.restoreAll();
  await line.stop(0);
});

test("Line.stalledMs counts from the very millisecond at which something was due", async () => {
  const { line } = await idleLine();
  const longMs = 1_000_000;
  const dueMs = nowMs() + longMs - line.stalledMs(nowMs() + longMs);
  assertMapped([0, 1, 2], [0, 1, 2], (ms) => line.stalledMs(dueMs + ms));
  await line.stop(0);
});
