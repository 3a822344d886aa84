import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { vatIn } from "../../../src/emulator/fiscal/vat.ts";
import { byCard, FiscalContext } from "./fiscal-context.ts";

test("vatIn is the VAT contained in an amount, half up", () => {
  assert.equal(vatIn(118n, 1800n), 18n);
  assert.equal(vatIn(3n, 10_000n), 2n);
  assert.equal(vatIn(0n, 1800n), 0n);
  fc.assert(
    fc.property(fc.bigInt(0n, 2n ** 63n - 1n), fc.bigInt(0n, 10_000n), (amount, rate) => {
      const off = 2n * (vatIn(amount, rate) * (10_000n + rate) - amount * rate);
      assert.ok(off > -(10_000n + rate) && off <= 10_000n + rate);
    }),
  );
});

test("metrics show VAT once a rate, rounded over the document, the lowest rate first", () => {
  const context = new FiscalContext();
  const line = (itemAmount: number, ...rates: readonly number[]) => ({
    itemAmount,
    itemTaxes: rates.map((taxPrc) => ({ taxCode: "V", taxPrc })),
  });
  const lines = [
    line(100, 1800),
    line(100, 1800),
    line(50, 200, 1800),
    line(40, 0),
    { itemAmount: 10, itemTaxes: [{ taxCode: "X" }] },
  ];
  context.done("/sale", { items: lines });
  const vat = (vatPercent: bigint, vatAmount: bigint) => ({ vatPercent, vatAmount, currency_name: "XTS" });
  const sold = [vat(0n, 0n), vat(200n, 1n), vat(1800n, 38n)];
  assert.deepEqual(context.done("/x_report")["saleVatAmounts"], sold);
  context.done("/refund", { items: [line(100, 1800)], ...byCard(100) });
  const { saleVatAmounts, moneyBackVatAmounts } = context.done("/x_report");
  assert.deepEqual(saleVatAmounts, sold);
  assert.deepEqual(moneyBackVatAmounts, [vat(1800n, 15n)]);
});
