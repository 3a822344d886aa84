import { isGoodEnd, isOperationEnd } from "../core/followed.ts";
import type { CallResult } from "./call-result.ts";
import { type Continue, type Done, nextStep, stateNamed } from "./machine.ts";
import type { FollowedOperation } from "./proof.ts";
import { nothingBegun, type SettleState, stateAtResume } from "./state.ts";

/**
 * The meaning of the answer to a call that a bridge was asked to follow (`Prefer: wait`). A bridge that recognises the same call has it sent
 * again while its word is pending or unknown. Any other service is asked from here, as `settle` does without, with what the answer to
 * the start said, by the same rules.
 */

/** The longest for which one call asks the bridge to follow, in seconds: its own limit. */
const waitSMax = 600;

/** Milliseconds that an answer may take beyond the bridge's following: its first exchange has a limit of its own. */
const marginMs = 30_000;

/**
 * For how long a call asks the bridge to follow, and waits for its answer.
 * @param leftMs Milliseconds that are left of the window.
 */
export function waitFor(leftMs: number, replyTimeoutMs: number): { readonly waitS: number; readonly timeoutMs: number } {
  const waitS = Math.min(waitSMax, Math.ceil(Math.max(0, leftMs) / 1_000));
  return { waitS, timeoutMs: replyTimeoutMs + waitS * 1_000 + marginMs };
}

/**
 * The operation goes on. `repeat`: by the same call. `ask`: by a question, at once. `stop`: nothing more can be learned of it. undefined: as its
 * state says.
 */
interface ContinueByBridge extends Continue {
  readonly next: "repeat" | "ask" | "stop" | undefined;
}

/**
 * What an answer to the call means for the operation.
 * @param isAgain An earlier call may have arrived.
 */
export function nextByBridge(
  operation: FollowedOperation,
  known: SettleState,
  result: CallResult,
  isAgain: boolean,
): ContinueByBridge | Done {
  const { followed, reason } = result.summary;
  const isGuarded = followed?.isGuarded === true;
  const end = followed !== undefined && isOperationEnd(followed.result) ? followed.result : undefined;
  const isUnsent = result.outcome === "not-sent";
  // Another body has its key: once anything may have begun, what is asked about the key would be about that one.
  const isReused = reason === "key-reused" && !nothingBegun(known);
  // Where the bridge knows of an earlier sending, that this one wasn't sent says nothing of that.
  if (isUnsent && known.phase === "ready" && !isReused && (!isGuarded || end !== undefined)) {
    const step = nextStep(operation, known, result, 0);
    return "verdict" in step ? step : { ...step, next: isGuarded && step.state.phase !== "ready" ? "repeat" : undefined };
  }
  // A call that is sent again is answered by what the first one was, if the bridge recognises it; else it may have been carried out anew.
  const atStart: SettleState = { ...known, phase: "ready", doubt: known.doubt || (isAgain && !isGuarded) };
  const names = namesBy(operation, atStart, followed);
  // An earlier call may have shown another code, which may be paid: the failure of this one is no end then (qr.md, Flow rules 3).
  const isOfSecondCode = end !== undefined && !isGuarded && isAgain && operation.rules.learns !== undefined && !isGoodEnd(end);
  if (end !== undefined && !isUnsent && !isOfSecondCode) {
    const reply = result.outcome === "answered" ? result.reply : undefined;
    // The bridge's `failed` is the contract's own word for it.
    const verdict = end === "failed" ? operation.rules.refused : end;
    return { verdict, reply, summary: result.summary, known: { ...known, ...names } };
  }
  let state = stateAtResume(known);
  const isOwn = !isUnsent && followed?.answerOf === undefined;
  const isToldAgain = isGuarded && known.phase !== "ready" && known.phase !== "lost";
  if (isOwn && !isToldAgain) {
    const step = nextStep(operation, atStart, result, 0);
    if (!("verdict" in step)) state = afterOwnAnswer(known, step.state);
    else if (followed === undefined) return step;
  }
  // The terminal has it, whatever answer is shown.
  if (followed?.result === "pending") state = { ...state, phase: "accepted" };
  // A third code would be shown to a customer who has paid the first.
  state = { ...state, ...names, ...(isOfSecondCode && { isSentOnce: true }) };
  const goesOn: Continue = isUnsent
    ? { state, pause: "back-off", retryAfterMs: result.retryAfterMs }
    : { state, pause: "interval" };
  // What nobody can be asked about stays unknown.
  if (reason === "key-reused" || reason === "no-question") return { ...goesOn, next: "stop" };
  // Sent again at once it might reach the terminal again. A call that wasn't sent says nothing of that.
  return { ...goesOn, next: isGuarded || (isUnsent && result.passing) ? "repeat" : "ask" };
}

/** What may be sent again is asked about first, and what was accepted stays so: but its name may be another by now. */
function afterOwnAnswer(known: SettleState, next: SettleState): SettleState {
  if (known.phase !== "accepted") return stateAtResume(next);
  const { learned, learnedProven, hasOtherNames, doubt } = next;
  return { ...known, learned, learnedProven, hasOtherNames, doubt };
}

/**
 * The name that the bridge says is proven. While the operation goes on, a bridge that forgot an earlier call doesn't know that this may have
 * shown another code.
 */
function namesBy(
  { rules }: FollowedOperation,
  atStart: SettleState,
  followed: CallResult["summary"]["followed"],
): Partial<SettleState> {
  if (rules.learns === undefined || followed?.trans === undefined) return {};
  const { trans: learned, isGuarded, result } = followed;
  const { learnedProven, hasOtherNames } = stateNamed(atStart, learned);
  const isProven = isGuarded || learnedProven || isGoodEnd(result);
  return { learned, learnedProven: isProven, hasOtherNames: hasOtherNames && !isGuarded };
}
