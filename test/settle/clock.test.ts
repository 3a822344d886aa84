import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { checkedWindowMs, monotonicClock, Pauses, sleepUnless } from "../../src/settle/clock.ts";

const interval = { pause: "interval" } as const;
const backOff = { pause: "back-off" } as const;

test("Pauses grows from the shortest to the longest interval, a second to two where the contract has none", () => {
  const pauses = new Pauses();
  assert.deepEqual(
    Array.from({ length: 6 }, () => pauses.nextMs(interval)),
    [1_000, 1_250, 1_500, 1_750, 2_000, 2_000],
  );
  const short = new Pauses({ min: 100, max: 300 });
  assert.deepEqual([short.nextMs(interval), short.nextMs(interval), short.nextMs(interval)], [100, 300, 300]);
});

test("Pauses keeps an interval that its caller gave", () => {
  const pauses = new Pauses({ min: 1_000, max: 2_000 }, 700);
  assert.deepEqual([pauses.nextMs(interval), pauses.nextMs(interval)], [700, 700]);
});

test("Pauses doubles what it waits for one that isn't let through, up to 10 s, and begins anew once one was", () => {
  const pauses = new Pauses();
  assert.deepEqual(
    Array.from({ length: 6 }, () => pauses.nextMs(backOff)),
    [1_000, 2_000, 4_000, 8_000, 10_000, 10_000],
  );
  assert.equal(pauses.nextMs({ pause: "none" }), 0);
  assert.equal(pauses.nextMs(backOff), 10_000);
  pauses.nextMs(interval);
  assert.equal(pauses.nextMs(backOff), 1_000);
});

test("Pauses waits for as long as it was told to, and no shorter than by itself", () => {
  const pauses = new Pauses();
  assert.equal(pauses.nextMs({ ...backOff, retryAfterMs: 7_000 }), 7_000);
  assert.equal(pauses.nextMs({ ...backOff, retryAfterMs: 500 }), 2_000);
});

test("Pauses refuses an interval that would flood a terminal, or is no number, and says what to use", () => {
  const usual = { min: 1_000, max: 2_000 };
  assert.equal(new Pauses(usual, 50).nextMs(interval), 50);
  for (const ms of [49, 0, -1, Number.NaN])
    assert.throws(() => new Pauses(usual, ms), { name: "RangeError", message: /intervalMs is .*: use at least 50/ });
  // What a caller without types may give
  const text = "1000" as unknown as number;
  assert.throws(() => new Pauses(usual, text), { name: "TypeError", message: /intervalMs is not a number: use milliseconds/ });
});

test("checkedWindowMs() is 3 minutes unless given, takes none at all, and refuses what never ends or is no number", () => {
  assert.deepEqual([checkedWindowMs(), checkedWindowMs(0), checkedWindowMs(5)], [180_000, 0, 5]);
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => checkedWindowMs(ms), { name: "RangeError", message: /windowMs is .*: use milliseconds/ });
  assert.throws(() => checkedWindowMs("5"), { name: "TypeError", message: /windowMs is not a number: use milliseconds/ });
});

/** Whether a sleep is over by now. */
async function isOver(sleep: Promise<void>): Promise<boolean> {
  const waiting = new Promise<false>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([sleep.then(() => true), waiting]);
}

test("monotonicClock.sleep() ends when its time is over", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sleep = monotonicClock.sleep(1_000, undefined);
  t.mock.timers.tick(999);
  assert.equal(await isOver(sleep), false);
  t.mock.timers.tick(1);
  assert.equal(await isOver(sleep), true);
});

test("monotonicClock.sleep() ends at once when its signal is aborted, or was, and leaves no listener on it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  assert.equal(await isOver(monotonicClock.sleep(1_000, AbortSignal.abort())), true);
  const leaving = new AbortController();
  const listeners = () => getEventListeners(leaving.signal, "abort").length;
  const sleep = monotonicClock.sleep(1_000, leaving.signal);
  assert.equal(await isOver(sleep), false);
  leaving.abort();
  assert.equal(await isOver(sleep), true);
  assert.equal(listeners(), 0);
  const staying = new AbortController();
  const slept = monotonicClock.sleep(1_000, staying.signal);
  assert.equal(getEventListeners(staying.signal, "abort").length, 1);
  t.mock.timers.tick(1_000);
  await slept;
  assert.equal(getEventListeners(staying.signal, "abort").length, 0);
});

test("monotonicClock.sleep() that was ended early gives its timer back, so that a process may end", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
  const before = timers();
  const leaving = new AbortController();
  const sleep = monotonicClock.sleep(3_600_000, leaving.signal);
  assert.equal(timers(), before + 1);
  leaving.abort();
  await sleep;
  assert.equal(timers(), before);
});

test("monotonicClock.nowMs() goes on with the process, whatever the wall clock does", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const before = monotonicClock.nowMs();
  t.mock.timers.setTime(10 ** 12);
  const later = monotonicClock.nowMs();
  assert.ok(later >= before && later - before < 10 ** 9);
});

test("sleepUnless() ends with the first of its signals, at once where one is aborted already, and leaves no listener", async () => {
  for (const which of [0, 1]) {
    for (const isBefore of [true, false]) {
      const controllers = [new AbortController(), new AbortController()];
      const signals = controllers.map(({ signal }) => signal);
      if (isBefore) controllers[which]?.abort();
      const sleeping = sleepUnless(monotonicClock, 60_000, [undefined, ...signals]);
      controllers[which]?.abort();
      await sleeping;
      for (const signal of signals) assert.equal(getEventListeners(signal, "abort").length, 0);
    }
  }
  await sleepUnless(monotonicClock, 1, []);
});
