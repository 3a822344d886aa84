import type { DocumentKind, Draft } from "./fiscal-document.ts";
import { readItems } from "./fiscal-items.ts";
import { cashOnly, readPayments } from "./fiscal-payments.ts";
import { codes, type Fields, type Keys, keysOf } from "./fiscal-request.ts";
import { docTimeOf } from "./fiscal-time.ts";
import { noVat } from "./fiscal-vat.ts";

/**
 * What a request for a document asks for, as far as the request alone can tell: the same request always reads the same. What
 * depends on shift, drawer and other documents is looked at when it is issued.
 */
export interface Order {
  readonly kind: DocumentKind;
  readonly keys: Keys;
  readonly draft: Omit<Draft, "docTime" | "parent">;
  /** As sent. */
  readonly docTime: string | undefined;
  readonly parentDocId: string | undefined;
  readonly parentDocNum: string | undefined;
}

/** Reads /sale and /refund. */
export function receiptOrder(kind: "sale" | "refund", fields: Fields): Order {
  const keys = keysOf(fields);
  const { sum, vat, lines } = readItems(fields);
  const payments = readPayments(fields, sum);
  const refund = kind === "refund";
  return {
    kind,
    keys,
    draft: { kind, extId: keys.extId, sum, payments, vat, lines },
    docTime: docTimeOf(fields),
    parentDocId: refund ? fields.text("parentDocID") : undefined,
    parentDocNum: refund ? fields.text("parentDocNum") : undefined,
  };
}

/** Reads /deposit and /withdraw (Limits: amount greater than 0). */
export function cashOrder(kind: "deposit" | "withdraw", fields: Fields): Order {
  const keys = keysOf(fields);
  const sum = fields.integer("amount");
  if (sum === undefined) return fields.refuse(codes.missingParams, "amount is missing", "send it in minor units");
  if (sum <= 0n) return fields.refuse(codes.amountMismatch, "amount is not greater than 0", "send it in minor units");
  return {
    kind,
    keys,
    draft: { kind, extId: keys.extId, sum, payments: cashOnly(sum), vat: noVat, lines: undefined },
    docTime: undefined,
    parentDocId: undefined,
    parentDocNum: undefined,
  };
}
