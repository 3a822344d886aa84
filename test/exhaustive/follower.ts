import type { Call } from "../../src/core/call.ts";
import { isGoodEnd, type OperationEnd } from "../../src/core/followed.ts";
import { Presence } from "../../src/core/presence.ts";
import { knownOf, startOf, stateOf } from "../../src/operations/known.ts";
import { ownAnswer } from "../../src/operations/own-answer.ts";
import { dayMs, newSending, nothingSaid, type Said, type Sending, saidInRecord } from "../../src/operations/sending.ts";
import { whose } from "../../src/operations/whose.ts";
import type { CallResult } from "../../src/settle/call-result.ts";
import { nextStep } from "../../src/settle/machine.ts";
import { idIn, isOwnRefusal, saysAbsent } from "../../src/settle/proof.ts";
import * as states from "../../src/settle/state.ts";
import { isOld, newToken, readToken, withKnown } from "../../src/settle/token.ts";
import { type Kind, key } from "./terminal.ts";

/**
 * Who follows an operation: the client, as src/settle/settle.ts does, and the bridge, which sends once and prints nothing, as
 * src/operations does. Both as plain data, so that any two moments can be compared.
 */

interface Any {
  /** What was said of how it ended. */
  readonly word: OperationEnd | "not-sent" | undefined;
  /** Nothing more is asked. */
  readonly isOver: boolean;
}

/** The client's: what its token knows. */
interface Client extends Any {
  readonly by: "client";
  readonly state: states.SettleState;
  /** A start was answered, or may have been. */
  readonly hasLeft: boolean;
}

/** The bridge's: what its journal and its memory know. */
interface Bridge extends Any, Pick<Sending, "state" | "isFound" | "isStopped" | "said" | "settled"> {
  readonly by: "bridge";
  /** Its state until it is sent. */
  readonly first: states.SettleState | undefined;
  /** What its answer said, as its record has it. */
  readonly recorded: Said;
  readonly before: string | undefined;
  readonly isOld: boolean;
}

export type Follower = Client | Bridge;

const of = { amount: 100, currency_name: "AZN", rrn: "1" };
const bodies = {
  fiscal: { documentExtID: key, items: [], amount: 100 },
  bank: { pay_id: key, ...of },
  qr: { pay_id: key, ...of, currency: "944", pay_system: "A" },
} as const;

const tokenOf = ({ service, followed: { contract, rules } }: Kind) => newToken(contract, rules.route, bodies[service]);

export function clientOf(kind: Kind): Follower {
  const { known } = tokenOf(kind);
  // But for qr two repetitions are counted already: each one more would multiply the states, and change nothing but the count
  const state = { ...known, resends: kind.service === "qr" ? 0 : Math.min(2, kind.followed.rules.resendsMax) };
  return { by: "client", state, hasLeft: false, word: undefined, isOver: false };
}

export function bridgeOf({ followed: { rules } }: Kind): Follower {
  const phase = rules.baseline === undefined ? "ready" : "baseline";
  const before = rules.baseline === undefined ? "" : undefined;
  const first: states.SettleState = { ...states.freshState, phase, baseline: before, isSentOnce: true };
  const facts = {
    said: nothingSaid,
    recorded: nothingSaid,
    isFound: false,
    isStopped: false,
    isOld: false,
    settled: undefined,
  };
  return { by: "bridge", first, before, state: undefined, ...facts, word: undefined, isOver: false };
}

/** A sending's record, as far as the judge looks at it. */
function sendingOf({ service, followed: { rules } }: Kind, f: Bridge): Sending {
  const names = { kind: "sent", timeMs: 0, requestId: "", service, route: rules.route, key, digest: "" } as const;
  const sent = { ...names, ask: { pay_id: key, documentExtID: key, pay_system: "A" }, ...(f.before === "" && { fresh: true }) };
  const atMs = performance.now() - (f.isOld ? dayMs : 0);
  const sending = newSending(sent, { ...f, callId: undefined, place: undefined, order: 1, atMs, endedMs: atMs });
  return Object.assign(sending, { state: f.state, isStopped: f.isStopped });
}

/** What is known of the operation. */
export function stateIn(kind: Kind, follower: Follower): states.SettleState {
  if (follower.by === "client") return follower.state;
  return follower.first ?? stateOf(sendingOf(kind, follower), kind.followed.rules, false);
}

/** What it does next; undefined if nothing. */
export function actionIn(kind: Kind, follower: Follower): states.Action | undefined {
  if (follower.isOver) return undefined;
  const action = states.actionOf(stateIn(kind, follower));
  return action === "ask" && !kind.followed.asks ? undefined : action;
}

/** What it makes of what became of its request. @param isMeanwhile It was stopped while that was out. */
export function heard(kind: Kind, f: Follower, result: CallResult, sinceMs: number, isMeanwhile = false): Follower {
  if (f.by === "client") return clientHeard(kind, f, result, sinceMs, isMeanwhile);
  if (f.first?.phase !== "baseline")
    return f.first === undefined ? bridgeHeard(kind, f, result, sinceMs) : bridgeSent(kind, f, result);
  const step = result.outcome === "not-sent" ? undefined : nextStep(kind.followed, f.first, result, sinceMs);
  if (step === undefined || "verdict" in step) return { ...f, word: "not-sent", isOver: true };
  return { ...f, first: step.state, before: step.state.phase === "ready" ? (step.state.baseline ?? "") : undefined };
}

function clientHeard({ followed }: Kind, f: Client, result: CallResult, sinceMs: number, isMeanwhile: boolean): Client {
  const { contract, rules } = followed;
  const before = isMeanwhile ? { ...f.state, askOnly: true } : f.state;
  const hasLeft = f.hasLeft || (states.actionOf(before) === "start" && result.outcome !== "not-sent");
  const step = nextStep(followed, before, result, sinceMs);
  if ("state" in step) {
    if (step.state === f.state && hasLeft === f.hasLeft) return f;
    const { refusal } = step.state;
    // Of its own codes each says the same
    const isOwn = refusal !== undefined && isOwnRefusal(contract, refusal.code);
    const code = contract.service === "bank" ? -21 : 4;
    const state = isOwn ? { ...step.state, refusal: { code, message: undefined } } : step.state;
    return state.askOnly && states.nothingBegun(state)
      ? unbegun({ ...f, state, hasLeft }, rules.refused)
      : { ...f, state, hasLeft };
  }
  const { verdict, reply, known: state = before } = step;
  if (verdict === "unknown") return { ...f, hasLeft, state, isOver: true };
  if (verdict === rules.refused && states.nothingBegun(state)) return unbegun({ ...f, state, hasLeft }, verdict);
  const id = reply && idIn(followed, reply);
  const end = verdict === rules.refused ? states.stateRefused(state) : states.stateAtEnd(state, verdict, id);
  return { ...f, hasLeft, state: end, word: verdict, isOver: true };
}

function unbegun(f: Client, refused: OperationEnd): Client {
  const state = states.stateWithoutEffect(f.state, f.hasLeft, undefined);
  return { ...f, state, word: state.phase === "unsent" ? "not-sent" : refused, isOver: true };
}

/** As `Entry.ended` takes the answer to its sending. */
function bridgeSent(kind: Kind, f: Bridge, { outcome, summary: { code }, ...result }: CallResult): Follower {
  if (outcome === "not-sent") return { ...f, word: "not-sent", isOver: true };
  const { service, followed } = kind;
  const { route, learns } = followed.rules;
  const answer = "reply" in result ? result : undefined;
  const start = { ...startOf(sendingOf(kind, f), followed.rules), baseline: f.before, learned: learns && key };
  const names = { service, contract: service, route, key, body: [], requestId: "" };
  const call: Call = { ...names, caller: new Presence(), followMs: 1_000 };
  const payload = [Buffer.from(JSON.stringify(answer?.reply ?? {}))];
  const status = answer && (answer.success ? "success" : "error");
  const { said, state, fields } = ownAnswer(call, { outcome, status, code, payload }, start);
  const provesNothing = state !== undefined && state.phase !== "accepted";
  const recorded = saidInRecord({ route }, { outcome: provesNothing ? "unknown" : outcome, code, ...fields });
  return worded(kind, { ...f, first: undefined, said, recorded, state });
}

/** As `Hearing` takes the answer to a question. */
function bridgeHeard(kind: Kind, f: Bridge, result: CallResult, sinceMs: number): Follower {
  const { followed } = kind;
  const { rules } = followed;
  const sending = sendingOf(kind, f);
  const known = stateOf(sending, rules, false);
  const facts = { sending, under: [sending], rules, before: known.baseline, device: undefined, hasOthers: false, lacks: false };
  if (result.outcome !== "answered" || "why" in whose(facts)) return f;
  const step = nextStep(followed, known, result, sinceMs);
  const next = "state" in step ? step.state : step.known;
  const { learned, learnedProven } = known;
  const state = next === undefined ? f.state : next.learnedProven ? next : { ...next, learned, learnedProven };
  const { end } = knownOf([sending]);
  const verdict = "state" in step || step.verdict === "unknown" ? undefined : step.verdict;
  const says = saysAbsent(followed, result) && verdict === rules.refused ? "failed" : verdict;
  const isThere = "state" in step ? step.state.phase === "accepted" : isGoodEnd(says);
  const wasFailed = end === "failed";
  const isFound = f.isFound || (isThere && !isGoodEnd(end) && (f.said.begun !== true || wasFailed));
  const isBack = isThere && wasFailed;
  const isNews = says !== undefined && (end === undefined || (wasFailed && says !== "failed"));
  return worded(kind, { ...f, state, isFound, settled: isNews ? says : isBack ? undefined : f.settled });
}

const worded = (kind: Kind, f: Bridge): Bridge => ({ ...f, word: knownOf([sendingOf(kind, f)]).end });

/** It is ended, and begun again by what it has kept. @param isLater A day later, so that its terminal may have forgotten everything. */
export function restarted(kind: Kind, f: Follower, isLater: boolean): Follower {
  if (f.by === "client") {
    const token = { ...withKnown(tokenOf(kind), f.state), ...(isLater && { madeMs: 0 }) };
    const read = readToken(JSON.parse(JSON.stringify(token))).token;
    const state = { ...states.stateAtResume(read.known), isOld: isOld(read) };
    const isUnsent = state.phase === "unsent";
    return { by: "client", state, hasLeft: false, word: isUnsent ? "not-sent" : undefined, isOver: isUnsent };
  }
  // Before it is sent there is nothing to remember: its till sends it again, as for the first time
  if (f.first?.phase === "baseline") return bridgeOf(kind);
  return worded(kind, { ...f, first: undefined, said: f.recorded, state: undefined, isOld: isLater });
}

/** It is told to send nothing more that could begin it. */
export function stopped(kind: Kind, f: Follower): Follower | undefined {
  if (f.by === "bridge" || f.isOver || f.state.askOnly) return undefined;
  const state = states.stateAfterStop(f.state);
  return states.nothingBegun(state) ? unbegun({ ...f, state }, kind.followed.rules.refused) : { ...f, state };
}

/** An abort at the terminal has succeeded, after it was sent. */
export function abortedFor(f: Follower): Follower | undefined {
  if (f.isOver || (f.by === "client" ? f.state.isAborted : f.isStopped || f.first !== undefined)) return undefined;
  return f.by === "client" ? { ...f, state: { ...f.state, isAborted: true } } : { ...f, isStopped: true };
}
