import assert from "node:assert/strict";
import { test } from "node:test";
import { parseExact, writeExact } from "../../src/emulator/exact-json.ts";
import { StateError } from "../../src/emulator/world.ts";
import { byCard, FiscalWorld, receipt } from "./fiscal-world.ts";

/** A world that remembers something of every kind. */
function usedWorld(): FiscalWorld {
  const world = new FiscalWorld();
  const taxed = [
    { itemId: "1", itemName: "Tea", itemQty: 500, itemPrice: 200, itemAmount: 100, itemTaxes: [{ taxPrc: 1800 }] },
  ];
  world.done("/deposit", { documentExtID: "D", amount: 2n ** 60n });
  world.done("/sale", { documentExtID: "A", items: taxed });
  world.done("/refund", receipt("B", 40, { parentDocID: "2", ...byCard(40) }));
  const extraPayments = [{ code: "CARD", amount: 100, trxParams: { rrn: "77", cardNumber: "4***1" } }];
  world.done("/sale", receipt("C", 100, { extraPayments }));
  assert.equal(world.code("/sale", receipt("S", 144)), 44);
  assert.equal(world.code("/sale", receipt("P", 115)), 15);
  assert.equal(world.code("/sale", receipt("R", 105)), 5);
  world.done("/close_shift", { openOrdersOperation: "renew" });
  world.done("/open_shift");
  world.done("/withdraw", { documentExtID: "W", amount: 50 });
  return world;
}

/** Everything that can be asked without knowing more than keys. */
function answers(world: FiscalWorld): readonly unknown[] {
  const keys = ["A", "B", "C", "D", "P", "S", "S", "S", "S", "W"];
  return [
    world.ask("/refund", receipt("X", 61, { parentDocID: "2", ...byCard(61) })),
    world.ask("/refund", receipt("Y", 60, { parentDocID: "EMU00000002", ...byCard(60) })),
    ...keys.map((documentExtID) => world.ask("/check_status", { documentExtID })),
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((documentID) => world.ask("/check_copy", { documentID })),
    world.ask("/sale", receipt("R", 105)),
    world.ask("/sale", receipt("N", 100)),
    world.ask("/dates_report"),
    world.ask("/check_shift"),
    world.ask("/close_shift"),
  ];
}

test("a restored service answers as the one that was saved would have", () => {
  const world = usedWorld();
  const restored = world.restored();
  assert.equal(writeExact(restored.service.saved()), writeExact(world.service.saved()));
  assert.equal(restored.changes, 0);
  assert.deepEqual(answers(restored), answers(world));
  assert.equal(writeExact(restored.service.saved()), writeExact(world.service.saved()));
});

test("restore forgets what was there before, and reset forgets all", () => {
  const world = usedWorld();
  const fresh = writeExact(new FiscalWorld().service.saved());
  world.service.restore(parseExact(fresh) ?? {});
  assert.equal(writeExact(world.service.saved()), fresh);
  const other = usedWorld();
  const { changes } = other;
  other.service.reset();
  assert.equal(writeExact(other.service.saved()), fresh);
  assert.ok(other.changes > changes);
});

test("restore refuses what can't be, names its place, and leaves everything as it was", () => {
  const world = usedWorld();
  const saved = writeExact(world.service.saved());
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
      () => world.service.restore(wrong),
      (error) => {
        assert.ok(error instanceof StateError);
        assert.equal(error.message, message);
        return true;
      },
      to,
    );
    assert.equal(writeExact(world.service.saved()), saved);
  }
});
