import type { JsonObject } from "../../../core/json-object.ts";
import { zeroPadded } from "../answer.ts";
import { cardFields, entryFields, type ReceiptPayments } from "./payments.ts";
import type { VatByRate } from "./vat.ts";

/**
 * The documents of the emulated fiscal service. A document is begun, and mostly closed in the same moment; a slow one is in between until
 * it has been asked about often enough. Only a closed one has fiscal numbers and counts for anything.
 */

export type DocumentKind = "sale" | "refund" | "deposit" | "withdraw";

/** The document that a request is to make. */
export interface DocumentDraft {
  readonly kind: DocumentKind;
  /** The key of choice; undefined if the till sent none. */
  readonly extId: string | undefined;
  /** Minor units. */
  readonly sum: bigint;
  readonly payments: ReceiptPayments;
  readonly vat: VatByRate;
  /** The lines as sent, for the copy; undefined for cash in and out. */
  readonly lines: readonly JsonObject[] | undefined;
  readonly docTime: string;
  /** The fiscal number of the sale that is refunded: unlike a documentID, nothing else ever has it. */
  readonly parent: bigint | undefined;
}

export interface FiscalDocument extends DocumentDraft {
  readonly id: bigint;
  /** How many more questions are answered "in progress". The document closes at the question after these. */
  checks: bigint;
  closed: DocumentClosing | undefined;
}

/** The numbers that a document gets when it closes. */
export interface DocumentClosing {
  /** Counted from 1, for all documents. */
  readonly num: bigint;
  /** The shift in which the document counts. */
  readonly shift: bigint;
  /** When the receipt was printed; undefined while it isn't. */
  printTime: string | undefined;
}

/** A printer out of paper. The contract names no print errors. */
export const printError = 1;

export const fiscalIdOf = (num: bigint) => `EMU${zeroPadded(num, 8)}`;

/** The ids of a document, for answers that say nothing else of it. */
export function idFields({ id, extId }: FiscalDocument): JsonObject {
  return { documentID: id, ...(extId !== undefined && { documentExtID: extId }) };
}

/** The fields of a document in an answer (Document). */
export function documentFields(document: FiscalDocument, currency: string): JsonObject {
  const { id, payments, docTime, closed } = document;
  if (closed === undefined) return { ...idFields(document), docTime, docStatus: 0, currency_name: currency };
  return {
    ...idFields(document),
    ...fiscalFields(closed),
    docTime,
    ...(closed.printTime === undefined ? { printError } : { printTime: closed.printTime }),
    docStatus: 1,
    ...cardFields(payments, id),
    totalPayments: payments.entries.map((entry) => entryFields(entry, id)),
    currency_name: currency,
  };
}

/** The answer of /deposit and /withdraw (Endpoints). */
export function cashFields(document: FiscalDocument): JsonObject {
  const { id, closed } = document;
  return { documentID: id, ...(closed !== undefined && fiscalFields(closed)) };
}

/** The answer of /check_copy (Endpoints). */
export function copyFields({ id, payments, lines = [], closed }: FiscalDocument, currency: string): JsonObject {
  const common = {
    items: lines,
    totalPayments: payments.entries.map((entry) => entryFields(entry, id)),
    currency_name: currency,
  };
  if (closed === undefined) return { documentID: id, docStatus: 0, ...common };
  const { fiscalID, fiscalNum } = fiscalFields(closed);
  const printed = closed.printTime !== undefined && { printTime: closed.printTime };
  return { documentID: id, fiscalID, fiscalNum, docStatus: 1, ...printed, ...common };
}

function fiscalFields({ num }: DocumentClosing) {
  return { fiscalID: fiscalIdOf(num), fiscalNum: String(num), fiscalUrl: `https://receipt.invalid/${num}` };
}
