import assert from "node:assert/strict";
import { test } from "node:test";
import { innerOf } from "../service-under-test.ts";
import { approved, bank, finalOf, sale, statusAtEnd } from "./bank-till.ts";

/** Tests src/lab/emulator/bank/bank.ts. */

for (const route of ["/confirm", "/cancel", "/refund"]) {
  test(`${route} refuses without rrn with -29, with an unknown one with -16`, () => {
    const under = bank();
    assert.equal(under.refused(route, sale), -29);
    assert.equal(under.refused(route, { ...sale, rrn: "000000000001" }), -16);
    under.accepted("/preauth", { ...sale, pay_id: "A" });
    under.accepted("/sale", { ...sale, pay_id: "B" });
    assert.equal(under.refused(route, { ...sale, rrn: "000000000001" }), -16, "not approved yet");
  });
}

test("/confirm goes with a preauth, /refund with a sale or confirm, /cancel with any of them", () => {
  const under = bank();
  const preauth = approved(under, "/preauth", { ...sale, pay_id: "A" });
  const paid = approved(under, "/sale", { ...sale, pay_id: "B" });
  assert.equal(under.refused("/confirm", { ...sale, rrn: paid }), -16);
  assert.equal(under.refused("/refund", { ...sale, rrn: preauth }), -16);
  const confirmed = approved(under, "/confirm", { ...sale, pay_id: "C", amount: 900n, rrn: preauth });
  const refund = approved(under, "/refund", { ...sale, pay_id: "D", amount: 400n, rrn: confirmed });
  const cancel = approved(under, "/cancel", { ...sale, pay_id: "E", amount: 400n, rrn: refund });
  assert.equal(under.refused("/cancel", { ...sale, rrn: cancel }), -16);
  assert.equal(under.refused("/cancel", { ...sale, rrn: paid, currency_name: "EUR" }), -29);
});

test("what exceeds its original, or comes twice, ends as ERROR -20", () => {
  const under = bank();
  const preauth = approved(under, "/preauth", { ...sale, pay_id: "A" });
  under.accepted("/confirm", { ...sale, pay_id: "B", amount: 1001n, rrn: preauth });
  assert.equal(finalOf(under, "B").code, -20);
  const confirmed = approved(under, "/confirm", { ...sale, pay_id: "C", amount: 900n, rrn: preauth });
  under.accepted("/confirm", { ...sale, pay_id: "D", amount: 1n, rrn: preauth });
  assert.equal(finalOf(under, "D").code, -20);
  approved(under, "/refund", { ...sale, pay_id: "E", amount: 600n, rrn: confirmed });
  under.accepted("/refund", { ...sale, pay_id: "F", amount: 401n, rrn: confirmed });
  assert.equal(finalOf(under, "F").code, -20);
  approved(under, "/cancel", { ...sale, pay_id: "G", amount: 300n, rrn: confirmed });
  for (const route of ["/cancel", "/refund"]) {
    under.accepted(route, { ...sale, pay_id: "H", amount: 1n, rrn: confirmed });
    assert.equal(finalOf(under, "H").code, -20);
  }
});

test("a refund that was cancelled can be made again, as far as it was cancelled", () => {
  const under = bank();
  const rrn = approved(under, "/sale", sale);
  const refund = approved(under, "/refund", { ...sale, pay_id: "A", rrn });
  approved(under, "/cancel", { ...sale, pay_id: "B", amount: 600n, rrn: refund });
  under.accepted("/refund", { ...sale, pay_id: "C", amount: 601n, rrn });
  assert.equal(finalOf(under, "C").code, -20);
  approved(under, "/refund", { ...sale, pay_id: "D", amount: 600n, rrn });
});

test("of two refunds that run at once, the one that ends first is approved", () => {
  const under = bank();
  const rrn = approved(under, "/sale", sale);
  under.accepted("/refund", { ...sale, pay_id: "SLOW", amount: 562n, rrn });
  under.accepted("/refund", { ...sale, pay_id: "FAST", amount: 600n, rrn });
  under.context.nowMs += 60_000;
  assert.equal(statusAtEnd(under, "FAST"), "APPROVED");
  assert.equal(finalOf(under, "SLOW").code, -20);
});

test("/check answers for the latest operation of a pay_id, and an approved sale stays so when it is cancelled", () => {
  const under = bank();
  const rrn = approved(under, "/sale", sale);
  under.accepted("/cancel", { ...sale, rrn });
  under.accepted("/check", { pay_id: "P-1" });
  assert.equal(innerOf(finalOf(under, "P-1"))["operation"], "cancel");
  const other = approved(under, "/sale", { ...sale, pay_id: "A" });
  approved(under, "/cancel", { ...sale, pay_id: "B", rrn: other });
  assert.equal(statusAtEnd(under, "A"), "APPROVED");
});
