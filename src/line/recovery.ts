import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import { LeftOver } from "./left-over.ts";
import { drainMs } from "./limits.ts";

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
 * belongs to a barrier of this recovery. Answers that are left over at the end are waited for a little.
 *
 * One that comes later still is known by its shape, unless the barrier is answered with an error, which looks like any call's.
 * So while such an answer is known to be possible, a call's error is no proof of its own: it is told as unknown, or the call is
 * asked again where that does no harm. A call's own good reply takes the count back to none, for what was asked before it was
 * answered before it; and so does a silence of `lateReplyMs`.
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

/**
 * How many times longer the silence must last, and how many times more errors are taken, of a service that has answered a
 * barrier before. A terminal that waits for a customer's card is silent for minutes and then answers; since this one can prove
 * itself, it should.
 */
const patience = 10;

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
  readonly #leftOver = new LeftOver();
  /** Who has answered a barrier in this process. */
  readonly #able = new Set<ServiceName>();
  #silentSinceMs = 0;
  #askAtMs = 0;
  /** When a barrier was asked last. */
  #askedMs = 0;
  /** True when nobody owes and barrier answers may still be on their way. */
  #draining = false;

  constructor(peers: readonly Peer[], limits: RecoveryLimits) {
    this.#peers = peers;
    this.#limits = limits;
    for (const { service, barrier } of peers) {
      this.owe(service);
      if (barrier !== undefined) this.#leftOver.assume(service, leftOverAtStart);
    }
  }

  get owing(): readonly ServiceName[] {
    return [...this.#debts.keys()];
  }

  /** Whether anybody owes. */
  get owes(): boolean {
    return this.#debts.size > 0;
  }

  /** Whether nobody owes an answer any more, and none that is left over comes. */
  isClean(now: number): boolean {
    return this.#debts.size === 0 && (!this.#draining || now >= this.#silentSinceMs + drainMs);
  }

  /**
   * An answer of this service may still be on its way.
   * @param barrierShaped The answer will look like a barrier's, because a caller asked that very route.
   */
  owe(service: ServiceName, barrierShaped = false): void {
    if (barrierShaped) this.#leftOver.add(service);
    if (!this.#debts.has(service)) this.#debts.set(service, { asked: 0, answered: 0, askedAtMs: 0, refusals: 0 });
  }

  /**
   * A whole frame came that nobody asked for: every service of its framing may be about to answer, unless one of them is known
   * to, which explains the frame.
   */
  oweUnlessExplained(framing: Framing): void {
    const peers = this.#peers.filter((peer) => peer.framing === framing);
    if (!peers.some(({ service }) => this.#debts.has(service))) for (const { service } of peers) this.owe(service);
  }

  /** Starts afresh at `now`: what was asked earlier is left over, and the silence begins anew. */
  begin(now: number): void {
    for (const [service, debt] of this.#debts) {
      this.#leftOver.setTo(service, this.#stillOut(service, debt, now));
      this.#debts.set(service, { asked: 0, answered: 0, askedAtMs: 0, refusals: 0 });
    }
    this.#draining = false;
    this.#silentSinceMs = now;
    this.#askAtMs = now;
  }

  /** A call's own reply came, and it wasn't of a barrier's shape: the service has answered all that it was asked before. */
  replied(service: ServiceName): void {
    this.#leftOver.clear(service);
  }

  /**
   * An error came while a call of this framing awaited its reply: true when it may as well answer a barrier that is left over.
   * Either way there is one less of those: a terminal answers in order, so an error of the call's own would say that none is
   * left at all.
   */
  isDoubtful(framing: Framing, now: number): boolean {
    if (now >= Math.max(this.#askedMs, this.#silentSinceMs) + this.#limits.lateReplyMs) return false;
    const suspects = this.#peers.filter((peer) => peer.framing === framing && this.#leftOver.isKnown(peer.service));
    const [suspect, another] = suspects;
    if (suspect !== undefined && another === undefined) this.#leftOver.came(suspect.service);
    return suspect !== undefined;
  }

  /** Bytes came, of whatever kind: whoever owes isn't silent yet. */
  heardBytes(now: number): void {
    this.#silentSinceMs = now;
  }

  /** A whole frame came while recovering. `reply` is undefined when it is no JSON object. */
  heard(framing: Framing, reply: Readonly<Record<string, unknown>> | undefined, now: number): Heard {
    const peer = reply === undefined ? undefined : this.#peerAnswering(framing, reply);
    if (peer === undefined) {
      if (reply?.["status"] === "error") this.#refused(framing);
      this.oweUnlessExplained(framing);
      return "late";
    }
    const { service } = peer;
    const debt = this.#debts.get(service);
    if (debt === undefined || debt.asked === 0) {
      this.#leftOver.came(service);
      return "late";
    }
    this.#able.add(service);
    debt.answered++;
    debt.askedAtMs = 0;
    this.#askAtMs = now;
    if (debt.answered > this.#leftOver.of(service)) this.#settle(service, debt, now);
    return "barrier";
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
  heardLeftOver(framing: Framing, reply: Readonly<Record<string, unknown>>, now: number): boolean {
    const peer = this.#peerAnswering(framing, reply);
    if (peer === undefined) return false;
    this.#leftOver.came(peer.service);
    this.#silentSinceMs = now;
    return true;
  }

  /** The barrier to send now, if it is time for one; the caller sends it. */
  barrierDue(now: number): readonly Buffer[] | undefined {
    if (now < this.#askAtMs) return undefined;
    let next: { peer: Peer; debt: Debt } | undefined;
    for (const peer of this.#peers) {
      const debt = this.#debts.get(peer.service);
      if (debt === undefined || peer.barrier === undefined) continue;
      if (debt.refusals >= refusalsMax * this.#patienceWith(peer.service)) continue;
      if (next === undefined || debt.askedAtMs < next.debt.askedAtMs) next = { peer, debt };
    }
    this.#askAtMs = now + this.#limits.barrierIntervalMs;
    if (next === undefined) return undefined;
    // It doesn't answer now, so it may not have answered the process before either.
    if (next.debt.asked > next.debt.answered) this.#leftOver.assumeAtLeast(next.peer.service, this.#barriersInSilence);
    next.debt.asked++;
    next.debt.askedAtMs = now;
    this.#askedMs = now;
    return next.peer.barrier;
  }

  /** Settles by silence those for whom it lasted long enough; true when it settled any. */
  settleBySilence(now: number): boolean {
    let any = false;
    for (const [service, debt] of this.#debts) {
      if (now < this.#silentAtMs(service)) continue;
      this.#settle(service, debt, now);
      any = true;
    }
    return any;
  }

  /**
   * When there is something to do next, unless something is heard before.
   * @param still Nothing is half heard: only then silence settles anything.
   */
  dueMs(still: boolean): number {
    let due = this.#debts.size === 0 ? Number.POSITIVE_INFINITY : this.#askAtMs;
    if (!still) return due;
    if (this.#debts.size === 0) return this.#silentSinceMs + (this.#draining ? drainMs : 0);
    for (const service of this.#debts.keys()) due = Math.min(due, this.#silentAtMs(service));
    return due;
  }

  #silentAtMs(service: ServiceName): number {
    return this.#silentSinceMs + this.#limits.lateReplyMs * this.#patienceWith(service);
  }

  #patienceWith(service: ServiceName): number {
    return this.#able.has(service) ? patience : 1;
  }

  #settle(service: ServiceName, debt: Debt, now: number): void {
    const stillOut = this.#stillOut(service, debt, now);
    this.#leftOver.setTo(service, stillOut);
    this.#debts.delete(service);
    if (stillOut > 0) this.#draining = true;
  }

  /**
   * How many barrier answers of this service may still come. An answer to what was asked before a silence of `lateReplyMs` is no
   * longer expected, and within that silence barriers were asked one interval apart.
   */
  #stillOut(service: ServiceName, debt: Debt, now: number): number {
    const { lateReplyMs } = this.#limits;
    const out = this.#leftOver.of(service) + debt.asked - debt.answered;
    const silent = debt.asked > 0 && now - this.#silentSinceMs >= lateReplyMs;
    return silent ? Math.min(out, this.#barriersInSilence) : out;
  }

  /** How many barriers are asked while the longest silence lasts that settles anything. */
  get #barriersInSilence(): number {
    return Math.ceil(this.#limits.lateReplyMs / this.#limits.barrierIntervalMs);
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
