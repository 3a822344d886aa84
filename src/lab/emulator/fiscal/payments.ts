import { maskCardNumbers } from "../../../core/card-number.ts";
import type { JsonObject } from "../../../core/json-object.ts";
import { zeroPadded } from "../answer.ts";
import type { RequestReader } from "../request-reader.ts";
import { paymentKinds } from "../world-schema.ts";
import { fiscalCodes } from "./request.ts";
import { checkPayment, type FiscalWorld, type PaymentKind } from "./shop.ts";

/**
 * The payments of a document: the fields that a till may send (Payment split object, Extra payment object), and the fields that are kept.
 */

/** Minor units, cash without the change that was given. The kinds together make the document's sum. */
export type PaidByKind = Readonly<Record<PaymentKind, bigint>>;

export interface ReceiptPayments {
  readonly paid: PaidByKind;
  /** The payments, one by one (Payment entry), with cash less change. */
  readonly entries: readonly PaymentEntry[];
}

export interface PaymentEntry {
  readonly code: string;
  readonly kind: PaymentKind;
  readonly amount: bigint;
  /** The traces of a card transaction elsewhere (trxParams). */
  readonly rrn?: string;
  readonly cardNum?: string;
}

export const nothingPaid: PaidByKind = { cash: 0n, cashless: 0n, credit: 0n, bonuses: 0n, prepayment: 0n };

export function cashOnly(sum: bigint): ReceiptPayments {
  return paymentsOf([{ code: "cash", kind: "cash", amount: sum }]);
}

/** Reads how a sum is paid. A till that says nothing about payments was paid in cash. */
export function readPayments(fields: RequestReader, sum: bigint, world: FiscalWorld): ReceiptPayments {
  const split = fields.object("payments");
  const extras = fields.list("extraPayments").map((extra) => readExtra(extra, world));
  const unsaid = split === undefined && extras.length === 0;
  const parts = paymentKinds.map((kind) => ({ code: kind, kind, amount: split?.optionalAmount(`${kind}Amount`) ?? 0n }));
  const paid = unsaid ? cashOnly(sum) : balanced(fields, [...parts, ...extras], sum);
  for (const { kind } of paid.entries) checkPayment(kind, fields, world);
  return paid;
}

/** Compares the offered payments with the sum, and gives change from cash (Errors: 8, 11, 13). */
function balanced(fields: RequestReader, offered: readonly PaymentEntry[], sum: bigint): ReceiptPayments {
  const { credit, cash } = totalsOf(offered);
  const total = offered.reduce((sofar, { amount }) => sofar + amount, 0n);
  if (credit > 0n && total > credit) {
    fields.refuse("credit is paid together with other payments", "send credit alone", fiscalCodes.creditSinglePayment);
  }
  if (total < sum) {
    const state = `${total} of ${sum} minor units are paid`;
    fields.refuse(state, "send payments that add up to the items", fiscalCodes.documentNotPaid);
  }
  const change = total - sum;
  if (change > cash) {
    const state = `${change} minor units are paid too much, and ${cash} of all are cash`;
    fields.refuse(state, "send payments that add up to the items", fiscalCodes.changeOnlyForCash);
  }
  return paymentsOf(offered.map((entry) => (entry.kind === "cash" ? { ...entry, amount: entry.amount - change } : entry)));
}

/** An extra payment. The contract names no codes of them, and one without a code is cashless. */
function readExtra(extra: RequestReader, { extraPayments }: FiscalWorld): PaymentEntry {
  const code = extra.optionalId("code");
  const kind = code === undefined ? "cashless" : new Map(Object.entries(extraPayments)).get(code);
  if (kind === undefined) {
    const names = Object.keys(extraPayments);
    const cure = names.length === 0 ? "send payments alone" : `choose one of ${names.join(", ")}`;
    return extra.refuse(`${extra.named("code")} is not supported`, cure, fiscalCodes.paymentTypeNotSupported);
  }
  const amount = extra.optionalAmount("amount") ?? 0n;
  const params = extra.object("trxParams");
  const rrn = params?.optionalId("rrn");
  const cardNumber = params?.optionalId("cardNumber");
  params?.checkTexts(["bankName"]);
  return {
    code: code ?? kind,
    kind,
    amount,
    ...(rrn !== undefined && { rrn }),
    // Card numbers are documented as masked; a whole one isn't kept.
    ...(cardNumber !== undefined && { cardNum: maskCardNumbers(cardNumber) }),
  };
}

function paymentsOf(all: readonly PaymentEntry[]): ReceiptPayments {
  const entries = all.filter(({ amount }) => amount > 0n);
  return { paid: totalsOf(entries), entries };
}

function totalsOf(entries: readonly PaymentEntry[]): PaidByKind {
  const paid: Record<PaymentKind, bigint> = { ...nothingPaid };
  for (const { kind, amount } of entries) paid[kind] += amount;
  return paid;
}

/** An element of totalPayments. */
export function entryFields({ code, kind, amount, rrn, cardNum }: PaymentEntry, documentId: bigint): JsonObject {
  if (kind !== "cashless") return { code, amount };
  const made = cardOf(documentId);
  return { code, amount, ...made, ...(rrn !== undefined && { rrn }), ...(cardNum !== undefined && { cardNum }) };
}

/** Card fields as a reader would give them: made of the document's id, so that they are the same whenever they are shown. */
function cardOf(documentId: bigint): JsonObject {
  return {
    rrn: zeroPadded(documentId % 10n ** 12n, 12),
    auth: zeroPadded(documentId % 10n ** 6n, 6),
    cardNum: "411111******1111",
    checkNum: String(documentId),
  };
}

/** A document's own card fields: those of its first cashless payment (Document). */
export function cardFields({ entries }: ReceiptPayments, documentId: bigint): JsonObject {
  const first = entries.find(({ kind }) => kind === "cashless");
  if (first === undefined) return {};
  const { rrn, auth, cardNum, checkNum } = entryFields(first, documentId);
  return { rrn, auth, cardNum, checkNum };
}
