import type { Contract } from "../contract/contract.ts";
import type { Recovery, Verdict } from "../contract/recovery.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { integerOf, parseObject, textOf } from "./exact-json.ts";
import type { Delivery } from "./service.ts";

/** What an answer proves of an operation, and what it doesn't. */

/** An operation under its rules. */
export interface Operation {
  readonly contract: Contract;
  readonly recovery: Recovery;
  /** The field that names it, the key's or one in its place, and its value, as they stand in the body. */
  readonly keyField: string;
  readonly key: unknown;
  /** The route's question, undefined for an operation that can't be asked about. */
  readonly asks: boolean;
}

/** A delivery that the service answered. */
export type Answered = Delivery & { readonly outcome: "answered" };

export function isIn(codes: readonly number[], code: number | undefined): boolean {
  return code !== undefined && codes.includes(code);
}

export function isAbsent({ contract }: Operation, { success, words }: Answered): boolean {
  return !success && isIn(contract.finals.absentCodes, words.code);
}

/** The value at the contract's place of final states. */
function finalValue({ contract }: Operation, reply: JsonObject): string | undefined {
  let value: unknown = reply;
  for (const field of contract.finals.field) value = isObject(value) ? value[field] : undefined;
  return textOf(value);
}

/** The end that an answer tells, or undefined where it tells none. */
export function endOf(operation: Operation, reply: JsonObject, success: boolean): Verdict | undefined {
  const { contract, recovery } = operation;
  const value = finalValue(operation, reply);
  if (value === undefined) return undefined;
  const end = contract.finals.values.length === 0 ? recovery.ends[""] : recovery.ends[value];
  if (end === undefined) return undefined;
  const good = end === "approved" || end === "closed";
  // A failure that comes with a success is none of the documented ends (bank.md, rule 1)
  if (success) return good ? end : undefined;
  // An error may say that it failed or was taken back, never that it went well: but a document whose printing failed is closed
  if (recovery.print !== undefined) return integerOf(reply["code"]) === recovery.print.code ? end : undefined;
  return good ? undefined : end;
}

/** Whether a success says that nothing has ended yet: by a final field without a final value, or by a code of progress. */
export function saysOpen(operation: Operation, { reply, words }: Answered): boolean {
  const { values, pendingCodes } = operation.contract.finals;
  const value = finalValue(operation, reply);
  if (value === undefined) return isIn(pendingCodes, words.code);
  return values.length > 0 && operation.recovery.ends[value] === undefined;
}

/**
 * Whether a success proves that the service knows the operation by the name that it was given. One with a message and no data
 * may be a bridge's or gateway's word for an unknown outcome (qr has none but "in progress"); over a line no header tells.
 */
export function provesKnown(reply: JsonObject): boolean {
  return isObject(reply["data"]) || textOf(reply["message"]) === undefined;
}

/**
 * Whether an end can only be this operation's own.
 * @param baseline What the question said before the start: "" when nothing, undefined when that isn't known.
 */
export function provesEnd(operation: Operation, baseline: string | undefined, reply: JsonObject): boolean {
  if (baseline === undefined) return false;
  return baseline === "" || isAnother(operation, parseObject(baseline) ?? {}, identityOf(operation, reply));
}

/**
 * Whether two descriptions are surely of two transactions or documents. Where both have the service's own id, that and the status
 * decide; what one of them leaves out tells nothing.
 */
function isAnother(operation: Operation, one: JsonObject, other: JsonObject): boolean {
  const id = operation.contract.envelope === "form" ? "documentID" : "txn_id";
  const both = identity.filter((name) => textOf(one[name]) !== undefined && textOf(other[name]) !== undefined);
  const told = both.includes(id) ? both.filter((name) => name === id || name === "status") : both;
  return told.some((name) => !isSameId(textOf(one[name]) ?? "", textOf(other[name]) ?? ""));
}

/**
 * Fields by which one transaction (bank.md, Transaction result) or document (fiscal.md, Document) is told from another; what is
 * printed may vary.
 */
const identity = ["txn_id", "status", "rrn", "auth", "documentID", "fiscalID", "docStatus"] as const;

/** What identifies what has ended, in an answer; undefined where nothing has. */
export function fingerprintOf(operation: Operation, reply: JsonObject): string | undefined {
  const { recovery } = operation;
  if (recovery.ends[finalValue(operation, reply) ?? ""] === undefined) return undefined;
  return JSON.stringify(identityOf(operation, reply));
}

/** What an answer says of the fields above, as texts. */
function identityOf({ contract }: Operation, reply: JsonObject): JsonObject {
  const told = contract.envelope === "form" ? reply : reply["data"];
  if (!isObject(told)) return {};
  // The envelope's own status, which fiscal has beside the document, is none of it
  const names = contract.envelope === "form" ? identity.filter((name) => name !== "status") : identity;
  return Object.fromEntries(names.map((name) => [name, textOf(told[name])]));
}

/** Whether an answer names another operation's key than was asked for: then it says nothing of ours. */
export function isAboutAnother({ keyField, key }: Operation, reply: JsonObject): boolean {
  const [named, own] = [textOf(reply[keyField]), textOf(key)];
  return named !== undefined && own !== undefined && !isSameId(named, own);
}

/** Terminals write an id of digits as a number, which loses its leading zeros (FIELD-NOTES: types are loose). */
function isSameId(one: string, other: string): boolean {
  const digits = /^\d+$/;
  return one === other || (digits.test(one) && digits.test(other) && BigInt(one) === BigInt(other));
}

/** Whether an answer about a closed document says that it wasn't printed (fiscal.md, code 15 and printError). */
export function saysUnprinted({ recovery }: Operation, { reply, words }: Answered): boolean {
  const error = integerOf(reply["printError"]);
  return recovery.print !== undefined && (words.code === recovery.print.code || (error !== undefined && error !== 0));
}
