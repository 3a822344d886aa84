import type { Verdict } from "../contract/settling.ts";

/** The state of an operation that is followed: plain data, so that it fits into a token and another process can take it up. */

/** What to do next. `start`: send the operation. `ask`: send the query. `print`: have the copy printed, once. */
export type Action = "start" | "ask" | "print";

/**
 * Where an operation is. `baseline`: not sent yet, what is known under its key has to be asked first. `ready`: to be sent, now or
 * again. `lost`: sent, nothing came back that says what became of it. `accepted`: it is known to have begun. `refused`: answered
 * with an error that leaves open whether it has begun. `printing`: ended, and its copy is being printed. `unsent`: ended, and never
 * sent.
 */
export const phases = ["baseline", "ready", "lost", "accepted", "refused", "printing", "unsent"] as const;

export type Phase = (typeof phases)[number];

/** All that is known of an operation; a token's `known`. */
export interface SettleState {
  readonly phase: Phase;
  /** An earlier delivery may have arrived, though nothing came back. */
  readonly doubt: boolean;
  /** What the query said before the start: "" when that is nothing, undefined when it isn't known. */
  readonly baseline: string | undefined;
  /** How often it was sent again. */
  readonly resends: number;
  /** The operation was sent again with a new sign. */
  readonly signedAgain: boolean;
  /** How often in a row the query was answered by "there is none". */
  readonly absents: number;
  /** The name that the contract says is learned (qr: trans), or a guess until then; and whether it is proven to be the right one. */
  readonly learned: string | undefined;
  readonly learnedProven: boolean;
  /** An earlier start may have been answered with another name, under which it may go on: so the failure of one doesn't end it. */
  readonly hasOtherNames: boolean;
  /** The service said that printing failed. */
  readonly unprinted: boolean;
  /** The copy was asked for; never twice. */
  readonly copied: boolean;
  /** The error that refused the start, for the result. */
  readonly refusal: { readonly code: number | undefined; readonly message: string | undefined } | undefined;
  /** How many starts in a row were refused by an error that leaves it open. */
  readonly refusals: number;
  /** A delivery before the last start may be on its way still: what that start was refused with says nothing of it. */
  readonly earlierInDoubt: boolean;
  /** The operation was stopped: nothing is sent any more that could begin it, in no process that resumes it either. */
  readonly askOnly: boolean;
  /** The operation was aborted at the terminal, which may have taken it away. */
  readonly isAborted: boolean;
  /** The operation is sent once at most, as by a bridge. Nothing was stopped by that. */
  readonly isSentOnce: boolean;
  /** The terminal may have forgotten it: it isn't sent again, and that there is none proves nothing. */
  readonly isOld: boolean;
  /** The operation is proven to have ended otherwise than in nothing: that there is none any more says nothing then. */
  readonly hasEnded: boolean;
  /** How, and which transaction or document that was, where its answer said so: what is said later may be about another one. */
  readonly end: Verdict | undefined;
  readonly endedId: string | undefined;
}

/** Nothing is known of it, and nothing of it was sent. */
export const freshState: SettleState = {
  phase: "ready",
  doubt: false,
  baseline: "",
  resends: 0,
  signedAgain: false,
  absents: 0,
  learned: undefined,
  learnedProven: false,
  hasOtherNames: false,
  unprinted: false,
  copied: false,
  refusal: undefined,
  refusals: 0,
  earlierInDoubt: false,
  askOnly: false,
  isAborted: false,
  isSentOnce: false,
  isOld: false,
  hasEnded: false,
  end: undefined,
  endedId: undefined,
};

/** The name that is proven (qr: `trans`): by it the operation may be given back, which a guess must never be used for. */
export function provenName({ learned, learnedProven }: SettleState): string | undefined {
  return learnedProven ? learned : undefined;
}

/** Whether it may be sent once more. */
export function mayResend({ askOnly, isSentOnce, isOld }: SettleState): boolean {
  return !askOnly && !isSentOnce && !isOld;
}

export function actionOf(state: SettleState): Action {
  if (state.phase === "ready") return "start";
  return state.phase === "printing" ? "print" : "ask";
}

/**
 * The state when a process takes an operation up again. `ready` was stored before a start, which may have been sent since;
 * `baseline` before the query that comes first, and would have been replaced before a start.
 */
export function stateAtResume(stored: SettleState): SettleState {
  // What was denied before may have been found since, by a question whose answer wasn't stored any more
  const state = { ...stored, absents: 0 };
  switch (state.phase) {
    case "ready":
      return { ...state, phase: "lost", doubt: true };
    case "printing":
      // What became of the copy isn't known, so it isn't asked for again; the document is asked about for its data
      return { ...state, phase: "accepted", copied: true };
    default:
      return state;
  }
}

/** When nothing can have begun, an operation that isn't sent any more has ended: nothing was done. */
export function nothingBegun(state: SettleState): boolean {
  return !state.doubt && state.refusals === 0 && (state.phase === "baseline" || state.phase === "ready");
}

/** The state once nothing may be sent any more that could begin the operation: what may have begun is asked about. */
export function stateAfterStop(state: SettleState): SettleState {
  const stop = { ...state, askOnly: true };
  return state.phase === "ready" && !nothingBegun(state) ? stateToAskAbout(stop) : stop;
}

/** The state of one that was to be sent again and isn't: what an earlier start left behind is asked about. */
export function stateToAskAbout(state: SettleState): SettleState {
  return { ...state, phase: state.refusals > 0 ? "refused" : "lost", absents: 0 };
}

/** The state of one that came to nothing once it was sent: resumed, it is asked about, and never sent again. */
export function stateRefused(state: SettleState): SettleState {
  return { ...state, phase: "refused", isSentOnce: true };
}

/**
 * The state of one that is proven to have ended otherwise: resumed, it is asked about as well.
 * @param id Of its transaction or document, where its answer gave one.
 */
export function stateAtEnd(state: SettleState, end: Verdict, id: string | undefined): SettleState {
  return { ...state, isSentOnce: true, phase: "accepted", copied: true, hasEnded: true, end, endedId: id ?? state.endedId };
}

/**
 * The state as one has it who follows an operation no more while others do, who may send it and print: from here on it is only asked
 * about.
 */
export function stateLeftToOthers(state: SettleState): SettleState {
  const mayBeSent = state.phase === "baseline" || state.phase === "ready";
  return { ...state, ...(mayBeSent && { phase: "lost", doubt: true }), isSentOnce: true, copied: true };
}

/**
 * The state of one that ended because nothing was begun: resumed, it is never sent.
 * @param answered Whether a start was answered; else none was sent.
 */
export function stateWithoutEffect(state: SettleState, answered: boolean, refusal: SettleState["refusal"]): SettleState {
  return { ...state, phase: answered ? "refused" : "unsent", refusal, isSentOnce: true };
}
