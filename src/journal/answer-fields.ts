import type { Contract } from "../contract/contract.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import { recoveryOf } from "../contract/recovery.ts";
import type { Call } from "../core/call.ts";
import type { QuestionFields } from "../core/followed.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { parseObject, textOf } from "../envelope/json.ts";
import { isStoredWhole, type OutcomeRecord } from "./record.ts";

/** What the answer to a request proves of its operation, as its record keeps it. */
export type AnswerFields = Pick<OutcomeRecord, "begun" | "learned" | "end">;

/** Reads it from how the request ended. */
export function answerFields(call: Call, ending: OperationLogEnding, ask: QuestionFields | undefined): AnswerFields {
  const { outcome, status, code, payload = [] } = ending;
  const contract = contracts[call.contract];
  const recovery = recoveryOf(call.contract, call.route);
  if (outcome !== "answered" || recovery === undefined) return {};
  if (status === "success") {
    const reply = parseObject(textOf(payload)) ?? {};
    if (namesOther(call, reply[routeOf(contract, call.route)?.key ?? ""])) return {};
    if (recovery.success === "followed") return { begun: true, learned: learnedIn(recovery.learns, call, reply, ask) };
    return isOpenIn(contract, reply, code) ? { begun: true } : { end: recovery.success };
  }
  if (code === undefined) return {};
  if (contract.finals.pendingCodes.includes(code) || code === recovery.print?.code) return { begun: true };
  // Of one that is followed its follower decides what its answer proves.
  return call.followMs === undefined && recovery.refusals.includes(code) ? { begun: false } : {};
}

/** Whether an answer names another operation: then it is another one's, late. Digits may come as a number, without leading zeros. */
function namesOther({ key }: Call, named: unknown): boolean {
  if (typeof named !== "string" && typeof named !== "number") return false;
  const bare = (text: string) => (/^\d+$/.test(text) ? text.replace(/^0+/, "") : text);
  return key === undefined || bare(String(named)) !== bare(key);
}

/** Whether the contract's final field is there without a final value (fiscal: docStatus 0), or a code of progress in its place. */
function isOpenIn({ finals: { field, values, pendingCodes } }: Contract, reply: JsonObject, code: number | undefined): boolean {
  let value: unknown = reply;
  for (const name of field) value = isObject(value) ? value[name] : undefined;
  if (value === undefined) return code !== undefined && pendingCodes.includes(code);
  return values.length > 0 && !values.some((final) => String(final) === String(value));
}

/**
 * The name that a success gives (qr.md, Endpoints: data.trans must be saved and used); where it gives none the till's own is right.
 * undefined where that isn't known here, or can't be kept as it is.
 */
function learnedIn(
  learns: string | undefined,
  { key }: Call,
  reply: JsonObject,
  ask: QuestionFields | undefined,
): string | undefined {
  if (learns === undefined) return undefined;
  const data = reply["data"];
  // One with a message alone may be a gateway's word for an outcome that it doesn't know.
  if (!isObject(data) && reply["message"] !== undefined) return undefined;
  const given = (isObject(data) ? data[learns] : undefined) ?? "";
  const name = given !== "" ? given : ask === undefined ? undefined : (ask[learns] ?? key);
  // A longer number has lost digits by now.
  if (typeof name !== "string" && !Number.isSafeInteger(name)) return undefined;
  return isStoredWhole(String(name)) ? String(name) : undefined;
}
