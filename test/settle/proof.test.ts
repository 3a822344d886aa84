import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { recoveryOf } from "../../src/contract/recovery.ts";
import { type FollowedOperation, fingerprintOf, saysPending, verdictIn } from "../../src/settle/proof.ts";

const recovery = recoveryOf("bank", "/sale");
assert.ok(recovery);
const sale: FollowedOperation = { contract: contracts.bank, recovery, keyField: "pay_id", key: "A-1", asks: true };

test("verdictIn() takes no name that every object has for an end (found by fuzzing)", () => {
  for (const status of ["constructor", "toString", "hasOwnProperty", "__proto__"]) {
    for (const isSuccess of [true, false]) {
      const reply = { status: isSuccess ? "success" : "error", code: -20, data: { status } };
      assert.equal(verdictIn(sale, reply, isSuccess), undefined, status);
      assert.equal(fingerprintOf(sale, reply), undefined, status);
    }
    const reply = { status: "success", data: { status } };
    const summary = { code: undefined, message: undefined, httpStatus: undefined, reason: undefined };
    assert.equal(saysPending(sale, { outcome: "answered", success: true, reply, summary }), true, status);
  }
});

test("verdictIn() takes the contract's own words for ends", () => {
  const ends = ["APPROVED", "ERROR", "REVERSED"].map((status) => verdictIn(sale, { data: { status } }, status === "APPROVED"));
  assert.deepEqual(ends, ["approved", "declined", "reversed"]);
});
