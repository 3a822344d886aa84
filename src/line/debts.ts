import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import type { Peer } from "./peer.ts";

/** After so many errors instead of its answer, a service's barrier isn't asked again: it would never fall silent. */
const refusalsMax = 3;

/**
 * How many times longer the silence must last, and how many times more errors are taken, of a service that has answered a
 * barrier before. A terminal that waits for a customer's card is silent for minutes and then answers; since this one can prove
 * itself, it should.
 */
const patience = 10;

/** What was asked of a service that owes, and what came of it, in this recovery. */
export interface Debt {
  asked: number;
  answered: number;
  /** When its barrier was asked last; 0 when an answer came since. */
  askedAtMs: number;
  refusals: number;
}

/**
 * The services of a line that owe an answer: what was asked of each in this recovery, whom to ask next, and how patient to be.
 * When a debt is paid, and by what, it doesn't know.
 */
export class Debts {
  readonly #peers: readonly Peer[];
  readonly #debts = new Map<ServiceName, Debt>();
  /** Who has answered a barrier in this process. */
  readonly #able = new Set<ServiceName>();

  constructor(peers: readonly Peer[]) {
    this.#peers = peers;
  }

  get size(): number {
    return this.#debts.size;
  }

  /** Who owes, longest first. */
  services(): IterableIterator<ServiceName> {
    return this.#debts.keys();
  }

  entries(): IterableIterator<[ServiceName, Debt]> {
    return this.#debts.entries();
  }

  of(service: ServiceName): Debt | undefined {
    return this.#debts.get(service);
  }

  /** A service owes; what was asked of one that does already stays known. */
  add(service: ServiceName): void {
    if (!this.#debts.has(service)) this.renew(service);
  }

  /** Every service of a framing owes, unless one of them is known to. */
  addUnlessExplained(framing: Framing): void {
    const peers = this.#peers.filter((peer) => peer.framing === framing);
    if (!peers.some(({ service }) => this.#debts.has(service))) for (const { service } of peers) this.add(service);
  }

  /** A service owes, and nothing was asked of it yet. */
  renew(service: ServiceName): void {
    this.#debts.set(service, { asked: 0, answered: 0, askedAtMs: 0, refusals: 0 });
  }

  delete(service: ServiceName): void {
    this.#debts.delete(service);
  }

  /** Whose barrier to ask now: of those that answer theirs or may, the one asked longest ago. */
  next(): { readonly peer: Peer; readonly debt: Debt } | undefined {
    let next: { readonly peer: Peer; readonly debt: Debt } | undefined;
    for (const peer of this.#peers) {
      const debt = this.#debts.get(peer.service);
      if (debt === undefined || peer.barrier === undefined) continue;
      if (debt.refusals >= refusalsMax * this.patienceWith(peer.service)) continue;
      if (next === undefined || debt.askedAtMs < next.debt.askedAtMs) next = { peer, debt };
    }
    return next;
  }

  /** A barrier of a service that owes was answered; which one it was isn't known. */
  answered(service: ServiceName, debt: Debt): void {
    this.#able.add(service);
    debt.answered++;
    debt.askedAtMs = 0;
  }

  /** Of the services of a framing that owe, the one whose barrier was asked last; undefined when none was asked. */
  lastAsked(framing: Framing): { readonly service: ServiceName; readonly debt: Debt } | undefined {
    let last: { readonly service: ServiceName; readonly debt: Debt } | undefined;
    for (const { service, framing: its } of this.#peers) {
      const debt = this.#debts.get(service);
      if (its !== framing || debt === undefined || debt.asked === 0) continue;
      if (last === undefined || debt.askedAtMs > last.debt.askedAtMs) last = { service, debt };
    }
    return last;
  }

  /** Whether a service has answered a barrier in this process. */
  isAble(service: ServiceName): boolean {
    return this.#able.has(service);
  }

  /** How many times more of a service is borne than of one that never answered a barrier. */
  patienceWith(service: ServiceName): number {
    return this.isAble(service) ? patience : 1;
  }
}
