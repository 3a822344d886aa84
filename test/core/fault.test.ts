import assert from "node:assert/strict";
import { test } from "node:test";
import { checkFirst, Fault, faultClasses, faultReasons, isFaultReason, retryAfterS } from "../../src/core/fault.ts";

test("Fault has the status and outcome of its kind, and its details", () => {
  const fault = new Fault("timeout", "Cannot answer: no reply came", { lineMs: 30_000 });
  assert.ok(fault instanceof Error);
  assert.deepEqual([fault.name, fault.httpStatus, fault.outcome], ["Fault", 504, "unknown"]);
  assert.deepEqual(fault.details, { lineMs: 30_000 });
  assert.deepEqual(new Fault("key", "x").details, {});
});

test("checkFirst says for each service which route tells the truth, and never to send again at once", () => {
  for (const advice of Object.values(checkFirst))
    assert.match(advice, /^Outcome unknown, it may have been carried out: call \/check(_status)? with the same /);
});

test("Fault.reason is its kind's unless its details say more, and always one of the list", () => {
  assert.equal(new Fault("timeout", "x").reason, "no-reply");
  assert.equal(new Fault("unavailable", "x", { reason: "line-down" }).reason, "line-down");
  assert.equal(new Fault("unavailable", "x", { reason: undefined }).reason, "internal-error");
  for (const { reason } of Object.values(faultClasses)) assert.ok(reason in faultReasons, reason);
});

test("retryAfterS names only reasons of calls that were not sent, in whole seconds", () => {
  for (const [reason, seconds] of Object.entries(retryAfterS)) {
    assert.ok(Number.isInteger(seconds) && seconds > 0, reason);
    // Those of what was sent say so.
    assert.doesNotMatch(isFaultReason(reason) ? faultReasons[reason] : "", /^sent/, reason);
  }
});

test("Fault.retryAfterS is what its reason says, or its details, and nothing once it was sent", () => {
  assert.equal(new Fault("unavailable", "x", { reason: "stopping" }).retryAfterS, retryAfterS.stopping);
  assert.equal(new Fault("unavailable", "x", { reason: "stopping", retryAfterS: 30 }).retryAfterS, 30);
  assert.equal(new Fault("malformed", "x").retryAfterS, undefined);
  assert.equal(new Fault("broken", "x", { reason: "stopping" }).retryAfterS, undefined);
});
