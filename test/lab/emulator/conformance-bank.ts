import type { EmulatedOutcome } from "../../../src/lab/emulator/faults/magic-amounts.ts";
import type { Ask, Json, Row } from "./conformance-rows.ts";

/** The bank service's rows. */

type Bank = Omit<Row, "service">;

const pay = { pay_id: "P-1", amount: 1000, currency_name: "EUR" };
const check: Ask = { route: "/check", body: { pay_id: "P-1" } };
/** The emulator's first reference number: the same after each reset. */
const firstRrn = "000000000001";
const approvedSale: readonly Ask[] = [{ route: "/sale", body: pay }, check, check];
const approvedPreauth: readonly Ask[] = [{ route: "/preauth", body: pay }, check, check];

const operation = (route: string, body: Json, before: readonly Ask[] = []): readonly Bank[] => [
  { route, body, before, case: "success" },
  { route, body, before: [...before, { route, body }], case: "resend" },
  { route, raw: "no json", before, case: -29 },
];

const financial = (route: string, body: Json, before: readonly Ask[] = []): readonly Bank[] => [
  ...operation(route, body, before),
  { route, body: { ...body, amount: undefined }, before, case: -29, why: "no amount" },
  { route, body: { ...body, tips: 1, cashback: 1 }, before, case: -29, why: "tips and cashback" },
  { route, body: { ...body, terminal: 99 }, before, case: -29, why: "no such terminal" },
  { route, body: { ...body, currency_name: "SEASHELLS" }, before, case: -47 },
  { route, body, before, outcome: { name: "internal-error" }, case: -3 },
];

const linked = (route: string, before: readonly Ask[]): readonly Bank[] => {
  const body = { ...pay, pay_id: "P-2", rrn: firstRrn };
  return [
    ...financial(route, body, before),
    { route, body: { ...body, rrn: undefined }, before, case: -29, why: "no rrn" },
    { route, body: { ...body, rrn: "999999999999" }, before, case: -16 },
  ];
};

/** How /check answers of an operation that ended otherwise than well. */
const ended = (name: EmulatedOutcome["name"], code: number): Bank => ({
  route: "/check",
  body: { pay_id: `P-20` },
  before: [
    { route: "/sale", body: { ...pay, pay_id: "P-20", amount: endings[name] } },
    { route: "/check", body: { pay_id: "P-20" } },
  ],
  case: code,
  why: name,
  has: ["data.status"],
});

const endings: Partial<Record<EmulatedOutcome["name"], number>> = {
  declined: 1020,
  cancelled: 1021,
  "card-timeout": 1054,
  reversed: 1030,
};

export const bankRows: readonly Bank[] = [
  { route: "/supported_operations", case: "success", has: ["data.operations"] },
  { route: "/terminals", case: "success", has: ["data.terminals"] },
  ...financial("/sale", pay),
  { route: "/sale", body: pay, outcome: { name: "update-required" }, case: -100 },
  { route: "/sale", body: pay, outcome: { name: "blocked" }, case: -101 },
  { route: "/sale", body: pay, outcome: { name: "not-supported" }, case: -80 },
  ...financial("/preauth", pay),
  ...linked("/confirm", approvedPreauth),
  ...linked("/cancel", approvedSale),
  ...linked("/refund", approvedSale),
  ...operation("/xreport", { pay_id: "X-1" }),
  ...operation("/close-shift", { pay_id: "Z-1" }),
  { route: "/terminate", case: "success" },
  { route: "/abort", body: { pay_id: "P-1" }, before: [{ route: "/sale", body: pay }], case: "success" },
  {
    route: "/abort",
    body: { pay_id: "P-1" },
    before: approvedSale,
    case: "success",
    has: ["data.status"],
    why: "approved already",
  },
  { route: "/abort", body: { pay_id: "P-9" }, case: -15 },
  { route: "/abort", body: {}, case: -29 },
  { ...check, before: [{ route: "/sale", body: pay }], case: "success", why: "in progress" },
  {
    ...check,
    before: approvedSale,
    case: "success",
    has: ["data.txn_id", "data.status", "data.card_num", "data.rrn", "data.auth", "data.print_data"],
  },
  { ...check, before: approvedSale, case: "resend", has: ["data.status"] },
  { route: "/check", body: { pay_id: "P-9" }, case: -15 },
  { route: "/check", body: {}, case: -29 },
  ended("declined", -20),
  ended("cancelled", -21),
  ended("card-timeout", -54),
  {
    ...check,
    before: [
      { route: "/sale", body: pay },
      { route: "/abort", body: { pay_id: "P-1" } },
    ],
    case: -21,
    why: "aborted",
    has: ["data.status"],
  },
];
