import { contracts, routeOf } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { keyOf, textOf } from "../envelope/json.ts";
import { isStoredWhole, type OutcomeRecord } from "../journal/record.ts";
import { emptySummary } from "../settle/call-result.ts";
import { scalarText } from "../settle/exact-json.ts";
import { nextStep } from "../settle/machine.ts";
import { hasCode, refusesStart, saysNothing } from "../settle/proof.ts";
import type { SettleState } from "../settle/state.ts";
import { answeredOf } from "./question.ts";
import { nothingSaid, type Said } from "./sending.ts";

/** Facts from the answer to an operation's own sending. */
export interface OwnAnswer {
  readonly said: Said;
  /** The operation's state after the answer; undefined if it has ended, or isn't asked about. */
  readonly state: SettleState | undefined;
  /** Facts of the answer, as the record has them. */
  readonly fields: Pick<OutcomeRecord, "begun" | "learned" | "end" | "message">;
}

/** @param start The state when it went out; undefined if it has no rules. */
export function ownAnswer(
  call: Call,
  { outcome, status, code, payload = [] }: OperationLogEnding,
  start?: SettleState,
): OwnAnswer {
  const contract = contracts[call.contract];
  const rules = settlingRulesOf(call.contract, call.route);
  if (rules === undefined || start === undefined || outcome === "not-sent")
    return { said: nothingSaid, state: undefined, fields: {} };
  const lost = (): OwnAnswer => ({ said: nothingSaid, state: { ...start, phase: "lost", doubt: true }, fields: {} });
  if (outcome !== "answered") return lost();
  const success = status === "success";
  // A till that follows its operation is told so by a word, which stays.
  if (call.followMs === undefined && !success && refusesStart(rules, code)) {
    return { said: { ...nothingSaid, begun: false }, state: undefined, fields: { begun: false } };
  }
  const { key: keyField = "", polling } = routeOf(contract, call.route) ?? {};
  const operation = { contract, rules, keyField, key: call.key, asks: polling !== undefined };
  const whole = answeredOf(textOf(payload))?.reply ?? {};
  // A call's key is cut, a terminal's isn't, so this one is cut before they are compared.
  const key = keyOf(scalarText(whole[keyField]));
  const reply = key === whole[keyField] ? whole : { ...whole, [keyField]: key };
  const result = { outcome: "answered", reply, success, summary: { ...emptySummary, code } } as const;
  if (saysNothing(operation, result)) return lost();
  const step = nextStep(operation, start, result, 0);
  const state = "state" in step ? step.state : step.verdict === "unknown" ? lost().state : undefined;
  const end = "verdict" in step && step.verdict !== "unknown" ? step.verdict : undefined;
  const begun = state?.phase === "accepted" ? true : undefined;
  const learned = rules.learns === undefined ? undefined : nameIn(reply, rules.learns, success ? start.learned : undefined);
  const isUnprinted = rules.print !== undefined && hasCode([rules.print.code], code);
  const stored = learned !== undefined && isStoredWhole(learned) ? { learned } : {};
  // No question will say more
  const message = polling === undefined && !success ? (scalarText(reply["message"]) ?? "") : undefined;
  const error = message === undefined ? undefined : { code, message };
  return { said: { begun, end, learned, isUnprinted, error }, state, fields: { begun, end, ...stored, message } };
}

/** The name that an answer gives (qr.md, Endpoints: data.trans must be saved and used); a success without one means the till's own. */
function nameIn({ data }: JsonObject, learns: string, own: string | undefined): string | undefined {
  return (isObject(data) ? scalarText(data[learns]) : undefined) ?? own;
}
