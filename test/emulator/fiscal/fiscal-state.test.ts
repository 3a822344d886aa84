import assert from "node:assert/strict";
import { test } from "node:test";
import { parseExact, writeExact } from "../../../src/emulator/exact-json.ts";
import { StateError } from "../../../src/emulator/state-reader.ts";
import { byCard, FiscalContext, receipt } from "./fiscal-context.ts";

/**
 * Tests src/emulator/fiscal/fiscal.ts, src/emulator/state-reader.ts.
 *
 * A context that remembers something of every kind.
 */
function usedWorld(): FiscalContext {
  const context = new FiscalContext();
  const taxed = [
    { itemId: "1", itemName: "Tea", itemQty: 500, itemPrice: 200, itemAmount: 100, itemTaxes: [{ taxPrc: 1800 }] },
  ];
  context.done("/deposit", { documentExtID: "D", amount: 2n ** 60n });
  context.done("/sale", { documentExtID: "A", items: taxed });
  context.done("/refund", receipt("B", 40, { parentDocID: "2", ...byCard(40) }));
  const extraPayments = [{ code: "CARD", amount: 100, trxParams: { rrn: "77", cardNumber: "4***1" } }];
  context.done("/sale", receipt("C", 100, { extraPayments }));
  assert.equal(context.code("/sale", receipt("S", 144)), 44);
  assert.equal(context.code("/sale", receipt("P", 115)), 15);
  assert.equal(context.code("/sale", receipt("R", 105)), 5);
  context.done("/close_shift", { openOrdersOperation: "renew" });
  context.done("/open_shift");
  context.done("/withdraw", { documentExtID: "W", amount: 50 });
  return context;
}

/** Everything that can be asked without knowing more than keys. */
function answers(context: FiscalContext): readonly unknown[] {
  const keys = ["A", "B", "C", "D", "P", "S", "S", "S", "S", "W"];
  return [
    context.ask("/refund", receipt("X", 61, { parentDocID: "2", ...byCard(61) })),
    context.ask("/refund", receipt("Y", 60, { parentDocID: "EMU00000002", ...byCard(60) })),
    ...keys.map((documentExtID) => context.ask("/check_status", { documentExtID })),
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((documentID) => context.ask("/check_copy", { documentID })),
    context.ask("/sale", receipt("R", 105)),
    context.ask("/sale", receipt("N", 100)),
    context.ask("/dates_report"),
    context.ask("/check_shift"),
    context.ask("/close_shift"),
  ];
}

test("a restored service answers as the one that was saved would have", () => {
  const context = usedWorld();
  const restored = context.restored();
  assert.equal(writeExact(restored.service.saved()), writeExact(context.service.saved()));
  assert.equal(restored.changes, 0);
  assert.deepEqual(answers(restored), answers(context));
  assert.equal(writeExact(restored.service.saved()), writeExact(context.service.saved()));
});

test("restore() forgets what was there before, and reset forgets all", () => {
  const context = usedWorld();
  const fresh = writeExact(new FiscalContext().service.saved());
  context.service.restore(parseExact(fresh) ?? {});
  assert.equal(writeExact(context.service.saved()), fresh);
  const other = usedWorld();
  const { changes } = other;
  other.service.reset();
  assert.equal(writeExact(other.service.saved()), fresh);
  assert.ok(other.changes > changes);
});

test("restore refuses what can't be, names its place, and leaves everything as it was", () => {
  const context = usedWorld();
  const saved = writeExact(context.service.saved());
  for (const [from, to, message] of [
    ['"sum":40,', '"sum":"40",', "fiscal.documents[2].sum: must be an integer"],
    ['"sum":40,', '"sum":-1,', "fiscal.documents[2].sum: must not be less than 0"],
    ['"sum":40,', '"sum":41,', "fiscal.documents[2].payments: must add up to the sum"],
    [
      '"sum":40,"payments":[{"code":"cashless","kind":"cashless","amount":40}]',
      '"sum":101,"payments":[{"code":"cashless","kind":"cashless","amount":101}]',
      "fiscal.documents[2].parent: must not be refunded by more than its sum",
    ],
    ['"parent":2', '"parent":1', "fiscal.documents[2].parent: must be a sale"],
    ['"parent":2', '"parent":99', "fiscal.documents[2].parent: must not be greater than 6"],
    ['"kind":"refund"', '"kind":"gift"', "fiscal.documents[2].kind: must be one of sale, refund, deposit, withdraw"],
    [
      '"kind":"cashless"',
      '"kind":"card"',
      "fiscal.documents[2].payments[0].kind: must be one of cash, cashless, credit, bonuses, prepayment",
    ],
    ['"kind":"cash",', '"kind":"credit",', "fiscal.documents[0].payments: must be cash"],
    ['"id":3,', '"id":2,', "fiscal.documents[2].id: must be there once"],
    ['"extId":"B"', '"extId":"A"', "fiscal.documents[2].extId: must be there once"],
    ['"num":3,', '"num":2,', "fiscal.documents[2].closed.num: must be there once"],
    ['"num":3,"shift":1', '"num":3,"shift":9', "fiscal.documents[2].closed.shift: must not be greater than 2"],
    [
      '"docTime":"2024-05-06 07:08:09"',
      '"docTime":"soon"',
      "fiscal.documents[0].docTime: must be a time of the form yyyy-MM-dd HH:mm:ss",
    ],
    ['"itemQty":500', '"itemQty":0.5', "fiscal.documents[1].lines[0].itemQty: must be an integer"],
    ['"vatPercent":1800', '"vatPercent":10001', "fiscal.documents[1].vat[0].vatPercent: must not be greater than 10000"],
    ['"amount":1152921504606846976}', '"amount":3}', "fiscal.documents[0].payments: must add up to the sum"],
    ['"open":true', '"open":"true"', "fiscal.shift.open: must be true or false"],
    ['"lastNum":6', '"lastNum":5', "fiscal.documents[6].closed.num: must not be greater than 5"],
    ['"rolledBack":[', '"rolledBack":[1,', "fiscal.rolledBack[0]: must be a string"],
    ['"documents":[', '"documents":{},"other":[', "fiscal.documents: must be a list"],
    ['"sale":{"count":0', '"sale":{"count":-1', "fiscal.forgotten.totals.sale.count: must not be less than 0"],
    [
      '"sum":50,"payments":[{"code":"cash","kind":"cash","amount":50}]',
      '"sum":1152921504606847976,"payments":[{"code":"cash","kind":"cash","amount":1152921504606847976}]',
      "fiscal.documents: must not take more cash than there was",
    ],
  ] as const) {
    assert.ok(saved.includes(from), `${from} in ${saved}`);
    const wrong = parseExact(saved.replace(from, to));
    assert.ok(wrong, to);
    assert.throws(
      () => context.service.restore(wrong),
      (error) => {
        assert.ok(error instanceof StateError);
        assert.equal(error.message, message);
        return true;
      },
      to,
    );
    assert.equal(writeExact(context.service.saved()), saved);
  }
});
