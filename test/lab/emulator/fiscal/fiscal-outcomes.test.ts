import assert from "node:assert/strict";
import { test } from "node:test";
import { byCard, FiscalContext, receipt } from "./fiscal-context.ts";

/** Tests src/lab/emulator/fiscal/fiscal.ts. */

test("/sale in doubt answers code 5, and the document is closed all the same", () => {
  const context = new FiscalContext();
  assert.equal(context.code("/sale", receipt("A", 103)), 5);
  assert.equal(context.done("/check_status", { documentExtID: "A" })["docStatus"], 1n);
  assert.equal(context.done("/sale", receipt("A", 103))["documentID"], 1n);
  assert.equal(context.done("/x_report")["saleCount"], 1n);
  assert.equal(context.begun.length, 1, "a resend begins nothing");
});

test("/sale with an internal error is rolled back, and the same request succeeds next time", () => {
  const context = new FiscalContext();
  for (const key of [{ documentExtID: "A" }, { documentID: 77 }, {}]) {
    const sale = { ...receipt("", 105), ...key };
    const before = context.done("/x_report")["saleCount"];
    assert.equal(context.code("/sale", sale), 5, JSON.stringify(key));
    assert.equal(context.done("/x_report")["saleCount"], before);
    if (Object.keys(key).length > 0) assert.equal(context.code("/check_status", key), 9);
    assert.equal(context.code("/sale", sale), 0, JSON.stringify(key));
  }
});

test("/deposit with an internal error is rolled back: /check_status says 9, the resend succeeds", () => {
  const context = new FiscalContext();
  const deposit = { documentExtID: "D", amount: 105 };
  assert.equal(context.code("/deposit", deposit), 5);
  assert.equal(context.code("/check_status", { documentExtID: "D" }), 9);
  assert.equal(context.code("/deposit", deposit), 0);
  assert.equal(context.done("/check_status", { documentExtID: "D" })["docStatus"], 1n);
  assert.equal(context.done("/check_shift")["cash"], 105n);
});

test("/sale that isn't printed is code 15 and kept; /check_status has it closed, and /check_copy prints it", () => {
  const context = new FiscalContext();
  const answer = context.ask("/sale", receipt("A", 115));
  assert.deepEqual([answer["code"], answer["printError"], answer["documentExtID"]], [15n, 1n, "A"]);
  const status = context.done("/check_status", { documentExtID: "A" });
  assert.deepEqual([status["docStatus"], status["printTime"], status["printError"]], [1n, undefined, 1n]);
  assert.deepEqual(context.done("/sale", receipt("A", 115)), status, "a resend answers the same");
  context.time += 60_000;
  const copy = context.done("/check_copy", { documentID: status["documentID"] });
  assert.equal(copy["printTime"], "2024-05-06 07:09:09");
  const printed = context.done("/check_status", { documentExtID: "A" });
  assert.deepEqual([printed["printTime"], printed["printError"]], ["2024-05-06 07:09:09", undefined]);
  context.time += 60_000;
  assert.deepEqual(context.done("/check_copy", { documentID: status["documentID"] }), copy, "printed once");
  assert.equal(context.done("/x_report")["saleCount"], 1n);
});

test("/sale whose card fails is code 8 and nothing is kept of it; one in cash goes well", () => {
  for (const amount of [120, 121, 130, 154]) {
    const context = new FiscalContext();
    assert.equal(context.code("/sale", receipt("A", amount, byCard(amount))), 8, String(amount));
    assert.equal(context.code("/check_status", { documentExtID: "A" }), 9);
    assert.equal(context.code("/sale", receipt("B", amount)), 0);
    assert.equal(context.code("/deposit", { documentExtID: "D", amount }), 0);
  }
});

test("/sale without a bank terminal is code 23 when paid by card, in part too; one in cash goes well", () => {
  const context = new FiscalContext();
  assert.equal(context.code("/sale", receipt("A", 123, { payments: { cashAmount: 122, cashlessAmount: 1 } })), 23);
  assert.equal(context.code("/check_status", { documentExtID: "A" }), 9);
  assert.equal(context.code("/sale", receipt("A", 123)), 0);
});

test("/sale that is slow is code 44, then docStatus 0 as often as it says, then closed and counted", () => {
  for (const [amount, checks] of [
    [144, 3],
    [161, 1],
    [169, 9],
  ] as const) {
    const context = new FiscalContext();
    const answer = context.ask("/sale", receipt("A", amount));
    assert.deepEqual([answer["code"], answer["documentExtID"], answer["docStatus"]], [44n, "A", 0n]);
    for (let check = 0; check < checks; check++) {
      const status = context.done("/check_status", { documentExtID: "A" });
      assert.deepEqual([status["docStatus"], status["fiscalNum"]], [0n, undefined]);
      assert.equal(context.code("/sale", receipt("A", amount)), 44, "a resend is no question");
      assert.equal(context.done("/x_report")["saleCount"], 0n);
      assert.equal(context.done("/check_copy", { documentID: 1 })["docStatus"], 0n);
    }
    assert.equal(context.done("/check_status", { documentID: 1 })["docStatus"], 1n);
    assert.equal(context.done("/x_report")["saleSum"], BigInt(amount));
    assert.equal(context.done("/sale", receipt("A", amount))["docStatus"], 1n);
  }
});

test("/withdraw counts what other withdrawals that are processing will take", () => {
  const context = new FiscalContext();
  context.done("/deposit", { amount: 200 });
  assert.equal(context.code("/withdraw", { documentExtID: "A", amount: 144 }), 44);
  assert.equal(context.code("/withdraw", { documentExtID: "B", amount: 57 }), 4);
  assert.equal(context.code("/withdraw", { documentExtID: "B", amount: 56 }), 0);
  for (let check = 0; check < 4; check++) context.done("/check_status", { documentExtID: "A" });
  assert.equal(context.done("/check_shift")["cash"], 0n);
});

test("a resend answers what the first request did, and a second document is never made", () => {
  const context = new FiscalContext();
  const sale = context.done("/sale", receipt("A", 100));
  context.time += 5000;
  assert.deepEqual(context.done("/sale", receipt("A", 100)), sale);
  assert.deepEqual(context.done("/sale", { ...receipt("", 100), documentID: sale["documentID"] }), sale, "by documentID");
  assert.deepEqual(context.done("/sale", { ...receipt("", 100), documentID: "1" }), sale, "by documentID as a string");
  context.done("/close_shift");
  assert.deepEqual(context.done("/sale", receipt("A", 100)), sale, "after the shift");
  assert.equal(context.begun.length, 1);
});

test("a resend finds a documentExtID that came as a number under its text, and the other way round", () => {
  const context = new FiscalContext();
  const sale = context.done("/sale", { ...receipt("", 100), documentExtID: 5 });
  assert.deepEqual(context.done("/sale", receipt("5", 100)), sale);
});

test("a documentID that the till made up is its document's, so that it can be found again; 0 is none", () => {
  const context = new FiscalContext();
  const deposit = { documentID: 2, amount: 100 };
  assert.equal(context.done("/deposit", deposit)["documentID"], 2n);
  assert.equal(context.done("/deposit", deposit)["documentID"], 2n);
  assert.equal(context.done("/deposit", { documentID: 0, amount: 100 })["documentID"], 1n);
  assert.equal(context.done("/deposit", { documentID: 0, amount: 100 })["documentID"], 3n, "2 is taken");
  assert.equal(context.done("/check_shift")["cash"], 300n);
});

test("a key of another kind, of another amount of cash, or of two documents is code 4", () => {
  const context = new FiscalContext();
  context.done("/sale", receipt("A", 100));
  context.done("/deposit", { documentExtID: "D", amount: 100 });
  assert.equal(context.code("/refund", receipt("A", 100)), 4);
  assert.equal(context.code("/deposit", { documentExtID: "A", amount: 100 }), 4);
  assert.equal(context.code("/withdraw", { documentExtID: "D", amount: 100 }), 4);
  assert.equal(context.code("/deposit", { documentExtID: "D", amount: 99 }), 4);
  assert.equal(context.code("/sale", receipt("B", 100, { documentID: 1 })), 4);
  assert.equal(context.code("/check_status", { documentExtID: "B", documentID: 1 }), 9);
  assert.equal(context.done("/check_shift")["cash"], 200n);
});

test("/check_copy has the items as they were sent, and needs documentID (3, 9)", () => {
  const context = new FiscalContext();
  const line = { itemId: "1", itemName: "Tea", itemUnit: "kg", itemQty: 500n, itemPrice: 200n, itemAmount: 100n, discount: 0n };
  context.done("/sale", { documentExtID: "A", items: [{ ...line, itemBarcode: "x" }] });
  const { items, totalPayments, fiscalNum } = context.done("/check_copy", { documentID: 1 });
  assert.deepEqual([items, totalPayments, fiscalNum], [[line], [{ code: "cash", amount: 100n }], "1"]);
  assert.equal(context.code("/check_copy", { documentExtID: "A" }), 3);
  assert.equal(context.code("/check_copy", { documentID: 2 }), 9);
});

test("/abort removes what is processing, and nothing else", () => {
  const context = new FiscalContext();
  assert.equal(context.code("/sale", receipt("A", 144)), 44);
  assert.deepEqual(context.done("/abort", { documentExtID: "A", amount: 144 }), { status: "success", code: 0n });
  assert.equal(context.code("/check_status", { documentExtID: "A" }), 9);
  assert.equal(context.code("/abort", { documentExtID: "A" }), 9);
  context.done("/sale", receipt("B", 100));
  assert.equal(context.code("/abort", { documentExtID: "B" }), 5);
  assert.equal(context.code("/abort", { documentID: 1 }), 3);
  assert.equal(context.done("/x_report")["saleCount"], 1n);
});
