import assert from "node:assert/strict";
import { test } from "node:test";
import { byCard, FiscalContext, receipt } from "./fiscal-context.ts";

/** Tests src/lab/emulator/fiscal/document.ts. */

const items = (...amounts: readonly (number | bigint)[]) => ({ items: amounts.map((itemAmount) => ({ itemAmount })) });
const extra = (code: string, amount: number) => ({ extraPayments: [{ code, amount }] });

test("/sale answers with a closed and printed document", () => {
  const context = new FiscalContext();
  const answer = context.done("/sale", receipt("A", 150));
  assert.deepEqual(answer, {
    documentID: 1n,
    documentExtID: "A",
    fiscalID: "EMU00000001",
    fiscalNum: "1",
    fiscalUrl: "https://receipt.invalid/1",
    docTime: "2024-05-06 07:08:09",
    printTime: "2024-05-06 07:08:09",
    docStatus: 1n,
    totalPayments: [{ code: "cash", amount: 150n }],
    currency_name: "XTS",
    status: "success",
    code: 0n,
  });
  assert.deepEqual(context.begun, [{ route: "/sale", amount: 150n }]);
  assert.ok(context.changes > 0);
});

test("/sale paid cashless has the card fields, and those of trxParams where they came", () => {
  const context = new FiscalContext();
  const { rrn, auth, cardNum, checkNum } = context.done("/sale", receipt("A", 100, byCard(100)));
  assert.deepEqual([rrn, auth, cardNum, checkNum], ["000000000001", "000001", "411111******1111", "1"]);
  const trxParams = { rrn: "77", cardNumber: "4111111111111111", bankName: "B" };
  const own = context.done("/sale", receipt("B", 100, { extraPayments: [{ code: "CARD", amount: 100, trxParams }] }));
  assert.deepEqual([own["rrn"], own["cardNum"]], ["77", "411111******1111"]);
  assert.equal(context.done("/sale", receipt("C", 100))["rrn"], undefined);
});

test("/sale with a field of another type than the contract's is code 2, and names the field", () => {
  const context = new FiscalContext();
  for (const [body, name] of [
    [{ items: [{ itemAmount: 1.5 }] }, "items[0].itemAmount"],
    [{ items: [{ itemAmount: "100" }] }, "items[0].itemAmount"],
    [{ items: [{ itemAmount: 2n ** 63n }] }, "items[0].itemAmount"],
    [{ items: [{}, { itemQty: 2n ** 31n }] }, "items[1].itemQty"],
    [{ items: {} }, "items"],
    [{ items: [1] }, "items[0]"],
    [{ ...items(1), employeeName: {} }, "employeeName"],
    [{ ...items(1), wsName: ["W"] }, "wsName"],
    [{ ...items(1), docNumber: true }, "docNumber"],
    [{ ...items(1), extraPayments: [{ code: "CARD", trxParams: { bankName: {} } }] }, "extraPayments[0].trxParams.bankName"],
    [{ ...items(1), payments: 5 }, "payments"],
    [{ ...items(1), payments: { cashAmount: true } }, "payments.cashAmount"],
    [{ ...items(1), extraPayments: { code: "CARD" } }, "extraPayments"],
    [{ ...items(1), documentID: "x" }, "documentID"],
    [{ ...items(1), documentExtID: [] }, "documentExtID"],
    [{ items: [{ itemTaxes: [{ taxPrc: 10_001 }] }] }, "items[0].itemTaxes[0].taxPrc"],
  ] as const) {
    const { code, message } = context.ask("/sale", body);
    assert.equal(code, 2n, name);
    assert.ok(String(message).startsWith(`Cannot answer /sale: ${name} is `), String(message));
  }
  assert.deepEqual(context.begun, []);
});

test("/sale with a negative amount anywhere is code 4", () => {
  const context = new FiscalContext();
  for (const body of [
    items(-1),
    { items: [{ itemAmount: 1, itemPrice: -1 }] },
    { items: [{ itemAmount: 1, itemQty: -1000 }] },
    { items: [{ itemAmount: 1, itemTaxes: [{ taxPrc: -1 }] }] },
    { ...items(1), payments: { cashAmount: 2, bonusesAmount: -1 } },
    { ...items(1), ...extra("CARD", -1) },
  ]) {
    assert.equal(context.code("/sale", body), 4, JSON.stringify(body));
  }
});

test("/sale holds itemPrice x itemQty against itemAmount, rounded half up (4)", () => {
  const context = new FiscalContext();
  const line = (itemPrice: number, itemQty: number, itemAmount: number, more = {}) => ({
    items: [{ itemPrice, itemQty, itemAmount, ...more }],
  });
  assert.equal(context.code("/sale", line(333, 1500, 500)), 0);
  assert.equal(context.code("/sale", line(333, 1500, 499)), 4);
  assert.equal(context.code("/sale", line(333, 1499, 499)), 0);
  assert.equal(context.code("/sale", line(100, 2000, 150, { discount: 50 })), 0);
  assert.equal(context.code("/sale", line(100, 2000, 151, { discount: 50 })), 4);
  assert.equal(context.code("/sale", { items: [{ itemPrice: 9, itemAmount: 100 }] }), 0, "without itemQty it only informs");
});

test("/sale adds amounts up exactly beyond 2^53, and refuses what leaves 64 bits (4)", () => {
  const context = new FiscalContext();
  const large = 2n ** 53n + 1n;
  const { totalPayments } = context.done("/sale", { ...items(large, 100), documentExtID: "A" });
  assert.deepEqual(totalPayments, [{ code: "cash", amount: large + 100n }]);
  assert.equal(context.done("/check_shift")["cash"], large + 100n);
  assert.equal(context.code("/sale", items(2n ** 63n - 1n, 1)), 4);
  assert.equal(context.code("/sale", items(2n ** 63n - 1n - large)), 4, "the drawer couldn't hold it");
  assert.equal(
    context.code("/sale", { ...items(2n ** 63n - 1n - large), ...byCard(2n ** 63n - 1n - large) }),
    4,
    "nor the shift",
  );
});

test("/sale is paid in cash when nothing is said about payments, and not when they are empty (8)", () => {
  const context = new FiscalContext();
  assert.deepEqual(context.done("/sale", items(100))["totalPayments"], [{ code: "cash", amount: 100n }]);
  assert.equal(context.code("/sale", { ...items(100), payments: {} }), 8);
  assert.equal(context.code("/sale", { ...items(100), ...extra("CARD", 99) }), 8);
  assert.equal(context.code("/sale", { ...items(100), payments: { cashAmount: 50, bonusesAmount: 49 } }), 8);
});

test("/sale gives change from cash only (11)", () => {
  const context = new FiscalContext();
  const paid = { payments: { cashAmount: 80, cashlessAmount: 50 } };
  const { totalPayments } = context.done("/sale", { ...items(100), ...paid });
  assert.deepEqual(
    (Array.isArray(totalPayments) ? totalPayments : []).map(({ code, amount }) => [code, amount]),
    [
      ["cash", 50n],
      ["cashless", 50n],
    ],
  );
  assert.equal(context.done("/check_shift")["cash"], 50n);
  assert.equal(context.code("/sale", { ...items(100), payments: { cashAmount: 20, cashlessAmount: 101 } }), 11);
  assert.equal(context.code("/sale", { ...items(100), payments: { prepaymentAmount: 101 } }), 11);
});

test("/sale knows some extraPayments codes: another is 7, and one without a code is cashless", () => {
  const context = new FiscalContext();
  for (const code of ["CARD", "QR", "PALM", "BONUS", "GIFT"]) {
    assert.equal(context.code("/sale", { ...items(100), ...extra(code, 100) }), 0, code);
  }
  assert.equal(context.code("/sale", { ...items(100), ...extra("CHEQUE", 100) }), 7);
  for (const code of [{}, { code: null }, { code: "" }]) {
    const { totalPayments } = context.done("/sale", { ...items(100), extraPayments: [{ ...code, amount: 100 }] });
    assert.ok(Array.isArray(totalPayments));
    assert.equal(totalPayments[0].code, "cashless");
  }
});

test("/refund takes its sale by documentID, fiscalID or fiscalNum; an unknown one, and what is no sale, is code 9", () => {
  const context = new FiscalContext();
  context.done("/deposit", { documentExtID: "D", amount: 1000 });
  const { documentID, fiscalID, fiscalNum } = context.done("/sale", receipt("A", 400));
  assert.equal(context.code("/refund", receipt("B", 100, { parentDocID: String(documentID) })), 0);
  assert.equal(context.code("/refund", receipt("C", 100, { parentDocID: fiscalID })), 0);
  assert.equal(context.code("/refund", receipt("E", 100, { parentDocNum: fiscalNum })), 0);
  assert.equal(context.code("/refund", receipt("F", 100, { parentDocID: documentID, parentDocNum: fiscalNum })), 0);
  assert.equal(context.code("/refund", receipt("G", 100, { parentDocID: "99" })), 9);
  assert.equal(context.code("/refund", receipt("G", 100, { parentDocID: "1" })), 9, "a deposit");
  assert.equal(context.code("/refund", receipt("G", 100, { parentDocID: "2", parentDocNum: "1" })), 9, "two documents");
  assert.equal(context.code("/refund", receipt("G", 100, { parentDocNum: "undefined" })), 9);
  assert.equal(context.code("/refund", receipt("G", 100)), 0, "without a parent");
});

test("/refund never gives back more than its sale came to, in several refunds either (4)", () => {
  const context = new FiscalContext();
  context.done("/deposit", { amount: 1000 });
  context.done("/sale", receipt("A", 100));
  assert.equal(context.code("/refund", receipt("B", 101, { parentDocID: "2" })), 4);
  assert.equal(context.code("/refund", receipt("B", 60, { parentDocID: "2" })), 0);
  assert.equal(context.code("/refund", receipt("C", 41, { parentDocID: "2" })), 4);
  assert.equal(context.code("/refund", receipt("C", 40, { parentDocID: "2" })), 0);
  assert.equal(context.code("/refund", receipt("E", 1, { parentDocID: "2" })), 4);
});

test("/refund counts what is still processing against its sale, until it is aborted", () => {
  const context = new FiscalContext();
  context.done("/sale", receipt("A", 200));
  assert.equal(context.code("/refund", receipt("B", 144, { parentDocID: "1" })), 44);
  assert.equal(context.code("/refund", receipt("C", 57, { parentDocID: "1" })), 4);
  context.done("/abort", { documentExtID: "B" });
  assert.equal(context.code("/refund", receipt("C", 57, { parentDocID: "1" })), 0);
});

test("/refund of a sale that is still processing is code 10, and nothing of the refund goes on", () => {
  const context = new FiscalContext();
  assert.equal(context.code("/sale", receipt("A", 144)), 44);
  assert.equal(context.code("/refund", receipt("B", 1, { parentDocID: "1" })), 10);
  assert.equal(context.code("/check_status", { documentExtID: "B" }), 9);
});

test("/refund in cash gives no more than the drawer holds (4); a cashless one needs none", () => {
  const context = new FiscalContext();
  assert.equal(context.code("/refund", receipt("A", 100)), 4);
  assert.equal(context.code("/refund", receipt("A", 100, byCard(100))), 0);
});
