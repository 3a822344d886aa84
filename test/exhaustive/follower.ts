import { factOfStart } from "../../src/client/settle.ts";
import type { Action } from "../../src/client/settle-types.ts";
import type { Call } from "../../src/core/call.ts";
import { isOperationEnd, type OperationEnd } from "../../src/core/followed.ts";
import { Presence } from "../../src/core/presence.ts";
import type { JournalOperation } from "../../src/journal/record.ts";
import { factsIn, ownAnswer, recordedOf } from "../../src/operations/own-answer.ts";
import type { CallResult } from "../../src/settle/call-result.ts";
import type { Fact } from "../../src/settle/fact.ts";
import { after, type JudgedOperation, judge, type Known, unknownYet } from "../../src/settle/judge.ts";
import { mayBeForgotten, saidToQuestion } from "../../src/settle/said.ts";
import { type Kind, key } from "./terminal.ts";

/**
 * Who follows an operation: the client, as src/client/settle.ts does, and the bridge, which sends once and prints nothing, as
 * src/operations does. What either knows is what the judge makes of its facts so far, as plain data, so that any two moments can be compared.
 */

export interface Follower {
  readonly by: "client" | "bridge";
  readonly known: Known;
  /** What was said of how it ended. */
  readonly word: OperationEnd | "not-sent" | undefined;
  /** Nothing more is asked. */
  readonly isOver: boolean;
  /** A day has passed, so that the terminal may have forgotten it. */
  readonly isOld: boolean;
  /** Of the bridge: what its journal has of its own answer, of what was found since, and of its end. */
  readonly recorded: {
    readonly ending: JournalOperation["ending"];
    readonly isFound: boolean;
    readonly end: OperationEnd | undefined;
  };
}

/** Times are counted from the last start's end. */
const atMs = 0;

function operationOf({ followed, isRepeatedOften }: Kind, by: Follower["by"]): JudgedOperation {
  // Each repetition more would multiply the states, and change nothing but the count
  const { rules } = followed;
  const resendsMax = isRepeatedOften ? rules.resendsMax : Math.min(1, rules.resendsMax);
  return { ...followed, isSentOnce: by === "bridge", rules: { ...rules, resendsMax } };
}

export function followerOf(kind: Kind, by: Follower["by"]): Follower {
  const known = unknownYet(operationOf(kind, by));
  const recorded = { ending: undefined, isFound: false, end: undefined };
  return { by, known, word: undefined, isOver: false, isOld: false, recorded };
}

/** What it does next; undefined if nothing. */
export function actionIn({ followed: { asks } }: Kind, { by, isOver, known: { next, end } }: Follower): Action | undefined {
  // That nothing was done is asked about once more (src/client/settle.ts, `endedBefore`)
  if (!isOver && end === "failed") return "ask";
  // What a till asks is heard of what has ended as well
  if (!isOver && by === "bridge" && end !== undefined && asks) return "ask";
  return isOver || next === "wait" || next === "none" ? undefined : next;
}

const having = (kind: Kind, f: Follower, fact: Fact): Follower => ({
  ...f,
  known: compact(after(operationOf(kind, f.by), f.known, fact)),
});

/** Without what no judgement needs again. */
function compact({ refusal, ...known }: Known): Known {
  const kept = refusal && { says: refusal.says };
  return { ...known, refusal: kept, noneMs: undefined, why: undefined, ids: undefined, startMs: 0 };
}

/** What it says by what it knows. */
function worded(f: Follower, mayBeOver = true): Follower {
  const { end, next } = f.known;
  if (f.by === "bridge") return { ...f, word: isOperationEnd(end) ? end : undefined };
  if (end === undefined || next === "print") return { ...f, word: undefined, isOver: end === undefined && next === "none" };
  return { ...f, word: end, isOver: mayBeOver };
}

/** What it makes of what became of its request. @param isMeanwhile It was stopped while that was out. */
export function heard(kind: Kind, f: Follower, result: CallResult, sinceMs: number, isMeanwhile = false): Follower {
  const action = actionIn(kind, f);
  if (action === "start") return f.by === "client" ? clientSent(kind, f, result, isMeanwhile) : bridgeSent(kind, f, result);
  if (action === "print") return printed(kind, f, result);
  if (f.known.starts === 0 && result.outcome === "not-sent") {
    if (f.by === "bridge") return { ...f, word: "not-sent", isOver: true };
    return worded(having(kind, f, { ...factOfStart(operationOf(kind, f.by), result), atMs }));
  }
  if (result.outcome !== "answered") return f.known.end === "failed" ? { ...f, isOver: true } : f;
  const said = saidToQuestion(kind.followed, result, f.known.name);
  const isNoFact = f.isOld && f.known.starts > 0 && mayBeForgotten(said);
  const fact: Fact & { is: "told" } = { is: "told", atMs: sinceMs, said, name: f.known.name };
  if (f.by === "client") return isNoFact ? f : worded(having(kind, f, fact));
  return isNoFact ? f : bridgeTold(kind, f, fact);
}

function clientSent(kind: Kind, f: Follower, result: CallResult, isMeanwhile: boolean): Follower {
  const out = having(kind, f, { is: "sent", atMs });
  const stopped = isMeanwhile ? having(kind, out, { is: "stopped", atMs }) : out;
  return worded(having(kind, stopped, { ...factOfStart(operationOf(kind, f.by), result), atMs }));
}

function printed(kind: Kind, f: Follower, result: CallResult): Follower {
  const asked = having(kind, f, { is: "copy", atMs });
  const isUnsent = result.outcome === "not-sent" && result.passing;
  const ok = result.outcome === "answered" && result.success;
  return worded(having(kind, asked, isUnsent ? { is: "uncopied", atMs } : { is: "copied", atMs, ok }));
}

/** As `Entry.ended` takes the answer to its sending. */
function bridgeSent(kind: Kind, f: Follower, result: CallResult): Follower {
  const { outcome, summary } = result;
  if (outcome === "not-sent") return { ...f, word: "not-sent", isOver: true };
  const { service, followed } = kind;
  const { code } = summary;
  const answer = "reply" in result ? result : undefined;
  const names = { service, contract: service, route: followed.rules.route, key, body: [], requestId: "" };
  const call: Call = { ...names, caller: new Presence(), followMs: 1_000 };
  const payload = [Buffer.from(JSON.stringify(answer?.reply ?? {}))];
  const status = answer && (answer.success ? "success" : "error");
  const operation = operationOf(kind, f.by);
  const said = ownAnswer(operation, call, { outcome, status, code, payload });
  const sent = having(kind, f, { is: "sent", atMs, before: f.known.before ?? null });
  const known = after(operation, sent.known, { is: "answered", atMs, said });
  const provesNothing = known.end === undefined && !known.isAccepted;
  const ending = { outcome: provesNothing ? ("unknown" as const) : outcome, code, ...recordedOf(operation, said, known) };
  const recorded = { ...f.recorded, ending };
  return worded({ ...having(kind, sent, { is: "answered", atMs, said }), recorded });
}

/** As `Hearing` takes the answer to a question. */
function bridgeTold(kind: Kind, f: Follower, fact: Fact & { is: "told" }): Follower {
  // Before it is sent, or where nobody knows what stood under its key
  if (f.known.starts === 0) {
    const asked = having(kind, f, fact);
    return asked.known.end === undefined ? asked : { ...asked, word: "not-sent", isOver: true };
  }
  if (f.known.before === undefined) return f;
  const told = having(kind, f, fact);
  const { end, isAccepted } = told.known;
  const isFound = f.recorded.isFound || (end === undefined && isAccepted && (!f.known.isAccepted || f.known.end !== undefined));
  return worded({ ...told, recorded: { ...f.recorded, isFound, end: isOperationEnd(end) ? end : undefined } });
}

/** It is ended, and begun again by what it has kept. @param isLater A day later, so that its terminal may have forgotten everything. */
export function restarted(kind: Kind, before: Follower, isLater: boolean): Follower {
  const action = actionIn(kind, before);
  // What is about to be done is kept before it is done
  const isKept = action === "start" || action === "print";
  const f = isKept ? having(kind, before, factBefore(action, before)) : before;
  const isOld = f.isOld || isLater;
  if (f.by === "client") return worded({ ...having(kind, f, { is: "resumed", atMs }), isOld }, f.known.end !== "failed");
  // Before it is sent there is nothing to remember: its till sends it again, as for the first time
  if (f.known.starts === 0) return followerOf(kind, "bridge");
  const { ending, isFound, end } = f.recorded;
  const operation = operationOf(kind, f.by);
  const settled = end && ({ result: end, by: "answer" } as const);
  const facts = factsIn(operation, { before: f.known.before ?? null, sentMs: atMs, ending, isFound, settled }, atMs);
  const known = judge(operation, f.known.isAborted ? [...facts, { is: "aborted", atMs }] : facts);
  return worded({ ...f, known: compact(known), isOld });
}

const factBefore = (action: "start" | "print", { by, known }: Follower): Fact =>
  action === "print" ? { is: "copy", atMs } : { is: "sent", atMs, ...(by === "bridge" && { before: known.before ?? null }) };

/** It is told to send nothing more that could begin it. */
export function stopped(kind: Kind, f: Follower): Follower | undefined {
  if (f.by === "bridge" || f.isOver || f.known.isStopped) return undefined;
  return worded(having(kind, f, { is: "stopped", atMs }));
}

/** An abort at the terminal has succeeded, after it was sent. */
export function abortedFor(kind: Kind, f: Follower): Follower | undefined {
  if (f.isOver || f.known.isAborted || (f.by === "bridge" && f.known.starts === 0)) return undefined;
  return having(kind, f, { is: "aborted", atMs });
}
