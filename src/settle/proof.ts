import type { Contract } from "../contract/contract.ts";
import { type SettlingRules, settlingRules, settlingRulesOf } from "../contract/settling.ts";
import type { OperationEnd } from "../core/followed.ts";
import { isObject, type JsonObject, looseInteger } from "../core/json-object.ts";
import type { AnswerSummary, CallResult } from "./call-result.ts";
import { scalarText } from "./exact-json.ts";

/** The rules of proof: what an answer proves of an operation, and what it doesn't. */

/** An operation under its rules. */
export interface FollowedOperation {
  readonly contract: Contract;
  readonly rules: SettlingRules;
  /** The field that names it, the key's or one in its place, and its value, as they stand in the body. */
  readonly keyField: string;
  readonly key: unknown;
  /** Whether the contract has a query for it. */
  readonly asks: boolean;
}

/** Whatever operation it is. */
type UnderRules = Pick<FollowedOperation, "contract" | "rules">;

/** A delivery that the service answered. */
export type AnsweredCall = CallResult & { readonly outcome: "answered" };

type SaidByAnswer = { readonly reply: JsonObject; readonly summary: Pick<AnswerSummary, "code"> };

export function hasCode(codes: readonly number[], code: number | undefined): boolean {
  return code !== undefined && codes.includes(code);
}

/** Whether an error says by its code alone that nothing was begun. */
export function refusesStart({ refusals, signCodes }: SettlingRules, code: number | undefined): boolean {
  return hasCode(refusals, code) || hasCode(signCodes, code);
}

/**
 * Whether an error to a start is the terminal's own word that it came to nothing: the contract lists its code, and not for anything that went
 * wrong (bank -3, fiscal 5). With any other code the start may be on its way still (bank.md, Errors: unknown codes).
 */
export function isOwnRefusal({ codes, faultCodes }: Contract, code: number | undefined): boolean {
  return code !== faultCodes.broken && codes.some((each) => each.code === code);
}

/** An end in its data is one, whatever its code (bank.md, Endpoints, rule 2). */
export function saysAbsent(operation: FollowedOperation, { success, reply, summary }: AnsweredCall): boolean {
  const { absentCodes } = operation.contract.finals;
  return !success && hasCode(absentCodes, summary.code) && finalStateIn(operation, reply) === undefined;
}

/** The value at the contract's place of final states. */
function finalStateIn({ contract }: UnderRules, reply: JsonObject): string | undefined {
  let value: unknown = reply;
  for (const field of contract.finals.field) value = isObject(value) ? value[field] : undefined;
  return scalarText(value);
}

/** The end that a value stands for; `constructor`, which every object has, stands for none. */
function endOf({ ends }: SettlingRules, value: string): OperationEnd | undefined {
  return Object.hasOwn(ends, value) ? ends[value] : undefined;
}

/** The end that an answer's value stands for, whatever its status says. */
export function finalEndIn(operation: UnderRules, reply: JsonObject): OperationEnd | undefined {
  const value = finalStateIn(operation, reply);
  return value === undefined ? undefined : endOf(operation.rules, operation.contract.finals.values.length === 0 ? "" : value);
}

/** The verdict that an answer states, or undefined where it states none. */
export function verdictIn(operation: UnderRules, reply: JsonObject, success: boolean): OperationEnd | undefined {
  const { rules } = operation;
  const end = finalEndIn(operation, reply);
  if (end === undefined) return undefined;
  const good = end === "approved" || end === "closed";
  // A failure that comes with a success is none of the documented ends (bank.md, rule 1)
  if (success) return good ? end : undefined;
  // An error may say that it failed or was taken back, never that it went well: but a document whose printing failed is closed
  if (rules.print !== undefined) return looseInteger(reply["code"]) === rules.print.code ? end : undefined;
  return good ? undefined : end;
}

/** Whether a route asks about operations. */
export function isQuestion({ routes }: Contract, path: string): boolean {
  return routes.some(({ polling }) => polling?.route === path);
}

/**
 * Whether an error that was answered to an operation or to a question about one doesn't say how it ends. Of an operation that was sent once
 * and asked about by nobody; what more may be proven of it, the machine knows.
 */
export function leavesOpen(contract: Contract, path: string, reply: JsonObject, code: number | undefined): boolean {
  const own = settlingRulesOf(contract.service, path);
  if (own === undefined && (!isQuestion(contract, path) || contract.finals.errorIsFinal)) return false;
  if (own !== undefined && refusesStart(own, code)) return false;
  const rules = own ?? settlingRules[contract.service][0];
  const verdict = rules === undefined ? undefined : verdictIn({ contract, rules }, reply, false);
  // A document that is closed and not printed is neither refused nor done.
  return verdict === undefined || verdict === "closed";
}

/** Whether a success to an operation that was sent, or to a question about one, leaves open how it ends. */
export function goesOn(contract: Contract, path: string, reply: JsonObject): boolean {
  const rules = settlingRulesOf(contract.service, path);
  if (rules === undefined) {
    // Where an end stands in its answer, and in which words, is the same for all operations of a contract.
    const [any] = settlingRules[contract.service];
    return isQuestion(contract, path) && any !== undefined && verdictIn({ contract, rules: any }, reply, true) === undefined;
  }
  const operation = { contract, rules };
  if (rules.success === "followed") return !rules.startMayEnd || verdictIn(operation, reply, true) === undefined;
  return saysPending(operation, { reply, summary: { code: looseInteger(reply["code"]) } });
}

/**
 * Whether a success doesn't say that it has ended: by a final field without a final value, or without that field where it has to be there,
 * or by a code of progress.
 */
export function saysPending(operation: UnderRules, { reply, summary }: SaidByAnswer): boolean {
  const { values, pendingCodes } = operation.contract.finals;
  const value = finalStateIn(operation, reply);
  if (value === undefined) return operation.rules.successShowsEnd || hasCode(pendingCodes, summary.code);
  return values.length > 0 && endOf(operation.rules, value) === undefined;
}

/**
 * Whether an answer says nothing of the operation, as if it were lost: it names another one; or a posline gateway says in it that the outcome
 * is unknown; or it is a success with a message and no data, which may be another gateway's word for that where an error would be an end (qr
 * has none but "in progress", and over a line no header tells them apart).
 */
export function saysNothing(
  operation: Pick<FollowedOperation, "rules" | "keyField" | "key">,
  { reply, success }: Pick<AnsweredCall, "reply" | "success">,
): boolean {
  const hasMessageAlone = !isObject(reply["data"]) && scalarText(reply["message"]) !== undefined;
  const isGateways = reply["outcome"] === "unknown" || (success && operation.rules.learns !== undefined && hasMessageAlone);
  return isGateways || namesOtherKey(operation, reply);
}

/** Whether an answer names another operation's key than was asked for, in its data too: then it says nothing of ours. */
export function namesOtherKey({ keyField, key }: Pick<FollowedOperation, "keyField" | "key">, reply: JsonObject): boolean {
  const { data } = reply;
  const own = scalarText(key);
  const named = [reply[keyField], isObject(data) ? data[keyField] : undefined].map(scalarText);
  return named.some((each) => each !== undefined && own !== undefined && !isSameId(each, own));
}

/**
 * Whether a till that reads an answer alone takes it for an end: it states one, or is an error to a question where each of these ends an
 * operation (qr).
 * @param path What was answered.
 */
export function statesEnd(
  operation: UnderRules,
  path: string,
  { reply, success }: Pick<AnsweredCall, "reply" | "success">,
): boolean {
  const { contract } = operation;
  if (!success && contract.finals.errorIsFinal && isQuestion(contract, path)) return true;
  return verdictIn(operation, reply, success) !== undefined;
}

/**
 * Whether an answer that ended nothing states an end, or names another operation: what it says isn't proven to be about this one.
 * @param path What was answered.
 */
export function saysOthers(operation: FollowedOperation, path: string, result: CallResult): boolean {
  return result.outcome === "answered" && (namesOtherKey(operation, result.reply) || statesEnd(operation, path, result));
}

/** Whether two ids are one: terminals write an id of digits as a number, which loses its leading zeros (seen in the field: types are loose). */
export function isSameId(one: string, other: string): boolean {
  const digits = /^\d+$/;
  return one === other || (digits.test(one) && digits.test(other) && BigInt(one) === BigInt(other));
}

/** Whether an answer about a closed document says that it wasn't printed (fiscal.md, code 15 and printError). */
export function saysUnprinted({ rules }: Pick<FollowedOperation, "rules">, { reply, summary }: AnsweredCall): boolean {
  const error = looseInteger(reply["printError"]);
  return rules.print !== undefined && (summary.code === rules.print.code || (error !== undefined && error !== 0));
}
