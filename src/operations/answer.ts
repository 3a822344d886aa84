import { adviceWhenUnknown } from "../contract/contracts.ts";
import type { Reply } from "../core/call.ts";
import { askAgain, Fault } from "../core/fault.ts";
import { type Followed, isGoodEnd, type OperationResult } from "../core/followed.ts";
import { textOf } from "../envelope/json.ts";
import type { Known } from "../settle/judge.ts";
import { hasCode, statesEnd, verdictIn } from "../settle/proof.ts";
import type { AskedCall } from "./asked-call.ts";
import type { EndedQuestion } from "./asking.ts";
import { answeredOf, errorText } from "./question.ts";
import type { Together } from "./sending.ts";

/**
 * The answer to a caller that waited for an operation's end: the word, and the terminal's bytes that prove it, or else why there are none.
 */

export interface Told {
  readonly asked: AskedCall;
  readonly together: Together;
  /** Of its last sending. */
  readonly known: Known;
  /** The answer to the operation's own sending; undefined if it was sent before. */
  readonly start: Reply | Fault | undefined;
  /** How its sending ended, for a caller who came later, or how the last question about it did. */
  readonly last: EndedQuestion | undefined;
  readonly polls: number;
  /** Why no answer to a question counts for the operation, in words; undefined if answers do. */
  readonly whyNot: string | undefined;
  /** Why the operation isn't asked about, in words; undefined if it is. */
  readonly cannotAsk: string | undefined;
  readonly isGuarded: boolean;
}

/** An answer that may be shown, as a till reads it that knows nothing else. */
interface Shown {
  readonly reply: Reply;
  /** The route that was answered. */
  readonly route: string;
  /** The end that it states; undefined if it states none. */
  readonly says: OperationResult | undefined;
  /** True if it would be taken for an end. */
  readonly isEnd: boolean;
  /** True if it says that there is none. */
  readonly isAbsent: boolean;
}

/** @throws Fault if its sending, or every question, failed. */
export function toldOf(told: Told): Reply {
  const { asked, together, known, start, last, polls, whyNot, cannotAsk, isGuarded } = told;
  const { end, isAccepted } = together;
  const isOpen = end === undefined;
  const answer = last === undefined || last.ending instanceof Fault ? undefined : shownOf(asked, last.route, last.ending);
  // What the terminal denies, or says of something else, doesn't go on.
  const goesOn = answer === undefined || !(answer.isAbsent || answer.isEnd);
  const result: OperationResult =
    end ?? (isAccepted && goesOn && whyNot === undefined && cannotAsk === undefined ? "pending" : "unknown");
  // Until a question has found the payment under its name, another sending may have shown another code.
  const trans = known.isNameProven ? known.name : undefined;
  const isLasting = result === "unknown" && asked.route.polling === undefined ? true : undefined;
  const followed: Followed = { result, answerOf: undefined, polls, isGuarded, isLasting, trans };
  if (isLasting && (start === undefined || start instanceof Fault)) throw neverKnown(told, followed);
  const isProof = answer !== undefined && whyNot === undefined && (isOpen ? !answer.isEnd : proves(answer, result));
  if (isOpen && start !== undefined) return shown(start, followed);
  if (isProof && !(answer.says === undefined && saysWhy(told)))
    return {
      ...answer.reply,
      followed: { ...followed, answerOf: answer.route === asked.route.path ? undefined : answer.route },
    };
  if (start !== undefined && !isDenied(result, start)) return shown(start, followed);
  throw nothingToShow(told, followed, answer !== undefined);
}

function shownOf({ contract, rules }: AskedCall, route: string, reply: Reply): Shown {
  const isAbsent = reply.status === "error" && hasCode(contract.finals.absentCodes, reply.code);
  const answered = answeredOf(textOf(reply.payload));
  const says = answered && verdictIn({ contract, rules }, answered.reply, answered.success);
  return { reply, route, says, isEnd: answered !== undefined && statesEnd({ contract, rules }, route, answered), isAbsent };
}

/** True if the operation's own answer says why nothing was done: "there is none", which proves that, doesn't. */
const saysWhy = ({ asked: { contract }, known, start }: Told) =>
  known.refusal !== undefined &&
  !known.isAccepted &&
  start !== undefined &&
  !(start instanceof Fault) &&
  start.code !== undefined &&
  start.code !== contract.faultCodes.broken;

function shown(start: Reply | Fault, followed: Followed): Reply {
  if (start instanceof Fault) throw new Fault(start.kind, start.message, { ...start.details, followed });
  return { ...start, followed };
}

/** True if the operation ended well though its own answer was an error: that answer isn't shown beside the good end. */
const isDenied = (result: OperationResult, start: Reply | Fault) =>
  isGoodEnd(result) && !(start instanceof Fault) && start.status !== "success";

/** True if an answer to a question says that the operation ended so. */
function proves({ reply, says, isAbsent }: Shown, result: OperationResult): boolean {
  if (isGoodEnd(result)) return isGoodEnd(says);
  if (says !== undefined) return says === result;
  return reply.status === "error" && (result === "failed" || !isAbsent);
}

/** The fault of an operation that nobody can be asked about: it stays unknown until a person has looked. */
function neverKnown({ asked: { contract, route }, start, known: { refusal: error } }: Told, followed: Followed): Fault {
  const lost = start instanceof Fault ? start : undefined;
  const what = error === undefined ? "no answer to it came" : `the terminal answered ${errorText(error)}`;
  const state = `${what}, which does not prove what was done, and ${contract.service} has no question about it: this will not change`;
  const advice = "Look at the terminal, or at the payment system, and record what you saw (posline journal settle)";
  return new Fault(lost?.kind ?? "broken", `Cannot say how ${route.path} ended: ${state}. ${advice}`, {
    ...lost?.details,
    reason: "no-question",
    followed,
  });
}

/**
 * The ending without a terminal's answer to show. A question's fault speaks of itself alone: that it wasn't sent, or changed nothing, would
 * be taken for the operation's.
 */
function nothingToShow({ asked, last, whyNot, cannotAsk }: Told, followed: Followed, isAnswered: boolean): Fault {
  const { result } = followed;
  const isOpen = result === "unknown" || result === "pending";
  const fault = last?.ending instanceof Fault ? last.ending : undefined;
  if (isOpen && whyNot === undefined && fault?.outcome === "unknown") {
    const message = fault.message.replace(askAgain, adviceWhenUnknown(asked.contract, asked.route, asked.key));
    return new Fault(fault.kind, message, { ...fault.details, followed });
  }
  const what = isOpen ? "how it ended is not known" : `it ended as ${result}`;
  const unsaid = isOpen ? "the last answer about it doesn't prove it" : "no answer about it says so any more";
  const why = whyNot ?? (isAnswered ? unsaid : (cannotAsk ?? "no question about it was answered"));
  return new Fault("broken", `Cannot show an answer to ${asked.route.path}: it was sent before, ${what}, and ${why}`, {
    reason: "no-reply",
    followed,
  });
}
