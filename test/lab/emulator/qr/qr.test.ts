import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../../src/core/json-object.ts";
import { writeExact } from "../../../../src/lab/emulator/exact-json.ts";
import { emulatedQr } from "../../../../src/lab/emulator/qr/qr.ts";
import { rememberedBytesMax } from "../../../../src/lab/emulator/service-context.ts";
import { dataOf, ServiceUnderTest } from "../service-under-test.ts";

const qr = () => new ServiceUnderTest("qr", emulatedQr);

const show = { pay_id: "Q-1", amount: 1000n, currency: "944", currency_name: "AZN", pay_system: "QRPAY" };

/** Shows a payment; what the till then names it by. */
function shownBy(under: ServiceUnderTest, more: JsonObject = {}) {
  const { pay_id, pay_system } = { ...show, ...more };
  const { trans } = dataOf(under.ask("/showqrcode", { ...show, ...more }));
  return { pay_id, pay_system, trans: trans ?? pay_id };
}

/** Shows a payment that is paid; what a request to give it back consists of. */
function paidBy(under: ServiceUnderTest, more: JsonObject = {}) {
  const named = shownBy(under, more);
  under.context.nowMs += 2000;
  const { rrn } = dataOf(under.ask("/check", named));
  assert.equal(typeof rrn, "string");
  return { ...named, rrn, amount: 1000n, currency: "944" };
}

for (const [digits, words] of [
  [20n, /declined/],
  [21n, /cancelled/],
  [30n, /reversed/],
  [54n, /nobody paid/],
] as const) {
  test(`/check ends with code 1 for an amount that ends in ${digits}`, () => {
    const under = qr();
    const named = shownBy(under, { amount: digits });
    under.accepted("/check", named);
    assert.equal(under.refused("/check", named), 1);
    assert.match(String(under.ask("/check", named)["message"]), words);
  });
}

test("a payment that nobody asks about ends 2 s after its start for each question", () => {
  const under = qr();
  const named = shownBy(under, { amount: 44n });
  under.context.nowMs += 5999;
  under.accepted("/check", named);
  under.context.nowMs += 1;
  assert.ok(dataOf(under.ask("/check", named))["rrn"]);
});

test("the same pay_id shows the same payment; with another amount, currency or system it is refused", () => {
  const under = qr();
  const first = under.ask("/showqrcode", show);
  assert.deepEqual(under.ask("/showqrcode", show), first);
  for (const other of [{ amount: 999n }, { currency: "978" }, { pay_system: "PALM" }]) {
    assert.equal(under.refused("/showqrcode", { ...show, ...other }), 1);
  }
  under.context.nowMs += 2000;
  assert.deepEqual(under.ask("/showqrcode", show), first);
  assert.deepEqual(under.context.begun, ["/showqrcode"]);
});

test("pay_system is case-sensitive, must serve the route, and must be the payment's", () => {
  const under = qr();
  assert.equal(under.refused("/showqrcode", { ...show, pay_system: "qrpay" }), 1);
  const basic = paidBy(under, { pay_system: "QRBASIC" });
  for (const route of ["/cancel", "/refund", "/final_confirm"]) assert.equal(under.refused(route, basic), 1);
  assert.match(String(under.ask("/refund", basic)["message"]), /does not serve/);
  assert.equal(under.refused("/check", { ...basic, pay_system: "QRPAY" }), 1);
});

test("a system that makes no trans takes the till's, and holds the payment to it", () => {
  const under = qr();
  under.accepted("/showqrcode", { ...show, pay_system: "PALM" });
  assert.equal(
    under.refused("/check", { pay_id: "Q-1", trans: "OTHER", pay_system: "QRPAY" }),
    1,
    "held by its own system only",
  );
  const named = { pay_id: "Q-1", trans: "T-1", pay_system: "PALM" };
  under.accepted("/check", named);
  under.restart();
  assert.equal(under.refused("/check", { ...named, trans: "Q-1" }), 1);
  assert.ok(dataOf(under.ask("/check", named))["rrn"]);
});

test("/refund gives back parts up to what was paid, and the very same request gives back once more", () => {
  const under = qr();
  const back = { ...paidBy(under), amount: 400n };
  const first = dataOf(under.ask("/refund", back))["rrn"];
  const second = dataOf(under.ask("/refund", back))["rrn"];
  assert.equal(new Set([back.rrn, first, second]).size, 3);
  under.restart();
  assert.equal(under.refused("/refund", back), 1);
  assert.ok(dataOf(under.ask("/refund", { ...back, amount: 200n }))["rrn"]);
  assert.equal(under.refused("/refund", { ...back, amount: 1n }), 1);
});

test("/cancel gives back up to what is left, and nothing is given back after it", () => {
  const under = qr();
  const back = paidBy(under);
  assert.ok(dataOf(under.ask("/refund", { ...back, amount: 100n }))["rrn"]);
  assert.equal(under.refused("/cancel", { ...back, amount: 901n }), 1);
  assert.ok(dataOf(under.ask("/cancel", { ...back, amount: 400n }))["rrn"]);
  under.restart();
  assert.equal(under.refused("/cancel", { ...back, amount: 400n }), 1);
  assert.equal(under.refused("/refund", { ...back, amount: 1n }), 1);
});

test("only what is paid is given back, by its own rrn and in its own currency", () => {
  const under = qr();
  const running = { ...shownBy(under, { pay_id: "Q-9" }), rrn: "000000000001", amount: 1000n, currency: "944" };
  assert.equal(under.refused("/cancel", running), 1);
  const back = paidBy(under);
  assert.equal(under.refused("/refund", { ...back, rrn: running.rrn }), 1);
  assert.equal(under.refused("/refund", { ...back, currency: "978" }), 1);
  const declined = { ...shownBy(under, { pay_id: "Q-8", amount: 20n }), rrn: "000000000003", amount: 20n, currency: "944" };
  under.context.nowMs += 2000;
  assert.equal(under.refused("/refund", declined), 1);
  assert.match(String(under.ask("/refund", declined)["message"]), /was not paid/);
});

test("/final_confirm asks for pay_system alone, and holds what else it names to a payment that is paid", () => {
  const under = qr();
  under.accepted("/final_confirm", { pay_system: "QRPAY" });
  const running = shownBy(under, { pay_id: "Q-9" });
  assert.equal(under.refused("/final_confirm", running), 1);
  const paid = paidBy(under);
  under.accepted("/final_confirm", { ...paid, fiscal_id: "F", fiscal_num: "1", fiscal_url: "https://fiscal.example/1" });
  under.accepted("/final_confirm", { pay_system: "QRPAY", pay_id: "Q-1" });
  for (const other of [{ pay_id: "Q-3" }, { trans: "T" }, { rrn: "1" }, { amount: "1" }, { fiscal_id: {} }]) {
    assert.equal(under.refused("/final_confirm", { ...paid, ...other }), 1);
  }
});

test("in-doubt: code 1, though the payment runs on, and what is given back is given back", () => {
  const under = qr();
  assert.equal(under.refused("/showqrcode", { ...show, amount: 1003n }), 1);
  const back = { ...paidBy(under, { amount: 1003n }), amount: 503n };
  assert.equal(under.refused("/refund", back), 1);
  assert.equal(under.refused("/refund", { ...back, amount: 501n }), 1);
  assert.ok(dataOf(under.ask("/refund", { ...back, amount: 500n }))["rrn"]);
});

test("internal-error: code 1 and nothing begins, and the same request succeeds next time", () => {
  const under = qr();
  const asked = { ...show, amount: 1005n };
  assert.equal(under.refused("/showqrcode", asked), 1);
  assert.equal(under.refused("/check", { ...show, trans: "EMU000000000001" }), 1);
  under.restart();
  const back = { ...paidBy(under, asked), amount: 1005n };
  assert.equal(under.refused("/cancel", back), 1);
  assert.equal(under.refused("/refund", { ...back, amount: 5n }), 1, "another request");
  assert.ok(dataOf(under.ask("/cancel", back))["rrn"]);
  const confirm = { pay_system: "QRPAY", amount: 5n };
  assert.equal(under.refused("/final_confirm", confirm), 1);
  under.accepted("/final_confirm", confirm);
});

test("a declined refund gives nothing back", () => {
  const under = qr();
  const back = paidBy(under);
  assert.equal(under.refused("/refund", { ...back, amount: 520n }), 1);
  assert.ok(dataOf(under.ask("/cancel", back))["rrn"]);
});

test("amounts beyond 2^53 are exact", () => {
  const under = qr();
  const amount = 2n ** 63n - 1n;
  const back = paidBy(under, { amount });
  assert.ok(dataOf(under.ask("/refund", { ...back, amount: amount - 7n }))["rrn"]);
  under.restart();
  assert.equal(under.refused("/refund", { ...back, amount: 8n }), 1);
  assert.ok(dataOf(under.ask("/refund", { ...back, amount: 7n }))["rrn"]);
});

test("reset() forgets everything, and changed() is called for what changed", () => {
  const under = qr();
  const fresh = under.service.saved();
  const named = shownBy(under);
  const { changes } = under.context;
  under.accepted("/check", named);
  assert.ok(under.context.changes > changes);
  under.service.reset();
  assert.deepEqual(under.service.saved(), fresh);
  assert.equal(under.refused("/check", named), 1);
});

test("no more than rememberedBytesMax are remembered, however long the trans are that tills choose", () => {
  const under = qr();
  for (let number = 0; number < rememberedBytesMax / 100_000; number += 1) {
    const named = { pay_id: `Q-${number}`, pay_system: "PALM" };
    under.service.answer("/showqrcode", { ...show, ...named });
    under.service.answer("/check", { ...named, trans: "T".repeat(200_000) });
  }
  assert.ok(writeExact(under.service.saved()).length < 1.1 * rememberedBytesMax);
});
