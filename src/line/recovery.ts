import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";

/**
 * How a line is proven clean: who owes it an answer, what to ask, and what an answer proves. It sends nothing and has no clock;
 * moments come in as milliseconds.
 *
 * A service owes while an answer of it may still be on its way. It stops owing when its *barrier* is answered: a read-only
 * request of its own whose answer has a shape that no other has. A terminal answers in order, so whatever it owed came before.
 * A device that answers no barrier stops owing after a long silence.
 *
 * Barriers are asked again, so an answer may belong to an earlier one, from before the request whose late answer is feared. That
 * proves nothing. So answers are counted: only when more came than could be left over from earlier barriers, one of them
 * belongs to a barrier of this recovery.
 */

export type BarrierJudge = (reply: Readonly<Record<string, unknown>>) => boolean;

/** A service on a line, as far as recovery needs it. */
export interface Peer {
  readonly service: ServiceName;
  readonly framing: Framing;
  /** The barrier, framed and ready to send; undefined when there is none, and only silence settles the service. */
  readonly barrier: readonly Buffer[] | undefined;
  /** Whether a reply can only be the answer to this service's barrier. */
  readonly isBarrierAnswer: BarrierJudge;
}

export interface RecoveryLimits {
  /** Milliseconds without a byte after which a service that answers no barrier stops owing. */
  readonly lateReplyMs: number;
  /** Milliseconds between two barriers. */
  readonly barrierIntervalMs: number;
}

/** Answers to barriers of the process before that may still be on their way: it may have asked that often and then ended. */
const leftOverAtStart = 2;

/** After so many errors instead of its answer, a service's barrier isn't asked again: it would never fall silent. */
const refusalsMax = 3;

interface Debt {
  asked: number;
  answered: number;
  askedAtMs: number;
  refusals: number;
}

/** What a frame is to a line that recovers. */
export type Heard = "barrier" | "late";

export class Recovery {
  readonly #peers: readonly Peer[];
  readonly #limits: RecoveryLimits;
  /** Who owes, with what was asked in this recovery. */
  readonly #debts = new Map<ServiceName, Debt>();
  /** Barrier answers that may still come, of barriers asked before this recovery. */
  readonly #leftOver = new Map<ServiceName, number>();
  #silentSinceMs = 0;
  #askAtMs = 0;

  constructor(peers: readonly Peer[], limits: RecoveryLimits) {
    this.#peers = peers;
    this.#limits = limits;
    for (const { service, barrier } of peers) {
      this.owe(service);
      this.#leftOver.set(service, barrier === undefined ? 0 : leftOverAtStart);
    }
  }

  get clean(): boolean {
    return this.#debts.size === 0;
  }

  get owing(): readonly ServiceName[] {
    return [...this.#debts.keys()];
  }

  /**
   * An answer of this service may still be on its way.
   * @param barrierShaped The answer will look like a barrier's, because a caller asked that very route.
   */
  owe(service: ServiceName, barrierShaped = false): void {
    if (barrierShaped) this.#leftOver.set(service, this.#leftOverOf(service) + 1);
    if (!this.#debts.has(service)) this.#debts.set(service, { asked: 0, answered: 0, askedAtMs: 0, refusals: 0 });
  }

  /** Starts afresh at `now`: what was asked earlier is left over, and the silence begins anew. */
  begin(now: number): void {
    for (const [service, debt] of this.#debts) {
      this.#leftOver.set(service, this.#leftOverOf(service) + debt.asked - debt.answered);
      this.#debts.set(service, { asked: 0, answered: 0, askedAtMs: 0, refusals: 0 });
    }
    this.#silentSinceMs = now;
    this.#askAtMs = now;
  }

  /** Bytes came that explain nothing: whoever owes isn't silent yet. */
  heardNoise(now: number): void {
    this.#silentSinceMs = now;
  }

  /** A whole frame came while recovering. `reply` is undefined when it is no JSON object. */
  heard(framing: Framing, reply: Readonly<Record<string, unknown>> | undefined, now: number): Heard {
    const peer = reply === undefined ? undefined : this.#peerAnswering(framing, reply);
    if (peer === undefined) {
      this.#silentSinceMs = now;
      if (reply?.["status"] === "error") this.#refused(framing);
      return "late";
    }
    const debt = this.#debts.get(peer.service);
    if (debt === undefined || debt.asked === 0) {
      this.#leftOver.set(peer.service, Math.max(0, this.#leftOverOf(peer.service) - 1));
      this.#silentSinceMs = now;
      return "late";
    }
    debt.answered++;
    this.#askAtMs = now;
    if (debt.answered > this.#leftOverOf(peer.service)) {
      this.#leftOver.set(peer.service, this.#leftOverOf(peer.service) + debt.asked - debt.answered);
      this.#debts.delete(peer.service);
    } else {
      debt.askedAtMs = 0;
    }
    return "barrier";
  }

  /** Every service of a framing may be about to answer: a frame came that nobody asked for. */
  oweAll(framing: Framing): void {
    for (const peer of this.#peers) if (peer.framing === framing) this.owe(peer.service);
  }

  /** Whether a reply can only be the answer to a barrier, and not to this request. */
  isLeftOver(
    framing: Framing,
    reply: Readonly<Record<string, unknown>>,
    request: { readonly service: ServiceName; readonly barrierShaped: boolean },
  ): boolean {
    const peer = this.#peerAnswering(framing, reply);
    return peer !== undefined && !(request.barrierShaped && peer.service === request.service);
  }

  /**
   * A frame came while the line was clean or a call awaited its reply: true when it is the left-over answer to a barrier, which
   * must not be given to a call of another route.
   */
  heardLeftOver(framing: Framing, reply: Readonly<Record<string, unknown>>): boolean {
    const peer = this.#peerAnswering(framing, reply);
    if (peer === undefined) return false;
    this.#leftOver.set(peer.service, Math.max(0, this.#leftOverOf(peer.service) - 1));
    return true;
  }

  /** The barrier to send now, if it is time for one; the caller sends it. */
  barrierDue(now: number): readonly Buffer[] | undefined {
    if (now < this.#askAtMs) return undefined;
    let next: { peer: Peer; debt: Debt } | undefined;
    for (const peer of this.#peers) {
      const debt = this.#debts.get(peer.service);
      if (debt === undefined || peer.barrier === undefined || debt.refusals >= refusalsMax) continue;
      if (next === undefined || debt.askedAtMs < next.debt.askedAtMs) next = { peer, debt };
    }
    this.#askAtMs = now + this.#limits.barrierIntervalMs;
    if (next === undefined) return undefined;
    next.debt.asked++;
    next.debt.askedAtMs = now;
    return next.peer.barrier;
  }

  /** Settles by silence: true when it lasted long enough, and nobody owes any more. */
  settleBySilence(now: number): boolean {
    if (now < this.silentAtMs) return false;
    for (const service of this.#debts.keys()) this.#leftOver.set(service, 0);
    this.#debts.clear();
    return true;
  }

  /** When the silence will have lasted long enough. */
  get silentAtMs(): number {
    return this.#silentSinceMs + this.#limits.lateReplyMs;
  }

  /** When there is something to do next, unless something is heard before. */
  get dueMs(): number {
    return Math.min(this.silentAtMs, this.#askAtMs);
  }

  #leftOverOf(service: ServiceName): number {
    return this.#leftOver.get(service) ?? 0;
  }

  #peerAnswering(framing: Framing, reply: Readonly<Record<string, unknown>>): Peer | undefined {
    return this.#peers.find((peer) => peer.framing === framing && peer.isBarrierAnswer(reply));
  }

  /** An error came: whichever barrier of this framing was asked last may have been refused. */
  #refused(framing: Framing): void {
    let last: Debt | undefined;
    for (const peer of this.#peers) {
      const debt = this.#debts.get(peer.service);
      if (peer.framing !== framing || debt === undefined || debt.asked === 0) continue;
      if (last === undefined || debt.askedAtMs > last.askedAtMs) last = debt;
    }
    if (last !== undefined) last.refusals++;
  }
}
