import assert from "node:assert/strict";
import { test } from "node:test";
import { startWatchdog, watchdogPeriodMs } from "../../src/systemd/watchdog.ts";

test("startWatchdog pings three times in a period while everything makes progress, and not while something is stalled", ({
  mock,
}) => {
  mock.timers.enable({ apis: ["setInterval"] });
  let stalled: string | undefined;
  let pings = 0;
  const changed: (string | undefined)[] = [];
  const watchdog = startWatchdog({
    periodMs: 3_000,
    stalled: () => stalled,
    ping: () => pings++,
    changed: (what) => changed.push(what),
  });
  assert.equal(pings, 1, "the first at once");
  mock.timers.tick(3_000);
  assert.equal(pings, 4);
  stalled = "line till";
  mock.timers.tick(9_000);
  assert.equal(pings, 4, "so that systemd restarts it");
  assert.deepEqual(changed, ["line till"], "reported once");
  stalled = undefined;
  mock.timers.tick(1_000);
  assert.equal(pings, 5);
  assert.deepEqual(changed, ["line till", undefined]);
  watchdog.stop();
  mock.timers.tick(9_000);
  assert.equal(pings, 5);
});

test("watchdogPeriodMs is systemd's period for this process alone", () => {
  assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: "30000000" }, 7), 30_000);
  assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "7" }, 7), 30_000);
  assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "8" }, 7), undefined);
  for (const usec of [undefined, "", "0", "-5", "soon"])
    assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: usec }, 7), undefined, usec);
});
