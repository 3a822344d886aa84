import assert from "node:assert/strict";
import { test } from "node:test";
import "./assert-ok.ts";

test("assert.ok() of what is falsy fails at once and says what it is, or what the test says", () => {
  assert.throws(() => assert.ok(undefined), { name: "AssertionError", message: "it is undefined, and should be truthy" });
  assert.throws(() => assert.ok(0, "none came"), { message: "none came" });
  assert.throws(() => assert.ok(null, new RangeError("none")), RangeError);
  assert.doesNotThrow(() => assert.ok("text"));
});
