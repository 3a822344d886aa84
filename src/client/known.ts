/** What a following knows of its operation: plain data, so that it fits into a token and another process can take it up. */

/** What to do next. `start`: send the operation. `ask`: put the question. `print`: have the copy printed, once. */
export type Action = "start" | "ask" | "print";

/**
 * Where an operation is. `baseline`: not sent yet, what is known under its key has to be asked first. `ready`: to be sent, now or
 * again. `lost`: sent, nothing came back that says what became of it. `accepted`: it is known to have begun. `refused`: answered
 * with an error that leaves open whether it has begun. `printing`: ended, and its copy is being printed. `unsent`: ended, and never
 * sent.
 */
export const phases = ["baseline", "ready", "lost", "accepted", "refused", "printing", "unsent"] as const;

export type Phase = (typeof phases)[number];

/** All that is known; plain data, so that it fits into a token. */
export interface Known {
  readonly phase: Phase;
  /** An earlier delivery may have arrived, though nothing came back. */
  readonly doubt: boolean;
  /** What the question said before the start: "" when that is nothing, undefined when it isn't known. */
  readonly baseline: string | undefined;
  /** How often it was sent again. */
  readonly resends: number;
  /** It was sent again with a new sign. */
  readonly signedAgain: boolean;
  /** How often in a row the question was answered by "there is none". */
  readonly absents: number;
  /** The field that the contract says is learned (qr: trans), and whether it is proven to be the right one. */
  readonly learned: string | undefined;
  readonly learnedProven: boolean;
  /** The service said that printing failed. */
  readonly unprinted: boolean;
  /** The copy was asked for; never twice. */
  readonly copied: boolean;
  /** The error that refused the start, for the result. */
  readonly refusal: { readonly code: number | undefined; readonly message: string | undefined } | undefined;
  /** How many starts in a row were refused by an error that leaves it open. */
  readonly refusals: number;
  /** It was stopped: nothing is sent any more that could begin it. It stays so, whoever takes it up. */
  readonly askOnly: boolean;
}

export function actionOf(known: Known): Action {
  if (known.phase === "ready") return "start";
  return known.phase === "printing" ? "print" : "ask";
}

/**
 * What is known when a process takes an operation up again. `ready` was stored before a start, which may have been sent since;
 * `baseline` before the question that comes first, and would have been replaced before a start.
 */
export function resumed(known: Known): Known {
  switch (known.phase) {
    case "ready":
      return { ...known, phase: "lost", doubt: true };
    case "printing":
      // What became of the copy isn't known, so it isn't asked for again; the document is asked about for its data
      return { ...known, phase: "accepted", copied: true };
    default:
      return known;
  }
}

/** When nothing can have begun, an operation that isn't sent any more has ended: nothing was done. */
export function isUntouched(known: Known): boolean {
  return !known.doubt && known.refusals === 0 && (known.phase === "baseline" || known.phase === "ready");
}

/** What is known once nothing may be sent any more that could begin it: what may have begun is asked about. */
export function stopped(known: Known): Known {
  const stop = { ...known, askOnly: true };
  return known.phase === "ready" && !isUntouched(known) ? askedAbout(stop) : stop;
}

/** What is known of one that was to be sent again and isn't: what an earlier start left behind is asked about. */
export function askedAbout(known: Known): Known {
  return { ...known, phase: known.refusals > 0 ? "refused" : "lost", absents: 0 };
}

/**
 * What is known of one that ended because nothing was begun: resumed, it is never sent.
 * @param answered Whether a start was answered; else none was sent.
 */
export function endedInNothing(known: Known, answered: boolean, refusal: Known["refusal"]): Known {
  return { ...known, phase: answered ? "refused" : "unsent", refusal };
}
