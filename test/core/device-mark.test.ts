import assert from "node:assert/strict";
import { test } from "node:test";
import { deviceMark, isElsewhere } from "../../src/core/device-mark.ts";

test("deviceMark() is short, the same for the same path and contract, and another for another of either", () => {
  const long = deviceMark(`/dev/serial/by-id/${"x".repeat(200)}`, "bank");
  assert.match(long, /^bank [0-9a-f]{8}$/);
  assert.equal(deviceMark("/dev/ttyUSB0", "bank"), deviceMark("/dev/ttyUSB0", "bank"));
  assert.notEqual(deviceMark("/dev/ttyUSB0", "bank"), deviceMark("/dev/ttyUSB1", "bank"));
  assert.notEqual(deviceMark("/dev/ttyUSB0", "bank"), deviceMark("/dev/ttyUSB0", "fiscal"));
});

test("isElsewhere() is true for two devices that are known and differ", () => {
  const [one, other] = [deviceMark("/dev/ttyUSB0", "bank"), deviceMark("/dev/ttyUSB1", "bank")];
  assert.deepEqual([isElsewhere(one, other), isElsewhere(one, one)], [true, false]);
  assert.deepEqual([isElsewhere(undefined, one), isElsewhere(one, undefined)], [false, false]);
});
