import { closingRoutes, settlingRules } from "../contract/settling.ts";
import { nowMs } from "../core/clock.ts";
import type { SentRecord } from "../journal/record.ts";
import { addFact, dayMs, endOfOne, type Sending } from "./sending.ts";

/**
 * What stands under each key of a service, in memory: the sendings of the last day, and those of unknown end, however old. And since when that
 * memory is complete.
 */

/** Paths of the operations that have an end of their own to ask for; /abort bears the key of another one. */
const followable: ReadonlySet<string> = new Set(
  Object.values(settlingRules).flatMap((rules) => rules.map(({ route }) => route)),
);

/** First order of this process's sendings: above the number of any record. */
const ownOrders = 2 ** 52;

/** A newline separates the parts, since a key can hold anything but a control character (`record.ts`). */
const nameOf = ({ service, key = "" }: Key) => `${service}\n${key}`;

/** A terminal's name. The device comes first: after a new configuration a service of another name may close its batch. */
export const terminalOf = ({ device, service }: SentRecord) => device ?? service;

const lastOf = (sendings: readonly Sending[]) => sendings.at(-1)?.order ?? 0;

const none: readonly Sending[] = [];

type Key = Pick<SentRecord, "service" | "key">;

/** True until a day is over, and for an operation of unknown end until that is settled: a retry of it may charge twice at any age. */
const isKept = (sending: Sending, oldestMs: number) =>
  sending.atMs >= oldestMs || ((sending.isFollowed || sending.cause !== undefined) && endOfOne(sending) === undefined);

export class UnderKey {
  /** Sendings by service and key, in order. */
  readonly #keys = new Map<string, readonly Sending[]>();
  /** Names of all services that have sent something. */
  readonly #services = new Set<string>();
  readonly #max: number;
  #total = 0;
  #lastOrder = ownOrders;
  /** By terminal, the order of its last batch or shift close that may have been carried out. */
  readonly #closed = new Map<string, number>();
  /** Records are missing from before this order: earlier sendings may have come to more, and others may have followed them. */
  #missingOrder = 0;
  /** From when on no missing record is of the last day, on `nowMs`'s scale. */
  #wholeFromMs = Number.NEGATIVE_INFINITY;
  /** From when on nothing was forgotten for lack of room, on `nowMs`'s scale. */
  #allFromMs = Number.NEGATIVE_INFINITY;

  /** @param max How many sendings are remembered: no more than the ring has operations. */
  constructor(max: number) {
    this.#max = max;
  }

  get max(): number {
    return this.#max;
  }

  /** The order of the next sending. */
  nextOrder(): number {
    return ++this.#lastOrder;
  }

  get lastOrder(): number {
    return this.#lastOrder;
  }

  /** Takes a sending; one without a key or an end of its own isn't remembered. Sendings of earlier processes come in their order. */
  add(sending: Sending): void {
    const { key, route, service } = sending.sent;
    const oldestMs = nowMs() - dayMs;
    if (key === undefined || !followable.has(route) || !isKept(sending, oldestMs)) return;
    const name = nameOf(sending.sent);
    const before = this.#keys.get(name) ?? none;
    const kept = before.filter((each) => isKept(each, oldestMs));
    this.#total += kept.length + 1 - before.length;
    const place = kept.findLastIndex(({ order }) => order < sending.order) + 1;
    this.#services.add(service);
    if (before !== none) this.#keys.delete(name);
    kept.splice(place, 0, sending);
    this.#keys.set(name, kept);
    if (sending.order > ownOrders) this.#forget();
  }

  /** Puts the oldest sendings first again, once those of earlier processes are there: the first are forgotten first. */
  sort(): void {
    const all = [...this.#keys].sort(([, one], [, other]) => lastOf(one) - lastOf(other));
    this.#keys.clear();
    for (const [name, sendings] of all) this.#keys.set(name, sendings);
    this.#forget();
  }

  /** Takes a sending out that wasn't sent after all, or was refused before anything was begun. */
  remove(sending: Sending): void {
    const before = this.#keys.get(nameOf(sending.sent));
    const left = before?.filter((each) => each !== sending);
    if (before === undefined || left === undefined) return;
    this.#total -= before.length - left.length;
    if (left.length === 0) this.#keys.delete(nameOf(sending.sent));
    else this.#keys.set(nameOf(sending.sent), left);
  }

  /** What stands under a key, in order of sending. The list is another one once anything was sent under the key. */
  of(key: Key): readonly Sending[] {
    const sendings = this.#keys.get(nameOf(key)) ?? none;
    const oldestMs = nowMs() - dayMs;
    return sendings.every((each) => isKept(each, oldestMs)) ? sendings : sendings.filter((each) => isKept(each, oldestMs));
  }

  get all(): readonly Sending[] {
    return [...this.#keys.values()].flat();
  }

  /** Notes that sendings under a key until this order were aborted. */
  stopped(key: Key, order: number): void {
    for (const each of this.of(key)) if (each.order <= order) addFact(each, { is: "aborted", atMs: nowMs() });
  }

  /** Sendings of other services under a key over a device. */
  ofOthers({ service, key }: Key, device: string): readonly Sending[] {
    return [...this.#services].flatMap((other) =>
      other === service ? none : this.of({ service: other, key }).filter(({ sent }) => sent.device === device),
    );
  }

  /** Notes a batch or shift close, if the route is one. @returns a function that takes it back, if nothing was closed after all. */
  closes(sent: SentRecord, order: number): () => void {
    const terminal = terminalOf(sent);
    const before = this.#closed.get(terminal) ?? 0;
    if (!closingRoutes.has(sent.route) || order < before) return () => {};
    this.#closed.set(terminal, order);
    return () => {
      if (this.#closed.get(terminal) === order) this.#closed.set(terminal, before);
    };
  }

  wasClosedSince({ sent, order }: Sending): boolean {
    return order < (this.#closed.get(terminalOf(sent)) ?? 0);
  }

  /** Notes that records are missing from before this number, sent until a moment on `nowMs`'s scale. */
  missing(before: number, untilMs: number): void {
    this.#missingOrder = Math.max(this.#missingOrder, Math.min(before, ownOrders));
    this.#wholeFromMs = Math.max(this.#wholeFromMs, untilMs + dayMs);
  }

  /** True if records that may concern a sending are missing since it. */
  lacksSince({ order }: Sending): boolean {
    return order < this.#missingOrder;
  }

  /** Notes that sendings until this moment may be forgotten. */
  forgotten(atMs: number): void {
    this.#allFromMs = Math.max(this.#allFromMs, atMs + dayMs);
  }

  /** True if all of the last day is remembered, except what was missing. */
  get isAll(): boolean {
    return nowMs() >= this.#allFromMs;
  }

  get isWhole(): boolean {
    return this.isAll && nowMs() >= this.#wholeFromMs;
  }

  /** Forgets the oldest sendings: as each comes, at most a few are too old. */
  #forget(): void {
    const oldestMs = nowMs() - dayMs;
    for (const [name, sendings] of this.#keys) {
      const isTooOld = !sendings.some((each) => isKept(each, oldestMs));
      if (!isTooOld && this.#total <= this.#max) return;
      const kept = isTooOld || this.#keys.size > 1 ? none : sendings.slice(-this.#max);
      const lastGone = sendings[sendings.length - kept.length - 1];
      if (!isTooOld && lastGone !== undefined) this.forgotten(lastGone.atMs);
      this.#total -= sendings.length - kept.length;
      if (kept.length === 0) this.#keys.delete(name);
      else this.#keys.set(name, kept);
    }
  }
}
