import type { Recovery, Verdict } from "../contract/recovery.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import {
  type Answered,
  endOf,
  fingerprintOf,
  isAboutAnother,
  isAbsent,
  isIn,
  type Operation,
  provesEnd,
  provesKnown,
  saysOpen,
  saysUnprinted,
} from "./evidence.ts";
import { textOf } from "./exact-json.ts";
import { actionOf, askedAbout, isUntouched, type Known } from "./known.ts";
import type { Delivery, Words } from "./service.ts";

/**
 * Following an operation to its end, without a clock and without sending: what is known, what to do next, and what an answer to
 * that changes. The contracts' rules come as data (`contract/recovery.ts`); here is their interpreter.
 */

/** It goes on, after a pause. */
export interface Onward {
  readonly known: Known;
  readonly pause: "none" | "interval" | "back-off";
  readonly retryAfterMs?: number | undefined;
  /** The closed document whose copy is to be printed. */
  readonly document?: JsonObject;
}

/** It has come to an end, or to where nothing more can be learned. */
export interface Ended {
  readonly verdict: Verdict | "unknown";
  readonly reply: JsonObject | undefined;
  readonly words: Words | undefined;
}

/** What followed from an answer. */
export type Next = Onward | Ended;

/**
 * What an answer means for the operation.
 * @param sinceStartMs Milliseconds from the end of the last start, or from when this process took the operation up, to this request.
 */
export function after(operation: Operation, known: Known, delivery: Delivery, sinceStartMs: number): Next {
  switch (actionOf(known)) {
    case "start":
      return afterStart(operation, known, delivery);
    case "ask":
      if (known.phase === "baseline") return afterBaseline(operation, known, delivery);
      return afterQuestion(operation, known, delivery, sinceStartMs);
    case "print":
      return afterPrint(known, delivery);
  }
}

// --- the start

function afterStart(operation: Operation, known: Known, delivery: Delivery): Next {
  if (delivery.outcome === "not-sent") return afterNotSent(operation, known, delivery);
  if (delivery.outcome === "unknown" || isAboutAnother(operation, delivery.reply)) {
    if (!operation.asks) return { verdict: "unknown", reply: undefined, words: delivery.words };
    return ask({ ...known, phase: "lost", doubt: true, absents: 0 });
  }
  const learned = learn(operation, known, delivery);
  return delivery.success ? afterSuccess(operation, learned, delivery) : afterError(operation, learned, delivery);
}

function afterNotSent({ recovery }: Operation, known: Known, delivery: Delivery & { outcome: "not-sent" }): Next {
  const { words, passing, retryAfterMs } = delivery;
  if (known.askOnly) return isUntouched(known) ? refused(recovery, words) : ask(askedAbout(known));
  if (passing) return { known, pause: "back-off", retryAfterMs };
  if (isIn(recovery.signCodes, words.code) && !known.signedAgain)
    return { known: { ...known, signedAgain: true }, pause: "none" };
  // An earlier start that was lost, or refused by an error that leaves it open, isn't undone by this one
  return isUntouched(known) ? refused(recovery, words) : ask(askedAbout(known));
}

const refused = ({ refused: verdict }: Recovery, words: Words): Next => ({ verdict, reply: undefined, words });

function afterSuccess(operation: Operation, known: Known, delivery: Answered): Next {
  const { reply, words } = delivery;
  const { success, startMayEnd } = operation.recovery;
  if (success !== "followed" && !saysOpen(operation, delivery)) return { verdict: success, reply, words };
  const end = startMayEnd ? endOf(operation, reply, true) : undefined;
  // The document that stood under the key before is another's (fiscal.md: a refund under the number of its sale)
  if (end !== undefined && !provesEnd(operation, known.baseline, reply))
    return ask({ ...known, phase: "accepted", absents: 0 });
  // One that was closed by an earlier delivery may be without its print
  if (end !== undefined && saysUnprinted(operation, delivery)) return ask({ ...known, phase: "accepted", unprinted: true });
  if (end !== undefined) return { verdict: end, reply, words };
  return ask({ ...known, phase: "accepted", absents: 0, refusals: 0 });
}

function afterError(operation: Operation, known: Known, { reply, words }: Answered): Next {
  const { recovery, contract, asks } = operation;
  const { code, message } = words;
  if (!asks) return { verdict: "unknown", reply, words: { ...words, message: `${message ?? "refused"}: ${unasked}` } };
  if (isIn(contract.finals.pendingCodes, code)) return ask({ ...known, phase: "accepted", absents: 0 });
  if (code !== undefined && code === recovery.print?.code) return ask({ ...known, phase: "accepted", unprinted: true });
  const signsAgain = isIn(recovery.signCodes, code) && !known.signedAgain && !known.askOnly;
  if (signsAgain) return { known: { ...known, signedAgain: true }, pause: "none" };
  const provesNothingBegun = isIn(recovery.refusals, code) || isIn(recovery.signCodes, code);
  if (provesNothingBegun && !known.doubt) return { verdict: recovery.refused, reply, words };
  const again = isIn(recovery.resendCodes, code) || (known.doubt && isIn(recovery.resendCodesInDoubt, code));
  if (again && !known.askOnly && known.resends < recovery.resendsMax) {
    return { known: { ...known, doubt: true, resends: known.resends + 1 }, pause: "interval" };
  }
  // Where the question can't name a start that failed (qr), a second refusal of the same start has to tell instead
  const doubt = known.doubt || (!provesNothingBegun && recovery.learns === undefined);
  return ask({ ...known, phase: "refused", doubt, absents: 0, refusal: { code, message }, refusals: known.refusals + 1 });
}

/** Of an operation that has no question: its error is the last that is heard of it. */
const unasked =
  "an error does not prove that nothing was done, and there is nothing to ask: look it up before it is sent again";

// --- the question

/** What is known under the key before anything is sent. Whatever runs there must have ended, or its end would be taken for ours. */
function afterBaseline(operation: Operation, known: Known, delivery: Delivery): Next {
  if (delivery.outcome === "answered") {
    const { reply, words } = delivery;
    const before = isAbsent(operation, delivery) ? "" : fingerprintOf(operation, reply);
    if (before !== undefined) return { known: { ...known, phase: "ready", baseline: before }, pause: "none" };
    if (isIn(operation.recovery.refusals, words.code)) return { verdict: operation.recovery.refused, reply, words };
  } else if (delivery.outcome === "not-sent") {
    if (!delivery.passing) return refused(operation.recovery, delivery.words);
    return { known, pause: "back-off", retryAfterMs: delivery.retryAfterMs };
  }
  return { known, pause: "interval" };
}

function afterQuestion(operation: Operation, known: Known, delivery: Delivery, sinceStartMs: number): Next {
  if (delivery.outcome === "not-sent") return { known, pause: "back-off", retryAfterMs: delivery.retryAfterMs };
  if (delivery.outcome === "unknown" || isAboutAnother(operation, delivery.reply)) return ask(known);
  if (isAbsent(operation, delivery)) return afterAbsent(operation, known, delivery, sinceStartMs);
  const { reply, success, words } = delivery;
  // Only the start's answer names it: one that names another than was asked for is the start's own, or another payment's, late
  if (namesAnother(operation, known, reply)) return ask(known);
  const seen = { ...known, absents: 0 };
  const end = endOf(operation, reply, success);
  if (end !== undefined) {
    return provesEnd(operation, seen.baseline, reply) ? ended(operation, seen, end, delivery) : ask(seen);
  }
  if (success || isIn(operation.contract.finals.pendingCodes, words.code)) return afterPending(seen, reply);
  return operation.contract.finals.errorIsFinal ? afterFinalError(operation, seen, delivery) : ask(seen);
}

function namesAnother({ recovery }: Operation, known: Known, reply: JsonObject): boolean {
  const data = reply["data"];
  const told = recovery.learns !== undefined && isObject(data) ? textOf(data[recovery.learns]) : undefined;
  return told !== undefined && told !== known.learned;
}

/** It runs; and whatever the question named is the right name, since the service knows it. */
function afterPending(known: Known, reply: JsonObject): Next {
  return ask({ ...known, phase: "accepted", learnedProven: known.learnedProven || provesKnown(reply) });
}

function afterAbsent({ recovery }: Operation, known: Known, { reply, words }: Answered, sinceStartMs: number): Next {
  // Something was known under this key before: that it is gone says nothing of ours
  if (known.baseline !== undefined && known.baseline !== "") return ask(known);
  // From now on whatever is found under the key can only be ours
  const seen = { ...known, absents: known.absents + 1, baseline: "" };
  const end: Next = { verdict: recovery.refused, reply, words: refusalWords(known, words) };
  const endAfter = (times: number) => (seen.absents >= times && sinceStartMs >= recovery.absentsAfterMs ? end : ask(seen));
  switch (known.phase) {
    case "refused":
      return endAfter(recovery.absentsMinAfterError);
    case "lost":
      if (recovery.absentWhenLost === "resend" && !known.askOnly) return again(recovery, seen);
      return endAfter(recovery.absentsMin);
    default:
      if (recovery.absentWhenAccepted === "refused") return end;
      if (!known.askOnly || recovery.absentWhenStopped === "ask") return ask(seen);
      return endAfter(recovery.absentsMin);
  }
}

/**
 * An error by which the service ends an operation (qr). It proves an end only when the question is known to have named the right
 * one; else the same start with the same key, which is the same payment, tells the name, or refuses it again.
 */
function afterFinalError({ recovery }: Operation, known: Known, { reply, words }: Answered): Next {
  if (known.learnedProven) return { verdict: recovery.refused, reply, words };
  if (known.phase === "accepted") return ask(known);
  if (known.phase === "refused" && known.refusals > 1 && !known.doubt) {
    return { verdict: recovery.refused, reply, words: refusalWords(known, words) };
  }
  return again(recovery, known);
}

/** The same request once more, if it may be. */
function again(recovery: Recovery, known: Known): Next {
  if (known.askOnly || known.resends >= recovery.resendsMax) return ask(known);
  return { known: { ...known, phase: "ready", resends: known.resends + 1 }, pause: "none" };
}

const ask = (known: Known): Next => ({ known, pause: "interval" });

function refusalWords(known: Known, words: Words): Words {
  return known.refusal === undefined ? words : { ...words, ...known.refusal };
}

// --- the end, and printing

function ended(operation: Operation, known: Known, verdict: Verdict, delivery: Answered): Next {
  const { print } = operation.recovery;
  const { reply, words } = delivery;
  if (print === undefined || !(known.unprinted || saysUnprinted(operation, delivery))) return { verdict, reply, words };
  const nameable = textOf(reply[print.key]) !== undefined;
  if (known.copied || !nameable) return { verdict: "unprinted", reply, words };
  return { known: { ...known, phase: "printing", unprinted: true }, pause: "none", document: reply };
}

function afterPrint(known: Known, delivery: Delivery): Next {
  if (delivery.outcome === "not-sent" && delivery.passing)
    return { known, pause: "back-off", retryAfterMs: delivery.retryAfterMs };
  const printed = delivery.outcome === "answered" && delivery.success;
  return { verdict: printed ? "closed" : "unprinted", reply: undefined, words: delivery.words };
}

/**
 * Takes over what only the start's answer tells (qr.md, Endpoints: data.trans must be saved and used). A success that tells none
 * says that the system makes none, so the till's own is right; but not where an earlier start may have been answered with one.
 */
function learn({ recovery }: Operation, known: Known, { reply, success }: Answered): Known {
  if (recovery.learns === undefined) return known;
  const data = reply["data"];
  const told = isObject(data) ? textOf(data[recovery.learns]) : undefined;
  if (told !== undefined) return { ...known, learned: told, learnedProven: true };
  return success && isUntouched(known) && provesKnown(reply) ? { ...known, learnedProven: true } : known;
}
