import type { JsonObject } from "../envelope/json.ts";
import { amountOf, idOf, reference } from "./answer.ts";

/** The documents of the emulated fiscal service: what is kept of one, and what is answered about it. */

export type DocumentKind = "sale" | "refund" | "deposit" | "withdraw";

export interface FiscalDocument {
  readonly kind: DocumentKind;
  /** All sums in minor units. */
  readonly sum: number;
  readonly cash: number;
  readonly cashless: number;
  readonly credit: number;
  readonly bonuses: number;
  readonly reply: JsonObject;
  readonly copy: JsonObject;
}

/** ISO 4217's code for tests: no receipt of the emulator can be taken for money. */
export const currency = "XTS";

/** How the contract writes times: yyyy-MM-dd HH:mm:ss, local time. */
export function timestamp(time: Date): string {
  const date = [reference(time.getFullYear(), 4), reference(time.getMonth() + 1, 2), reference(time.getDate(), 2)];
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => reference(part, 2));
  return `${date.join("-")} ${clock.join(":")}`;
}

/** Makes the document of a request, closed and printed at once. */
export function documentOf(kind: DocumentKind, documentID: number, body: JsonObject, now: Date): FiscalDocument {
  const sums = sumsOf(kind, body);
  const fiscalNumbers = {
    documentID,
    fiscalID: `EMU${reference(documentID, 8)}`,
    fiscalNum: String(documentID),
    fiscalUrl: `https://receipt.invalid/${documentID}`,
  };
  const extId = body["documentExtID"];
  const named = idOf(extId) === undefined ? fiscalNumbers : { ...fiscalNumbers, documentExtID: extId };
  if (kind === "deposit" || kind === "withdraw") {
    return { kind, ...sums, reply: named, copy: { documentID, docStatus: 1 } };
  }
  const printTime = timestamp(now);
  const card = sums.cashless > 0 ? cardOf(documentID) : {};
  const totalPayments = paymentsOf(sums, card);
  const reply = { ...named, docTime: body["docTime"] ?? printTime, printTime, docStatus: 1, ...card };
  const { fiscalID, fiscalNum } = fiscalNumbers;
  return {
    kind,
    ...sums,
    reply: { ...reply, totalPayments, currency_name: currency },
    copy: {
      documentID,
      fiscalID,
      fiscalNum,
      docStatus: 1,
      printTime,
      items: body["items"],
      totalPayments,
      currency_name: currency,
    },
  };
}

interface Sums {
  readonly sum: number;
  readonly cash: number;
  readonly cashless: number;
  readonly credit: number;
  readonly bonuses: number;
}

function sumsOf(kind: DocumentKind, body: JsonObject): Sums {
  if (kind === "deposit" || kind === "withdraw") {
    const amount = amountOf(body["amount"]);
    return { sum: amount, cash: amount, cashless: 0, credit: 0, bonuses: 0 };
  }
  const split = fieldsOf(body["payments"]);
  const cashless = amountOf(split["cashlessAmount"]);
  const credit = amountOf(split["creditAmount"]);
  const bonuses = amountOf(split["bonusesAmount"]);
  const sum = listOf(body["items"]).reduce((total, item) => total + amountOf(item["itemAmount"]), 0);
  const extra = listOf(body["extraPayments"]).reduce((total, payment) => total + amountOf(payment["amount"]), 0);
  const other = cashless + credit + bonuses + amountOf(split["prepaymentAmount"]) + extra;
  // Without a split of its own the receipt was paid in cash, what other payments left of it
  const cash = split["cashAmount"] === undefined ? Math.max(0, sum - other) : amountOf(split["cashAmount"]);
  return { sum, cash, cashless, credit, bonuses };
}

function paymentsOf(sums: Sums, card: JsonObject): readonly JsonObject[] {
  const entries = [
    { code: "cash", amount: sums.cash },
    { code: "cashless", amount: sums.cashless, ...card },
    { code: "credit", amount: sums.credit },
    { code: "bonuses", amount: sums.bonuses },
  ];
  return entries.filter((entry) => entry.amount > 0);
}

function cardOf(documentID: number): JsonObject {
  return {
    rrn: reference(documentID, 12),
    auth: reference(documentID % 1_000_000, 6),
    cardNum: "411111******1111",
    checkNum: String(documentID),
  };
}

function fieldsOf(value: unknown): JsonObject {
  // An object has string keys and any values
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}
