import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonObject } from "../../../src/core/json-object.ts";
import { writeExact } from "../../../src/emulator/exact-json.ts";
import { FiscalContext } from "./fiscal-context.ts";
import { type Asked, FiscalModel, type Kind, type Paid } from "./fiscal-model.ts";

/** Tests src/emulator/fiscal/fiscal.ts. */

const none: Paid = { cash: 0n, cashless: 0n, credit: 0n, bonuses: 0n };

/** Ways to pay a sum: what is sent, and what is kept of it or which code refuses it. */
const ways: Readonly<
  Record<string, (sum: bigint) => { readonly sent: JsonObject; readonly paid: Paid; readonly wrong?: number }>
> = {
  unsaid: (sum) => ({ sent: {}, paid: { ...none, cash: sum } }),
  change: (sum) => ({ sent: { payments: { cashAmount: sum + 7n } }, paid: { ...none, cash: sum } }),
  card: (sum) => ({ sent: { payments: { cashlessAmount: sum } }, paid: { ...none, cashless: sum } }),
  both: (sum) => ({
    sent: { payments: { cashAmount: sum - 1n }, extraPayments: [{ code: "QR", amount: 1n }] },
    paid: { ...none, cash: sum - 1n, cashless: 1n },
  }),
  credit: (sum) => ({ sent: { payments: { creditAmount: sum } }, paid: { ...none, credit: sum } }),
  bonuses: (sum) => ({
    sent: { payments: { bonusesAmount: 1n }, extraPayments: [{ code: "GIFT", amount: sum - 1n }] },
    paid: { ...none, bonuses: sum },
  }),
  prepayment: (sum) => ({ sent: { payments: { prepaymentAmount: sum } }, paid: none }),
  short: (sum) => ({ sent: { payments: { cashAmount: sum - 1n } }, paid: none, wrong: 8 }),
  cardTooMuch: (sum) => ({ sent: { payments: { cashlessAmount: sum + 1n } }, paid: none, wrong: 11 }),
};

const key = fc.nat({ max: 9 });
const endings = fc.constantFrom(0, 1, 3, 5, 10, 15, 20, 21, 23, 30, 44, 54, 61, 62, 31);
const small = fc.tuple(fc.integer({ min: 1, max: 9 }), endings).map(([hundreds, ending]) => BigInt(hundreds * 100 + ending));
/** Beyond what a number holds exactly, and few enough of them to stay within 64 bits. */
const large = fc.bigInt(2n ** 53n, 2n ** 56n);
const sum = fc.oneof({ weight: 9, arbitrary: small }, { weight: 1, arbitrary: large });

const operation = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      type: fc.constant("document" as const),
      kind: fc.constantFrom<Kind>("sale", "sale", "refund", "refund", "deposit", "withdraw"),
      key,
      sum,
      way: fc.constantFrom(...Object.keys(ways), "unsaid", "unsaid", "card", "card"),
      parent: fc.option(key, { nil: undefined }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant("check" as const), key }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("abort" as const), key }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("close" as const), how: fc.constantFrom("delete", "renew", "check", "") }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("open" as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("restart" as const) }) },
);

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** The till makes up its own documentIDs, far from those that the service assigns, so that it can name any sale as a parent. */
const idOf = (documentKey: number) => BigInt(1_000_000 + documentKey);
const extIdOf = (documentKey: number) => `K${documentKey}`;

function requestOf({ kind, key, sum, way, parent }: Extract<Operation, { type: "document" }>): {
  asked: Asked;
  body: JsonObject;
} {
  const named = { documentExtID: extIdOf(key), documentID: idOf(key) };
  if (kind === "deposit" || kind === "withdraw") {
    const asked = { kind, key, sum, paid: { ...none, cash: sum }, wrongPayment: undefined, parent: undefined };
    return { asked, body: { ...named, amount: sum } };
  }
  const { sent, paid, wrong } = ways[way]?.(sum) ?? assert.fail(way);
  const refunded = kind === "refund" ? parent : undefined;
  const items = [{ itemName: "Bread", itemAmount: sum, itemTaxes: [{ taxCode: "A", taxPrc: 1800 }] }];
  const parentDocID = refunded !== undefined && { parentDocID: String(idOf(refunded)) };
  return {
    asked: { kind, key, sum, paid, wrongPayment: wrong, parent: refunded },
    body: { ...named, items, ...sent, ...parentDocID },
  };
}

/** Carries an operation out in the context and in the model, and compares the answers. */
function step(context: FiscalContext, model: FiscalModel, operation: Operation): FiscalContext {
  switch (operation.type) {
    case "document": {
      const { asked, body } = requestOf(operation);
      const answer = context.ask(`/${asked.kind}`, body);
      assert.equal(Number(answer["code"]), model.ask(asked), String(answer["message"]));
      if (answer["status"] === "success") assert.equal(answer["documentID"], idOf(asked.key));
      return context;
    }
    case "check": {
      const answer = context.ask("/check_status", { documentExtID: extIdOf(operation.key) });
      assert.equal(Number(answer["code"] === 9n ? -1 : answer["docStatus"]), model.check(operation.key));
      return context;
    }
    case "abort":
      assert.equal(context.code("/abort", { documentExtID: extIdOf(operation.key) }), model.abort(operation.key));
      return context;
    case "close":
      assert.equal(context.code("/close_shift", { openOrdersOperation: operation.how }), model.closeShift(operation.how));
      return context;
    case "open":
      context.done("/open_shift");
      model.openShift();
      return context;
    case "restart":
      return context.restored();
  }
}

/** What must hold after every operation. */
function holds(context: FiscalContext, model: FiscalModel): void {
  const shift = context.done("/check_shift");
  assert.deepEqual([shift["cash"], shift["isShiftOpen"]], [model.drawer(), String(model.open)]);
  assert.ok(model.drawer() >= 0n);
  if (model.open) {
    const { status, code, shiftID, shiftOpenAt, currency_name, ...metrics } = context.done("/x_report");
    assert.deepEqual(metrics, model.metrics());
    assert.equal(shiftID, BigInt(model.shift));
  }
  const saved = context.service.saved()["documents"];
  const extIds = (Array.isArray(saved) ? saved : assert.fail("no list")).map(({ extId }) => extId);
  assert.equal(new Set(extIds).size, extIds.length, "a documentExtID has two documents");
  assert.deepEqual(
    extIds,
    model.docs.map((doc) => extIdOf(doc.key)),
  );
  for (const doc of model.docs) if (doc.kind === "sale") assert.ok(model.refunded(doc.key) <= doc.sum);
}

test("after any operations, answers, drawer, metrics and documents are the model's", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60, size: "max" }), (operations) => {
      let context = new FiscalContext();
      const model = new FiscalModel();
      for (const operation of operations) {
        context = step(context, model, operation);
        holds(context, model);
      }
    }),
    { numRuns: 200 },
  );
});

test("a service that is saved and restored at every step answers as one that never was, and tells of each change", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 30, size: "max" }), (operations) => {
      const steady = new FiscalContext();
      let restarted = new FiscalContext();
      for (const operation of operations) {
        if (operation.type === "restart") continue;
        const [route, body] = wordsOf(operation);
        restarted = restarted.restored();
        const before = { saved: writeExact(steady.service.saved()), changes: steady.changes };
        assert.deepEqual(restarted.ask(route, body), steady.ask(route, body));
        assert.equal(steady.changes > before.changes, writeExact(steady.service.saved()) !== before.saved, route);
      }
    }),
    { numRuns: 50 },
  );
});

function wordsOf(operation: Exclude<Operation, { type: "restart" }>): readonly [string, JsonObject] {
  switch (operation.type) {
    case "document":
      return [`/${operation.kind}`, requestOf(operation).body];
    case "check":
      return ["/check_status", { documentExtID: extIdOf(operation.key) }];
    case "abort":
      return ["/abort", { documentExtID: extIdOf(operation.key) }];
    case "close":
      return ["/close_shift", { openOrdersOperation: operation.how }];
    case "open":
      return ["/open_shift", {}];
  }
}
