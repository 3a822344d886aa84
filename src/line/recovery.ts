import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import { type Debt, Debts } from "./debts.ts";
import { LeftOver } from "./left-over.ts";
import { drainMs } from "./limits.ts";
import type { Peer } from "./peer.ts";

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

export interface RecoveryLimits {
  /** Milliseconds without a byte after which a service that answers no barrier stops owing. */
  readonly lateReplyMs: number;
  /** Milliseconds between two barriers. */
  readonly barrierIntervalMs: number;
}

/** Answers to barriers of the process before that may still be on their way: it may have asked that often and then ended. */
const leftOverAtStart = 2;

/**
 * What a frame is to a line that recovers, and whose it is where that is known: the answer to a service's barrier, an error that may
 * refuse it, or late.
 */
export type Heard =
  | { readonly kind: "answer" | "refusal"; readonly service: ServiceName }
  | { readonly kind: "late"; readonly service: ServiceName | undefined };

export class Recovery {
  readonly #peers: readonly Peer[];
  readonly #limits: RecoveryLimits;
  readonly #debts: Debts;
  /** Barrier answers that may still come, of barriers asked before this recovery. */
  readonly #leftOver = new LeftOver();
  #silentSinceMs = 0;
  #askAtMs = 0;
  /** When a barrier was asked last. */
  #askedMs = 0;
  /** True when nobody owes and barrier answers may still be on their way. */
  #draining = false;

  constructor(peers: readonly Peer[], limits: RecoveryLimits) {
    this.#peers = peers;
    this.#limits = limits;
    this.#debts = new Debts(peers);
    for (const { service, barrier } of peers) {
      this.owe(service);
      if (barrier !== undefined) this.#leftOver.assume(service, leftOverAtStart);
    }
  }

  get owing(): readonly ServiceName[] {
    return [...this.#debts.services()];
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
    this.#debts.add(service);
  }

  /**
   * A whole frame came that nobody asked for: every service of its framing may be about to answer, unless one of them is known
   * to, which explains the frame.
   */
  oweUnlessExplained(framing: Framing): void {
    this.#debts.addUnlessExplained(framing);
  }

  /** Starts afresh at `now`: what was asked earlier is left over, and the silence begins anew. */
  begin(now: number): void {
    for (const [service, debt] of this.#debts.entries()) {
      this.#leftOver.setTo(service, this.#stillOut(service, debt, now));
      this.#debts.renew(service);
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
      const refusing = reply?.["status"] === "error" ? this.#debts.lastAsked(framing) : undefined;
      if (refusing !== undefined) refusing.debt.refusals++;
      this.oweUnlessExplained(framing);
      return refusing === undefined ? { kind: "late", service: undefined } : { kind: "refusal", service: refusing.service };
    }
    const { service } = peer;
    const debt = this.#debts.of(service);
    if (debt === undefined || debt.asked === 0) {
      this.#leftOver.came(service);
      return { kind: "late", service };
    }
    this.#debts.answered(service, debt);
    this.#askAtMs = now;
    if (debt.answered > this.#leftOver.of(service)) this.#settle(service, debt, now);
    return { kind: "answer", service };
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

  /** The services that have answered a barrier in this process, with theirs. */
  get probed(): readonly Peer[] {
    return this.#peers.filter(({ service }) => this.#debts.isAble(service));
  }

  /** The service whose barrier to send now, if it is time for one; the caller sends it. */
  barrierDue(now: number): Peer | undefined {
    if (now < this.#askAtMs) return undefined;
    this.#askAtMs = now + this.#limits.barrierIntervalMs;
    const next = this.#debts.next();
    if (next === undefined) return undefined;
    const { peer, debt } = next;
    // It doesn't answer now, so it may not have answered the process before either.
    if (debt.asked > debt.answered) this.#leftOver.assumeAtLeast(peer.service, this.#barriersInSilence);
    debt.asked++;
    debt.askedAtMs = now;
    this.#askedMs = now;
    return peer;
  }

  /** Settles by silence those for whom it lasted long enough; true when it settled any. */
  settleBySilence(now: number): boolean {
    let any = false;
    for (const [service, debt] of this.#debts.entries()) {
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
    for (const service of this.#debts.services()) due = Math.min(due, this.#silentAtMs(service));
    return due;
  }

  #silentAtMs(service: ServiceName): number {
    return this.#silentSinceMs + this.#limits.lateReplyMs * this.#debts.patienceWith(service);
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
}
