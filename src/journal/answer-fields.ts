import { contracts } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import { recoveryOf } from "../contract/recovery.ts";
import type { Call } from "../core/call.ts";
import type { QuestionFields } from "../core/followed.ts";
import { isObject } from "../core/json-object.ts";
import { parseObject, textOf } from "../envelope/json.ts";
import { isStoredWhole, type OutcomeRecord } from "./record.ts";

/** What the answer to a request proves of its operation beside an end, as its record keeps it. */
export type AnswerFields = Pick<OutcomeRecord, "begun" | "learned">;

/** Reads it from how the request ended. */
export function answerFields(call: Call, ending: OperationLogEnding, ask: QuestionFields | undefined): AnswerFields {
  const { contract, route } = call;
  const { outcome, status, code } = ending;
  const recovery = recoveryOf(contract, route);
  if (outcome !== "answered" || recovery === undefined) return {};
  const isPending = code !== undefined && contracts[contract].finals.pendingCodes.includes(code);
  if (status === "success") return { begun: true, learned: learnedIn(recovery.learns, call, ending, ask) };
  if (isPending) return { begun: true };
  // Of one that is followed its follower decides what its answer proves.
  return code !== undefined && call.followMs === undefined && recovery.refusals.includes(code) ? { begun: false } : {};
}

/**
 * The name that a success gives (qr.md, Endpoints: data.trans must be saved and used); where it gives none the till's own is right.
 * undefined where that can't be kept as it is.
 */
function learnedIn(
  learns: string | undefined,
  { key }: Call,
  { payload = [] }: OperationLogEnding,
  ask: QuestionFields | undefined,
): string | undefined {
  if (learns === undefined) return undefined;
  const reply = parseObject(textOf(payload));
  const data = reply?.["data"];
  // One with a message alone may be a gateway's word for an outcome that it doesn't know.
  if (reply === undefined || (!isObject(data) && reply["message"] !== undefined)) return undefined;
  const given = isObject(data) ? data[learns] : undefined;
  const isName = (typeof given === "string" && given !== "") || Number.isSafeInteger(given);
  const name = isName ? String(given) : (ask?.[learns] ?? key);
  return name === undefined || !isStoredWhole(String(name)) ? undefined : String(name);
}
