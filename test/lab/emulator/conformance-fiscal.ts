import type { Ask, Json, Row } from "./conformance-rows.ts";

/** The fiscal service's rows. */

type Fiscal = Omit<Row, "service">;

const item = { itemId: "1", itemName: "Bread", itemQty: 2000, itemPrice: 500, itemAmount: 1000, itemTaxes: [{ taxPrc: 1800 }] };
const sale = { documentExtID: "S-1", items: [item], payments: { cashAmount: 1000 } };
/** An amount that ends in 44 stays in progress for a while. */
const slowSale: Ask = {
  route: "/sale",
  body: { documentExtID: "S-44", items: [{ itemAmount: 1044 }], payments: { cashAmount: 1044 } },
};
const refund = { documentExtID: "R-1", items: [item], payments: { cashAmount: 1000 } };
const money = { documentExtID: "D-1", amount: 5000 };
const sold: Ask = { route: "/sale", body: sale };
const closed: Ask = { route: "/close_shift", body: {} };
const documentFields = [
  ...["documentID", "fiscalID", "fiscalNum", "fiscalUrl", "docTime", "printTime", "docStatus", "totalPayments"],
];
const shiftFields = ["shiftID", "shiftOpenAt", "cash", "saleCount", "saleSum", "saleVatAmounts", "moneyBackVatAmounts"];

/** The codes that a receipt's content may have, for /sale and /refund alike. */
const receipt = (route: "/sale" | "/refund", body: Json): readonly Fiscal[] => {
  const before = route === "/refund" ? { before: [sold] } : {};
  const paidBy = (payments: Json) => ({ ...body, payments });
  return [
    { route, body, ...before, case: "success", has: documentFields },
    { route, body, case: "resend", before: [...(before.before ?? []), { route, body }], has: ["documentID"] },
    { route, body, ...before, badSign: true, case: 1 },
    { route, raw: "no json", ...before, case: 2 },
    { route, body: { ...body, items: [] }, ...before, case: 3 },
    { route, body: { ...body, items: [{ ...item, itemAmount: 999 }] }, ...before, case: 4, why: "price times quantity" },
    { route, body, ...before, outcome: { name: "internal-error" }, case: 5 },
    { route, body, before: [...(before.before ?? []), closed], case: 6 },
    { route, body: { ...body, payments: {}, extraPayments: [{ code: "SHELLS", amount: 1000 }] }, ...before, case: 7 },
    { route, body: paidBy({ cashAmount: 999 }), ...before, case: 8, why: "paid too little" },
    {
      route,
      body: paidBy({ cashlessAmount: 1000 }),
      ...before,
      outcome: { name: "declined" },
      case: 8,
      why: "the card was declined",
    },
    { route, body, ...before, outcome: { name: "not-fiscalized" }, case: 10 },
    { route, body: paidBy({ cashlessAmount: 1001 }), ...before, case: 11 },
    { route, body: { ...body, docTime: "2020-01-01 00:00:00" }, ...before, case: 12 },
    { route, body: paidBy({ creditAmount: 500, cashAmount: 500 }), ...before, case: 13 },
    { route, body: { ...body, docTime: "yesterday" }, ...before, case: 14 },
    { route, body, ...before, outcome: { name: "not-printed" }, case: 15 },
    { route, body: paidBy({ cashlessAmount: 1000 }), ...before, outcome: { name: "no-terminal" }, case: 23 },
    { route, body, ...before, outcome: { name: "slow", checks: 1 }, case: 44 },
  ];
};

/** What every route that is signed answers to a wrong sign and to what is no JSON. */
const signed = (route: string, body: Json, before: readonly Ask[] = []): readonly Fiscal[] => [
  { route, body, before, badSign: true, case: 1 },
  { route, raw: "no json", before, case: 2 },
];

const cash = (route: "/deposit" | "/withdraw"): readonly Fiscal[] => {
  const before = route === "/withdraw" ? [{ route: "/deposit", body: { ...money, documentExtID: "D-0" } }] : [];
  return [
    { route, body: money, before, case: "success", has: ["documentID", "fiscalID", "fiscalNum", "fiscalUrl"] },
    { route, body: money, before: [...before, { route, body: money }], case: "resend", has: ["documentID"] },
    ...signed(route, money, before),
    { route, body: { documentExtID: "D-1" }, before, case: 3 },
    { route, body: { ...money, amount: 0 }, before, case: 4 },
    { route, body: money, before, outcome: { name: "internal-error" }, case: 5 },
    { route, body: money, before: [...before, closed], case: 6 },
    { route, body: money, before, outcome: { name: "not-fiscalized" }, case: 10 },
  ];
};

export const fiscalRows: readonly Fiscal[] = [
  { route: "/supported_operations", case: "success", has: ["operations"] },
  { route: "/supported_operations", body: {}, case: "success", has: ["operations"], why: "signed" },
  ...signed("/supported_operations", {}),
  ...receipt("/sale", sale),
  ...receipt("/refund", { ...refund, parentDocNum: "1" }),
  { route: "/refund", body: { ...refund, parentDocID: "77" }, case: 9 },
  {
    route: "/refund",
    body: { ...refund, parentDocID: "1", documentExtID: "R-2" },
    before: [sold, { route: "/refund", body: { ...refund, parentDocID: "1" } }],
    case: 4,
    why: "more than was sold",
  },
  { route: "/check_status", body: { documentExtID: "S-1" }, before: [sold], case: "success", has: documentFields },
  {
    route: "/check_status",
    body: { documentID: 1 },
    before: [sold],
    case: "success",
    has: documentFields,
    why: "by documentID",
  },
  ...signed("/check_status", { documentExtID: "S-1" }),
  { route: "/check_status", body: {}, case: 3 },
  { route: "/check_status", body: { documentExtID: "S-2" }, before: [sold], case: 9 },
  {
    route: "/check_copy",
    body: { documentID: 1 },
    before: [sold],
    case: "success",
    has: ["documentID", "fiscalID", "fiscalNum", "docStatus", "printTime", "items", "totalPayments", "currency_name"],
  },
  ...signed("/check_copy", { documentID: 1 }),
  { route: "/check_copy", body: { documentExtID: "S-1" }, before: [sold], case: 3 },
  { route: "/check_copy", body: { documentID: 2 }, before: [sold], case: 9 },
  { route: "/abort", body: { documentExtID: "S-44" }, before: [slowSale], case: "success" },
  ...signed("/abort", { documentExtID: "S-1" }),
  { route: "/abort", body: {}, case: 3 },
  { route: "/abort", body: { documentExtID: "S-2" }, case: 9 },
  {
    route: "/open_shift",
    body: { employeeName: "Ann" },
    before: [closed],
    case: "success",
    has: ["shiftID", "fiscalID", "shiftOpenAt"],
  },
  { route: "/open_shift", body: {}, case: "resend", has: ["shiftID"] },
  ...signed("/open_shift", {}),
  {
    route: "/close_shift",
    body: {},
    before: [sold],
    case: "success",
    has: [...shiftFields, "fiscalShiftID", "fiscalShiftNum"],
  },
  ...signed("/close_shift", {}),
  { route: "/close_shift", body: { openOrdersOperation: "delete" }, before: [slowSale], case: "success", why: "delete" },
  { route: "/close_shift", body: { openOrdersOperation: "renew" }, before: [slowSale], case: "success", why: "renew" },
  { route: "/close_shift", body: { openOrdersOperation: "check" }, before: [slowSale], case: 5, why: "an order is unclosed" },
  { route: "/close_shift", body: {}, before: [closed], case: 6 },
  { route: "/check_shift", body: {}, case: "success", has: ["shiftID", "isShiftOpen", "shiftStatus", "shiftOpenAt", "cash"] },
  ...signed("/check_shift", {}),
  { route: "/x_report", body: { skipReceipt: true }, before: [sold], case: "success", has: shiftFields },
  ...signed("/x_report", {}),
  { route: "/x_report", body: {}, before: [closed], case: 6 },
  ...cash("/deposit"),
  ...cash("/withdraw"),
  { route: "/withdraw", body: money, case: 4, why: "more than the drawer holds" },
  { route: "/dates_report", body: { dateFrom: "2026-01-01", dateFor: "2026-12-31" }, before: [sold], case: "success" },
  ...signed("/dates_report", {}),
  { route: "/dates_report", body: { dateFrom: "01.01.2026" }, case: 14 },
  { route: "/get_info", body: {}, case: "success", has: ["fiscalData"] },
  ...signed("/get_info", {}),
];
