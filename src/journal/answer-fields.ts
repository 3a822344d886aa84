import { contracts, routeOf } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import type { QuestionFields } from "../core/followed.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { keyOf, parseObject, textOf } from "../envelope/json.ts";
import { scalarText } from "../settle/exact-json.ts";
import { namesOtherKey, provesName, refusesStart, saysPending } from "../settle/proof.ts";
import { isStoredWhole, type OutcomeRecord } from "./record.ts";

/** What the answer to a request proves of its operation, as its record keeps it. */
export type AnswerFields = Pick<OutcomeRecord, "begun" | "learned" | "end">;

/** Reads it from how the request ended. */
export function answerFields(call: Call, ending: OperationLogEnding, ask: QuestionFields | undefined): AnswerFields {
  const { outcome, status, code, payload = [] } = ending;
  const contract = contracts[call.contract];
  const recovery = settlingRulesOf(call.contract, call.route);
  if (outcome !== "answered" || recovery === undefined) return {};
  if (status === "success") {
    const reply = parseObject(textOf(payload)) ?? {};
    const { key: keyField = "", polling } = routeOf(contract, call.route) ?? {};
    // Another one's, late. A call's key is cut, a terminal's isn't.
    if (namesOtherKey({ keyField, key: call.key }, { [keyField]: keyOf(reply[keyField]) })) return {};
    if (recovery.success === "followed") return { begun: true, learned: learnedIn(recovery.learns, call, reply, ask) };
    if (!saysPending({ contract, recovery }, { reply, summary: { code } })) return { end: recovery.success };
    // Where nothing can be asked, nobody would ever learn that it goes on
    return polling === undefined ? {} : { begun: true };
  }
  if (code === undefined) return {};
  if (contract.finals.pendingCodes.includes(code) || code === recovery.print?.code) return { begun: true };
  // Of one that is followed its follower decides what its answer proves.
  return call.followMs === undefined && refusesStart(recovery, code) ? { begun: false } : {};
}

/** Whether the answer to a followed call proves nothing, so that its caller is told "unknown" unless its follower learns more. */
export function leavesUnknown(call: Call, { outcome, code }: OperationLogEnding, fields: AnswerFields): boolean {
  const recovery = settlingRulesOf(call.contract, call.route);
  if (call.followMs === undefined || outcome !== "answered" || recovery === undefined) return false;
  return Object.keys(fields).length === 0 && !refusesStart(recovery, code);
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
  if (!provesName(reply)) return undefined;
  const data = reply["data"];
  const given = isObject(data) ? data[learns] : undefined;
  // A longer number has lost digits by now.
  if (typeof given === "number" && !Number.isSafeInteger(given)) return undefined;
  const name = scalarText(given) ?? (ask === undefined ? undefined : (scalarText(ask[learns]) ?? key));
  return name !== undefined && isStoredWhole(name) ? name : undefined;
}
