import assert from "node:assert/strict";
import { mock, type TestContext, test } from "node:test";
import { blockFor, Deadline, nowMs, within } from "../../src/core/clock.ts";
import { gate, watched } from "../support/promises.ts";

/** Node's timers and its monotonic clock, moved by hand. */
function hands(t: TestContext) {
  let now = 1_000;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => now);
  return {
    get now() {
      return now;
    },
    pass(ms: number) {
      now += ms;
      t.mock.timers.tick(ms);
    },
  };
}

test("Deadline fires once, when its time has come and not before", (t) => {
  const clock = hands(t);
  let fired = 0;
  const deadline = new Deadline(() => fired++);
  deadline.set(clock.now + 100, clock.now);
  clock.pass(99);
  assert.equal(fired, 0);
  clock.pass(1);
  assert.equal(fired, 1);
  clock.pass(1_000);
  assert.equal(fired, 1);
});

test("Deadline moved earlier fires earlier, and not again at the first time", (t) => {
  const clock = hands(t);
  let fired = 0;
  const deadline = new Deadline(() => fired++);
  deadline.set(clock.now + 1_000, clock.now);
  deadline.set(clock.now + 10, clock.now);
  clock.pass(10);
  assert.equal(fired, 1);
  clock.pass(2_000);
  assert.equal(fired, 1);
});

test("Deadline that was cleared, set to Infinity or disposed of doesn't fire", (t) => {
  const clock = hands(t);
  let fired = 0;
  const deadline = new Deadline(() => fired++);
  for (const stop of [
    () => deadline.clear(),
    () => deadline.set(Number.POSITIVE_INFINITY, clock.now),
    () => deadline.dispose(),
  ]) {
    deadline.set(clock.now + 10, clock.now);
    stop();
    clock.pass(100);
    assert.equal(fired, 0);
  }
  deadline.set(clock.now + 10, clock.now);
  clock.pass(10);
  assert.equal(fired, 1);
});

test("Deadline can be set again from within, and fires a past time at the next turn", (t) => {
  const clock = hands(t);
  const fired: number[] = [];
  const deadline = new Deadline(() => {
    fired.push(clock.now);
    if (fired.length < 3) deadline.set(clock.now + 5, clock.now);
  });
  deadline.set(clock.now - 50, clock.now);
  clock.pass(1);
  clock.pass(5);
  clock.pass(5);
  clock.pass(100);
  assert.deepEqual(fired, [1_001, 1_006, 1_011]);
});

test("nowMs() never goes back", () => {
  let last = nowMs();
  for (let i = 0; i < 1_000; i++) {
    const now = nowMs();
    assert.ok(now >= last);
    last = now;
  }
});

test("A wait for something ends when it has happened, and leaves no timer", async () => {
  const cleared = mock.method(globalThis, "clearTimeout");
  const event = gate();
  const waiting = within(60_000, event.passed);
  event.open();
  await waiting;
  assert.equal(cleared.mock.callCount(), 1);
  cleared.mock.restore();
});

test("A wait for something that doesn't happen ends with its time", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const waiting = watched(within(100, new Promise<void>(() => {})));
  mock.timers.tick(99);
  await Promise.resolve();
  assert.equal(waiting.isOver, false);
  mock.timers.tick(1);
  await waiting.ended;
  mock.timers.reset();
});

test("A wait for something that fails fails with it, and leaves no timer", async () => {
  const cleared = mock.method(globalThis, "clearTimeout");
  await assert.rejects(within(60_000, Promise.reject(new Error("broken"))), /broken/);
  assert.equal(cleared.mock.callCount(), 1);
  cleared.mock.restore();
});

test("A thread that stands still lets nothing else happen meanwhile", () => {
  let hasRun = false;
  setImmediate(() => {
    hasRun = true;
  });
  const begin = nowMs();
  blockFor(20);
  assert.ok(nowMs() - begin >= 19);
  assert.equal(hasRun, false);
});
