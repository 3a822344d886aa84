import type { JsonObject } from "../../../core/json-object.ts";
import { zeroPadded } from "../answer.ts";
import type { StateReader } from "../state-reader.ts";
import { restoredLines } from "./items.ts";
import { cardFields, entryFields, type ReceiptPayments, restoredPayments, savedPayments } from "./payments.ts";
import { fiscalInt64Max } from "./request.ts";
import { isTimestamp } from "./time.ts";
import { restoredVat, type VatByRate, vatEntries } from "./vat.ts";

/**
 * The documents of the emulated fiscal service. A document is begun, and mostly closed in the same moment; a slow one is in between until
 * it has been asked about often enough. Only a closed one has fiscal numbers and counts for anything.
 */

export const documentKinds = ["sale", "refund", "deposit", "withdraw"] as const;

export type DocumentKind = (typeof documentKinds)[number];

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
  checks: number;
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

export function savedDocument(document: FiscalDocument): JsonObject {
  const { kind, id, extId, sum, payments, vat, lines, docTime, parent, checks, closed } = document;
  return {
    kind,
    id,
    ...(extId !== undefined && { extId }),
    sum,
    payments: savedPayments(payments),
    vat: vatEntries(vat),
    ...(lines !== undefined && { lines }),
    docTime,
    ...(parent !== undefined && { parent }),
    checks: BigInt(checks),
    ...(closed !== undefined && { closed: savedClosed(closed) }),
  };
}

function savedClosed({ num, shift, printTime }: DocumentClosing): JsonObject {
  return { num, shift, ...(printTime !== undefined && { printTime }) };
}

export function restoredDocument(saved: StateReader): FiscalDocument {
  const kind = saved.at("kind").oneOf(documentKinds);
  const sum = saved.at("sum").integer(0n, fiscalInt64Max);
  const receipt = kind === "sale" || kind === "refund";
  const payments = restoredPayments(saved.at("payments"), sum);
  if (!receipt && payments.paid.cash !== sum) saved.at("payments").refuse("must be cash");
  return {
    kind,
    id: saved.at("id").integer(1n, fiscalInt64Max),
    extId: saved.at("extId").present ? saved.at("extId").text() : undefined,
    sum,
    payments,
    vat: restoredVat(saved.at("vat")),
    lines: receipt ? restoredLines(saved.at("lines")) : undefined,
    docTime: restoredTime(saved.at("docTime")),
    parent: kind === "refund" && saved.at("parent").present ? saved.at("parent").integer(1n, fiscalInt64Max) : undefined,
    checks: saved.at("checks").count(),
    closed: saved.at("closed").present ? restoredClosed(saved.at("closed")) : undefined,
  };
}

function restoredClosed(saved: StateReader): DocumentClosing {
  const printTime = saved.at("printTime").present ? restoredTime(saved.at("printTime")) : undefined;
  return { num: saved.at("num").integer(1n, fiscalInt64Max), shift: saved.at("shift").integer(1n), printTime };
}

export function restoredTime(saved: StateReader): string {
  const text = saved.text();
  return isTimestamp(text) ? text : saved.refuse("must be a time of the form yyyy-MM-dd HH:mm:ss");
}
