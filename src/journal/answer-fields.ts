import { contracts, routeOf } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import type { QuestionFields } from "../core/followed.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { keyOf, parseObject, textOf } from "../envelope/json.ts";
import { scalarText } from "../settle/exact-json.ts";
import { refusesStart, saysNothing, saysPending } from "../settle/proof.ts";
import { isStoredWhole, type OutcomeRecord } from "./record.ts";

/** What the answer to a request proves of its operation, as its record keeps it. */
export type AnswerFields = Pick<OutcomeRecord, "begun" | "learned" | "end">;

/** Reads it from how the request ended. */
export function answerFields(call: Call, ending: OperationLogEnding, ask: QuestionFields | undefined): AnswerFields {
  const { outcome, status, code, payload = [] } = ending;
  const contract = contracts[call.contract];
  const recovery = settlingRulesOf(call.contract, call.route);
  if (outcome !== "answered" || recovery === undefined) return {};
  const reply = parseObject(textOf(payload)) ?? {};
  if (status === "success") {
    const { key: keyField = "", polling } = routeOf(contract, call.route) ?? {};
    // A call's key is cut, a terminal's isn't.
    const compared = { ...reply, [keyField]: keyOf(reply[keyField]) };
    if (saysNothing({ recovery, keyField, key: call.key }, { reply: compared, success: true })) return {};
    const { learns } = recovery;
    // Where the answer gives none the till's own is right.
    const own = learns === undefined || ask === undefined ? undefined : (scalarText(ask[learns]) ?? call.key);
    if (recovery.success === "followed") return { begun: true, learned: nameIn(learns, reply, own) };
    if (!saysPending({ contract, recovery }, { reply, summary: { code } })) return { end: recovery.success };
    // Where nothing can be asked, nobody would ever learn that it goes on
    return polling === undefined ? {} : { begun: true };
  }
  const learned = nameIn(recovery.learns, reply, undefined);
  const named = learned === undefined ? {} : { learned };
  if (code === undefined) return named;
  if (contract.finals.pendingCodes.includes(code) || code === recovery.print?.code) return { begun: true };
  // Of one that is followed its follower decides what its answer proves.
  return call.followMs === undefined && refusesStart(recovery, code) ? { begun: false } : named;
}

/** Whether the answer to a followed call proves nothing, so that its caller is told "unknown" unless its follower learns more. */
export function leavesUnknown(call: Call, { outcome, code }: OperationLogEnding, { begun, end }: AnswerFields): boolean {
  const recovery = settlingRulesOf(call.contract, call.route);
  if (call.followMs === undefined || outcome !== "answered" || recovery === undefined) return false;
  return begun === undefined && end === undefined && !refusesStart(recovery, code);
}

/**
 * The name that an answer gives (qr.md, Endpoints: data.trans must be saved and used). undefined where that can't be kept as it is.
 * @param learns The field that it stands in.
 * @param otherwise Where it gives none.
 */
function nameIn(learns: string | undefined, reply: JsonObject, otherwise: string | undefined): string | undefined {
  if (learns === undefined) return undefined;
  const data = reply["data"];
  const given = isObject(data) ? data[learns] : undefined;
  // A longer number has lost digits by now.
  if (typeof given === "number" && !Number.isSafeInteger(given)) return undefined;
  const name = scalarText(given) ?? otherwise;
  return name !== undefined && isStoredWhole(name) ? name : undefined;
}
