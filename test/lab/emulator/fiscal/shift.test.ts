import assert from "node:assert/strict";
import { test } from "node:test";
import { fiscal } from "../../../../src/contract/fiscal.ts";
import { rememberedMax } from "../../../../src/lab/emulator/service-context.ts";
import { byCard, FiscalContext, receipt } from "./fiscal-context.ts";

const day = 86_400_000;

test("/supported_operations lists all routes, /get_info says that it is emulated, an unknown route is refused", () => {
  const context = new FiscalContext();
  assert.deepEqual(
    context.done("/supported_operations")["operations"],
    fiscal.routes.map(({ path }) => path.slice(1)),
  );
  assert.deepEqual(context.done("/get_info")["fiscalData"], { emulated: true, fiscalID: "EMU00000000", currency_name: "XTS" });
  assert.equal(context.service.answer("/nothing", {}).code, fiscal.faultCodes.route);
});

test("a shift is open from the start, and /open_shift leaves it as it is", () => {
  const context = new FiscalContext();
  const shift = { shiftID: 1n, fiscalID: "EMUS000001", shiftOpenAt: "2024-05-06 07:08:09", status: "success", code: 0n };
  context.time += 1000;
  assert.deepEqual(context.done("/open_shift"), shift);
  assert.equal(context.changes, 0);
  context.done("/close_shift");
  context.time += 1000;
  assert.deepEqual(context.done("/open_shift", { employeeName: "E" }), {
    ...shift,
    shiftID: 2n,
    fiscalID: "EMUS000002",
    shiftOpenAt: "2024-05-06 07:08:11",
  });
});

test("/check_shift says isShiftOpen as a string, shiftStatus and cash", () => {
  const context = new FiscalContext();
  context.done("/deposit", { amount: 2n ** 60n });
  const { isShiftOpen, shiftStatus, cash } = context.done("/check_shift");
  assert.deepEqual([isShiftOpen, shiftStatus, cash], ["true", 1n, 2n ** 60n]);
  context.done("/close_shift");
  const closed = context.done("/check_shift");
  assert.deepEqual([closed["isShiftOpen"], closed["shiftStatus"], closed["cash"]], ["false", 2n, 2n ** 60n]);
});

test("/close_shift with renew carries unclosed orders over: they close and count in the next shift", () => {
  const context = new FiscalContext();
  assert.equal(context.code("/sale", receipt("A", 161)), 44);
  assert.equal(context.done("/close_shift", { openOrdersOperation: "renew" })["saleCount"], 0n);
  for (let check = 0; check < 3; check++) {
    assert.equal(context.done("/check_status", { documentExtID: "A" })["docStatus"], 0n, "no shift is open");
  }
  context.done("/open_shift");
  assert.equal(context.done("/check_status", { documentExtID: "A" })["docStatus"], 1n);
  assert.equal(context.done("/x_report")["saleSum"], 161n);
});

test("/x_report and /close_shift have every metric, by kind of payment", () => {
  const context = new FiscalContext();
  context.done("/deposit", { amount: 1000 });
  context.done("/withdraw", { amount: 300 });
  context.done("/sale", receipt("A", 100, { payments: { cashAmount: 150 } }));
  const extraPayments = [
    { code: "CARD", amount: 1 },
    { code: "QR", amount: 2 },
    { code: "PALM", amount: 4 },
    { code: "BONUS", amount: 8 },
    { code: "GIFT", amount: 16 },
  ];
  const payments = { cashAmount: 32, cashlessAmount: 64, bonusesAmount: 128, prepaymentAmount: 256 };
  context.done("/sale", receipt("B", 511, { payments, extraPayments }));
  context.done("/sale", receipt("C", 1000, { payments: { creditAmount: 1000 } }));
  context.done("/refund", receipt("D", 50));
  context.done("/refund", receipt("E", 70, { ...byCard(70) }));
  context.done("/refund", receipt("F", 80, { payments: { creditAmount: 80 } }));
  context.done("/refund", receipt("G", 90, { payments: { bonusesAmount: 90 } }));
  const metrics = {
    shiftID: 1n,
    shiftOpenAt: "2024-05-06 07:08:09",
    cash: 782n,
    saleCount: 3n,
    saleSum: 1611n,
    saleCashSum: 132n,
    saleCashlessSum: 71n,
    saleCreditSum: 1000n,
    saleBonusSum: 152n,
    saleVatAmounts: [],
    depositCount: 1n,
    depositSum: 1000n,
    withdrawCount: 1n,
    withdrawSum: 300n,
    moneyBackCount: 4n,
    moneyBackSum: 290n,
    moneyBackCashSum: 50n,
    moneyBackCashlessSum: 70n,
    moneyBackCreditSum: 80n,
    moneyBackBonusSum: 90n,
    moneyBackVatAmounts: [],
    currency_name: "XTS",
    status: "success",
    code: 0n,
  };
  assert.deepEqual(context.done("/x_report", { skipReceipt: true }), metrics);
  assert.deepEqual(context.done("/close_shift"), { ...metrics, fiscalShiftID: "EMUS000001", fiscalShiftNum: "1" });
  context.done("/open_shift");
  const next = context.done("/x_report");
  assert.deepEqual([next["cash"], next["saleSum"], next["depositCount"]], [782n, 0n, 0n], "only the drawer stays");
});

test("/deposit beyond what 64 bits of cash hold is code 4, in another shift too", () => {
  const context = new FiscalContext();
  context.done("/deposit", { amount: 2n ** 62n });
  context.done("/close_shift");
  context.done("/open_shift");
  assert.equal(context.code("/deposit", { amount: 2n ** 62n }), 4);
  // Its last digits, 03, would stand for an outcome in doubt.
  context.forced.push(undefined);
  assert.equal(context.code("/deposit", { amount: 2n ** 62n - 1n }), 0);
  assert.equal(context.done("/check_shift")["cash"], 2n ** 63n - 1n);
});

test("/dates_report adds up the days asked for, and refuses what is no date (14)", () => {
  const context = new FiscalContext();
  context.done("/sale", receipt("A", 100));
  context.time += day;
  context.done("/sale", receipt("B", 200));
  context.done("/close_shift");
  const sum = (body: object) => context.done("/dates_report", { ...body })["saleSum"];
  assert.equal(sum({}), 300n);
  assert.equal(sum({ dateFrom: "2024-05-07" }), 200n);
  assert.equal(sum({ dateFor: "2024-05-06" }), 100n);
  assert.equal(sum({ dateFrom: "2024-05-08", dateFor: "2024-05-08" }), 0n);
  for (const date of ["2024-02-30", "2023-02-29", "06.05.2024", "2024-5-6", "2024-00-10", "2024-05-06 00:00:00", 20240506]) {
    assert.equal(context.code("/dates_report", { dateFrom: date }), 14, String(date));
    assert.equal(context.code("/dates_report", { dateFor: date }), 14, String(date));
  }
  assert.equal(context.code("/dates_report", { dateFrom: "2024-05-07", dateFor: "2024-05-06" }), 14);
  assert.equal(context.code("/dates_report", { dateFrom: "2024-02-29" }), 0);
});

test("no more than rememberedMax documents are remembered, and the sums of the shift keep the forgotten ones", () => {
  const context = new FiscalContext();
  const taxed = { items: [{ itemAmount: 118, itemTaxes: [{ taxPrc: 1800 }] }] };
  const sales = rememberedMax + 10;
  // Straight into the service: four thousand answers needn't be held against the schema.
  for (let sale = 0; sale < sales; sale++) {
    context.service.answer("/sale", { items: [{ itemAmount: 118n, itemTaxes: [{ taxPrc: 1800n }] }] });
  }
  assert.equal(context.code("/check_status", { documentID: 10 }), 9);
  assert.equal(context.code("/check_status", { documentID: 11 }), 0);
  const documents = context.service.saved()["documents"];
  assert.equal(Array.isArray(documents) && documents.length, rememberedMax);
  const restored = context.restored();
  for (const each of [context, restored]) {
    each.done("/sale", taxed);
    const { cash, saleCount, saleSum, saleVatAmounts } = each.done("/x_report");
    const all = BigInt(sales + 1);
    assert.deepEqual([cash, saleCount, saleSum], [118n * all, all, 118n * all]);
    assert.deepEqual(saleVatAmounts, [{ vatPercent: 1800n, vatAmount: 18n * all, currency_name: "XTS" }]);
    each.done("/close_shift");
    each.done("/open_shift");
    assert.equal(each.done("/x_report")["saleCount"], 0n);
  }
});

test("documents are forgotten before they fill the memory, however large each is", () => {
  const context = new FiscalContext();
  const itemName = "x".repeat(1_000_000);
  for (let sale = 0; sale < 20; sale++) context.service.answer("/sale", { items: [{ itemName, itemAmount: 100n }] });
  const documents = context.service.saved()["documents"];
  assert.equal(Array.isArray(documents) && documents.length, 16);
  assert.equal(context.done("/x_report")["saleSum"], 2000n);
});
