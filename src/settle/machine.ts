import type { SettlingRules, Verdict } from "../contract/settling.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { type AnswerSummary, type CallResult, summaryOfUnproven } from "./call-result.ts";
import { isInexact, scalarText } from "./exact-json.ts";
import {
  type AnsweredCall,
  type FollowedOperation,
  fingerprintOf,
  hasCode,
  isOfAnother,
  isOwnRefusal,
  provesOwnEnd,
  refusesStart,
  saysAbsent,
  saysNothing,
  saysPending,
  saysUnprinted,
  verdictIn,
} from "./proof.ts";
import { actionOf, mayResend, nothingBegun, type SettleState, stateToAskAbout } from "./state.ts";

/**
 * The settle machine: follows an operation to its end without a clock and without sending. State and answer go in, the next step
 * comes out. The contracts' rules are data (`contract/settling.ts`); here is their interpreter.
 */

/** The operation goes on, after a pause. */
export interface Continue {
  readonly state: SettleState;
  readonly pause: "none" | "interval" | "back-off";
  readonly retryAfterMs?: number | undefined;
  /** The closed document whose copy is to be printed. */
  readonly document?: JsonObject;
}

/** The operation has ended, or nothing more can be learned of it. */
export interface Done {
  readonly verdict: Verdict | "unknown";
  readonly reply: JsonObject | undefined;
  readonly summary: AnswerSummary | undefined;
  /** What is known by then, where the answer says more than the end. */
  readonly known?: SettleState;
}

/** What follows from an answer. */
export type NextStep = Continue | Done;

/**
 * What an answer means for the operation.
 * @param sinceStartMs Milliseconds from the end of the last start, or from when this process took the operation up, to this request.
 */
export function nextStep(operation: FollowedOperation, state: SettleState, result: CallResult, sinceStartMs: number): NextStep {
  switch (actionOf(state)) {
    case "start":
      return afterStart(operation, state, result);
    case "ask":
      if (state.phase === "baseline") return afterBaseline(operation, state, result);
      return afterQuery(operation, state, result, sinceStartMs);
    case "print":
      return afterPrint(state, result);
  }
}

// --- the start

function afterStart(operation: FollowedOperation, state: SettleState, result: CallResult): NextStep {
  if (result.outcome === "not-sent") return afterNotSent(operation, state, result);
  if (result.outcome === "unknown" || saysNothing(operation, result)) {
    const summary = result.outcome === "unknown" ? result.summary : summaryOfUnproven(result);
    if (!operation.asks) return { verdict: "unknown", reply: undefined, summary };
    return askAgain({ ...state, phase: "lost", doubt: true, absents: 0 });
  }
  const learned = learnName(operation, state, result);
  return result.success ? afterSuccess(operation, learned, result) : afterError(operation, learned, result);
}

function afterNotSent(
  { rules }: FollowedOperation,
  state: SettleState,
  result: CallResult & { outcome: "not-sent" },
): NextStep {
  const { summary, passing, retryAfterMs } = result;
  if (!mayResend(state)) return nothingBegun(state) ? doneRefused(rules, summary) : askAgain(stateToAskAbout(state));
  if (passing) return { state, pause: "back-off", retryAfterMs };
  if (hasCode(rules.signCodes, summary.code) && !state.signedAgain)
    return { state: { ...state, signedAgain: true }, pause: "none" };
  // An earlier start that was lost, or refused by an error that leaves it open, isn't undone by this one
  return nothingBegun(state) ? doneRefused(rules, summary) : askAgain(stateToAskAbout(state));
}

const doneRefused = ({ refused: verdict }: SettlingRules, summary: AnswerSummary): NextStep => ({
  verdict,
  reply: undefined,
  summary,
});

function afterSuccess(operation: FollowedOperation, state: SettleState, result: AnsweredCall): NextStep {
  const { reply, summary } = result;
  const { contract, rules, asks } = operation;
  const { success, startMayEnd } = rules;
  if (success !== "followed" && !saysPending(operation, result)) return { verdict: success, reply, summary };
  if (!asks) return unproven(result, `the success has no ${contract.finals.field.join(".")}`);
  const end = startMayEnd ? verdictIn(operation, reply, true) : undefined;
  // The document that stood under the key before is another's (fiscal.md: a refund under the number of its sale)
  if (end !== undefined && !provesOwnEnd(operation, state.baseline, reply))
    return askAgain({ ...state, phase: "accepted", absents: 0 });
  // A document that was closed by an earlier delivery may be without its print.
  if (end !== undefined && saysUnprinted(operation, result)) return askAgain({ ...state, phase: "accepted", unprinted: true });
  if (end !== undefined) return { verdict: end, reply, summary };
  return askAgain({ ...state, phase: "accepted", absents: 0, refusals: 0 });
}

function afterError(operation: FollowedOperation, state: SettleState, { reply, summary }: AnsweredCall): NextStep {
  const { rules, contract, asks } = operation;
  const { code, message } = summary;
  if (!asks) return unproven({ reply, summary }, message ?? "refused");
  if (hasCode(contract.finals.pendingCodes, code)) return askAgain({ ...state, phase: "accepted", absents: 0 });
  if (code !== undefined && code === rules.print?.code) return askAgain({ ...state, phase: "accepted", unprinted: true });
  const signsAgain = hasCode(rules.signCodes, code) && !state.signedAgain && mayResend(state);
  if (signsAgain) return { state: { ...state, signedAgain: true }, pause: "none" };
  const provesNothingBegun = refusesStart(rules, code);
  if (provesNothingBegun && !state.doubt) return { verdict: rules.refused, reply, summary };
  const isToResend = hasCode(rules.resendCodes, code) || (state.doubt && hasCode(rules.resendCodesInDoubt, code));
  if (isToResend && mayResendNow(rules, state)) {
    return { state: { ...state, doubt: true, resends: state.resends + 1 }, pause: "interval" };
  }
  // Where the query can't name a start that failed (qr), a second refusal of the same start has to prove it instead
  const doubt = state.doubt || (!provesNothingBegun && rules.learns === undefined);
  const refused = { refusal: { code, message }, refusals: state.refusals + 1, earlierInDoubt: state.doubt } as const;
  return askAgain({ ...state, ...refused, phase: "refused", doubt, absents: 0 });
}

/** Of an operation that has no query: an answer that leaves it open is all that can be learned of it. */
const unproven = ({ reply, summary }: Pick<AnsweredCall, "reply" | "summary">, said: string): NextStep => ({
  verdict: "unknown",
  reply,
  summary: {
    ...summary,
    message: `${said}: that does not prove what was done, and this operation has no query: look it up before sending it again`,
  },
});

// --- the query

/**
 * What is known under the key before anything is sent. Whatever runs there must have ended, or its end would be taken for ours. That there
 * is nothing counts as often as after a start: who has lost sight of it in passing, as a gateway may, would let it pass for ours as well.
 */
function afterBaseline(operation: FollowedOperation, state: SettleState, result: CallResult): NextStep {
  const { rules } = operation;
  if (result.outcome === "not-sent") {
    if (!result.passing) return doneRefused(rules, result.summary);
    return { state, pause: "back-off", retryAfterMs: result.retryAfterMs };
  }
  if (result.outcome === "unknown" || saysNothing(operation, result)) return askAgain(state);
  const { code } = result.summary;
  if (!result.success && hasCode(rules.baseline ?? [], code)) {
    const absents = state.absents + 1;
    if (absents < rules.absentsMin) return askAgain({ ...state, absents });
    return { state: { ...state, phase: "ready", baseline: "", absents: 0 }, pause: "none" };
  }
  const seen = { ...state, absents: 0 };
  const before = fingerprintOf(operation, result.reply);
  if (before !== undefined) return { state: { ...seen, phase: "ready", baseline: before }, pause: "none" };
  // Refused is the question alone: of the operation, which isn't sent, nothing is said
  return refusesStart(rules, code) ? doneRefused(rules, result.summary) : askAgain(seen);
}

function afterQuery(operation: FollowedOperation, state: SettleState, result: CallResult, sinceStartMs: number): NextStep {
  if (result.outcome === "not-sent") return { state, pause: "back-off", retryAfterMs: result.retryAfterMs };
  if (result.outcome === "unknown" || saysNothing(operation, result)) return askAgain(state);
  if (saysAbsent(operation, result)) return afterAbsent(operation, state, result, sinceStartMs);
  const { reply, success, summary } = result;
  // Only the start's answer names it: one that names another than was asked for is the start's own, or another payment's, late
  if (namesOtherPayment(operation, state, reply)) return askAgain(state);
  const seen = { ...state, absents: 0 };
  const end = verdictIn(operation, reply, success);
  if (isOfAnother(operation, seen, result, end)) return askAgain(state);
  if (end !== undefined) {
    return provesOwnEnd(operation, seen.baseline, reply) ? afterEnd(operation, seen, end, result) : askAgain(seen);
  }
  const hasFailedToPrint = !success && summary.code !== undefined && summary.code === operation.rules.print?.code;
  if (hasFailedToPrint) return askAgain({ ...seen, phase: "accepted", unprinted: true });
  if (success || hasCode(operation.contract.finals.pendingCodes, summary.code)) return afterPending(seen);
  return operation.contract.finals.errorIsFinal ? afterFinalError(operation, seen, result) : askAgain(seen);
}

function namesOtherPayment({ rules }: FollowedOperation, state: SettleState, reply: JsonObject): boolean {
  const data = reply["data"];
  const named = rules.learns !== undefined && isObject(data) ? scalarText(data[rules.learns]) : undefined;
  return named !== undefined && named !== state.learned;
}

/** The operation runs; and the name that the query gave is the right one, since the service knows it. */
function afterPending(state: SettleState): NextStep {
  return askAgain({ ...state, phase: "accepted", learnedProven: state.learnedProven || !state.hasOtherNames });
}

function afterAbsent(
  { contract, rules }: FollowedOperation,
  state: SettleState,
  { reply, summary }: AnsweredCall,
  sinceStartMs: number,
): NextStep {
  // Something was known under this key before, or may have been: that it is gone says nothing of ours, and it may be found again.
  // Nor may one that had ended, or was sent long ago, be known for ever
  if (state.hasEnded || state.isOld || state.baseline !== "") return askAgain(state);
  const seen = { ...state, absents: state.absents + 1 };
  const end: NextStep = { verdict: rules.refused, reply, summary: summaryOfRefusal(state, summary) };
  // What is said while it may be on its way doesn't count: it would leave one answer to decide later, which may be a passing one.
  const counted = seen.absents >= rules.absentsMin ? end : askAgain(seen);
  const endLater = sinceStartMs < rules.absentsAfterMs ? askAgain({ ...state, absents: 0 }) : counted;
  switch (state.phase) {
    case "refused":
      // An earlier delivery may be on its way still, or the one that was answered so
      if (state.earlierInDoubt) return endLater;
      if (isOwnRefusal(contract, state.refusal?.code)) return end;
      // What the contract has resent must not be held up by half a minute
      return hasCode(rules.resendCodes, state.refusal?.code) ? counted : endLater;
    case "lost":
      return mayResendNow(rules, seen) ? resend(rules, seen) : endLater;
    default:
      if (rules.absentWhenAccepted === "refused") return endLater;
      return state.isAborted && rules.absentWhenAborted === "refused" ? endLater : askAgain({ ...state, absents: 0 });
  }
}

/**
 * An error by which the service ends an operation (qr). It proves an end only when the query is known to have named the right one;
 * else the same start with the same key, which is the same payment, gives the name, or refuses it again.
 */
function afterFinalError({ rules }: FollowedOperation, state: SettleState, { reply, summary }: AnsweredCall): NextStep {
  if (state.isOld) return askAgain(state);
  if (state.learnedProven) return { verdict: rules.refused, reply, summary };
  if (state.phase === "accepted") return askAgain(state);
  if (state.phase === "refused" && state.refusals > 1 && !state.doubt) {
    return { verdict: rules.refused, reply, summary: summaryOfRefusal(state, summary) };
  }
  return resend(rules, state);
}

const mayResendNow = ({ resendsMax }: SettlingRules, state: SettleState) => mayResend(state) && state.resends < resendsMax;

/** Sends the same request once more, if it may be. */
function resend(rules: SettlingRules, state: SettleState): NextStep {
  if (!mayResendNow(rules, state)) return askAgain(state);
  return { state: { ...state, phase: "ready", resends: state.resends + 1, absents: 0 }, pause: "none" };
}

const askAgain = (state: SettleState): NextStep => ({ state, pause: "interval" });

function summaryOfRefusal(state: SettleState, summary: AnswerSummary): AnswerSummary {
  return state.refusal === undefined ? summary : { ...summary, ...state.refusal };
}

// --- the end, and printing

function afterEnd(operation: FollowedOperation, state: SettleState, verdict: Verdict, result: AnsweredCall): NextStep {
  const { print } = operation.rules;
  const { reply, summary } = result;
  // The operation had ended so by its copy, which the document's printError doesn't know of.
  const isCopied = state.end === "closed" && state.unprinted;
  const lacksPrint = !isCopied && (state.unprinted || saysUnprinted(operation, result));
  // Paid under the name that was asked for: that is the right one, whichever other codes were shown
  if (print === undefined || !lacksPrint) return { verdict, reply, summary, known: { ...state, learnedProven: true } };
  // A number that has lost digits as it was read would name another document, and can't be written.
  const nameable = scalarText(reply[print.key]) !== undefined && !isInexact(reply[print.key]);
  if (state.copied || !nameable) return { verdict: "unprinted", reply, summary };
  return { state: { ...state, phase: "printing", unprinted: true }, pause: "none", document: reply };
}

function afterPrint(state: SettleState, result: CallResult): NextStep {
  if (result.outcome === "not-sent" && result.passing) return { state, pause: "back-off", retryAfterMs: result.retryAfterMs };
  const printed = result.outcome === "answered" && result.success;
  return { verdict: printed ? "closed" : "unprinted", reply: undefined, summary: result.summary };
}

/**
 * Takes over the name that only the start's answer gives (qr.md, Endpoints: data.trans must be saved and used). A success without one
 * says that the system makes none, so the till's own is right; but not where an earlier start may have been answered with one, or where a
 * repetition may go unnamed. An earlier start that was refused has shown no code of another name.
 */
function learnName({ rules }: FollowedOperation, state: SettleState, { reply, success }: AnsweredCall): SettleState {
  if (rules.learns === undefined) return state;
  const data = reply["data"];
  const named = isObject(data) ? scalarText(data[rules.learns]) : undefined;
  if (named !== undefined) return stateNamed(state, named);
  return success && nothingBegun(state) ? { ...state, learnedProven: true } : state;
}

/** The state of an operation whose last start was given this name. */
export function stateNamed(state: SettleState, name: string): SettleState {
  // An earlier start may have shown a code of another name, which may be paid: that this one fails is no end then.
  const isOnly = !state.doubt || (name === state.learned && !state.hasOtherNames);
  return { ...state, learned: name, learnedProven: isOnly, hasOtherNames: !isOnly };
}
