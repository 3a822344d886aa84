import { closingRoutes, settlingRules } from "../contract/settling.ts";
import { nowMs } from "../core/clock.ts";
import { contractIn } from "../core/device-mark.ts";
import type { OperationEnd, PastOperation } from "../core/followed.ts";
import { amountOf } from "./body-fields.ts";
import type { SentRecord } from "./record.ts";
import {
  isAskedBefore,
  type Known,
  knownOf,
  mayBeForgotten,
  nothingSaid,
  type PlaceInJournal,
  type SaidByAnswer,
  type Sending,
} from "./sending.ts";

/**
 * The operations of the last day by service and key, in memory: so the same call again is recognised without reading a disk, and an
 * answer is never taken for the end of one operation where several were sent under one key.
 */

/** For how long an operation is remembered, in milliseconds: a shop's day. */
export const recentMs = 24 * 60 * 60 * 1_000;

/** The last operation of a route under a key. */
export interface RecentOperation extends Known, Pick<PastOperation, "mayEndWell"> {
  readonly sending: Sending;
}

/** What was sent under one key, in the order of the sending. */
type UnderKey = readonly Sending[];

/** Paths of the operations that have an end of their own to ask for; /abort bears the key of another one. */
const followable: ReadonlySet<string> = new Set(
  Object.values(settlingRules).flatMap((rules) => rules.map(({ route }) => route)),
);

/**
 * Milliseconds after its sending for which an operation may not be carried out yet: as long as its answer is awaited, and as long once more
 * behind a gateway that answered without it (bank.md, 30 s).
 */
const onItsWayMs = 60_000;

/** Where the orders of what this process sends begin: above the number of any record. */
const ownOrders = 2 ** 52;

/** The key's words can hold anything but a control character (`record.ts`). */
const nameOf = (service: string, key: string) => `${service}\n${key}`;

/** Until when it may be carried out yet. An earlier process may have sent it a moment before this one began, whatever the clock says. */
const mayRunUntilMs = ({ place, atMs, endedMs = atMs }: Sending) => (typeof place === "number" ? endedMs : atMs) + onItsWayMs;

/** The last operation of these sendings of one route; undefined where that is too old. */
function lastOperation(sendings: readonly Sending[]): RecentOperation | undefined {
  const sending = sendings.at(-1);
  if (sending === undefined || nowMs() - sending.atMs > recentMs) return undefined;
  const known = knownOf(sendings);
  return { ...known, sending, mayEndWell: known.hadGoodEnd || (known.times > 1 && nowMs() < mayRunUntilMs(sending)) };
}

const mayBeOf = (sending: Sending, amount: number | undefined) =>
  amount === undefined || sending.amount === undefined || sending.amount === amount;

const isSameRequest = (one: Sending, other: Sending) => one.route === other.route && one.digest === other.digest;

/** One request, sent once or several times. */
interface SentRequest {
  readonly sendings: readonly Sending[];
  readonly end: OperationEnd | undefined;
}

function requestsOf(sendings: readonly Sending[]): readonly SentRequest[] {
  const requests = new Map<string, Sending[]>();
  for (const sending of sendings) {
    const name = `${sending.digest} ${sending.route}`;
    const same = requests.get(name);
    if (same === undefined) requests.set(name, [sending]);
    else same.push(sending);
  }
  return Array.from(requests.values(), (same) => ({ sendings: same, end: knownOf(same).end }));
}

/** Whether one of its recent sendings may be carried out yet, also where another one was. */
const mayCome = ({ sendings, end }: SentRequest, isRecent: (sending: Sending) => boolean) =>
  sendings.some(
    (each) =>
      (each.endedMs === undefined || isRecent(each)) && (end === undefined || (sendings.length > 1 && mayBeOnItsWay(each))),
  );

/**
 * Whether nothing says that the terminal has begun it, of a request that was sent several times: what was found may be another sending, so
 * only its own answer says that, or that there is none at all.
 */
const mayBeOnItsWay = ({ said, settled }: Sending) => said.end === undefined && said.begun !== true && settled !== "failed";

const lastOf = (sendings: UnderKey) => sendings.at(-1)?.order ?? 0;

type Key = Pick<SentRecord, "service" | "key">;

export class RecentOperations {
  /** By service and key; those sent last stand last. */
  readonly #keys = new Map<string, UnderKey>();
  readonly #max: number;
  /** How many sendings are remembered. */
  #total = 0;
  #lastOrder = ownOrders;
  #forgottenMs = Number.NEGATIVE_INFINITY;
  /** By service, the order of its last batch or shift close that may have been carried out. */
  readonly #closed = new Map<string, number>();
  /** What was sent before this order may have come to more than its records say, and something else have followed it: some are missing. */
  #missingOrder = 0;

  /** @param max How many sendings are remembered: no more than the ring has operations. */
  constructor(max: number) {
    this.#max = max;
  }

  /** An operation is about to be sent; undefined for one that has no key or no end of its own. */
  add(sent: SentRecord, place: PlaceInJournal): Sending | undefined {
    const { service, route, key } = sent;
    if (key === undefined || !followable.has(route)) return undefined;
    const sending = this.#sending(sent, { place, order: ++this.#lastOrder, atMs: nowMs(), endedMs: undefined });
    const sendings = this.#with(this.#under(sent), sending);
    const name = nameOf(service, key);
    this.#keys.delete(name);
    this.#keys.set(name, sendings);
    this.#forget();
    return sending;
  }

  /**
   * One that an earlier process sent, in the order of their sending.
   * @param ageMs How long ago; of one whose clock was set back it is no more than of what was sent before it.
   */
  addOlder(sent: SentRecord, place: number, ageMs: number, known: Pick<Sending, "said" | "isFound" | "settled">): void {
    const { service, route, key } = sent;
    if (key === undefined || !followable.has(route) || ageMs > recentMs) return;
    const now = nowMs();
    const sending = this.#sending(sent, { place, order: place, atMs: now - ageMs, endedMs: now });
    this.#keys.set(nameOf(service, key), this.#with(this.#under(sent), Object.assign(sending, known)));
  }

  /** Once what earlier processes sent is there: the oldest stand first again, and go first. */
  sort(): void {
    const all = [...this.#keys].sort(([, one], [, other]) => lastOf(one) - lastOf(other));
    this.#keys.clear();
    for (const [name, under] of all) this.#keys.set(name, under);
    this.#forget();
  }

  /**
   * A batch or shift is about to be closed.
   * @returns takes that back, for one that was not closed after all; undefined where the route closes nothing.
   */
  closes({ service, route }: Pick<SentRecord, "service" | "route">): (() => void) | undefined {
    if (!closingRoutes.has(route)) return undefined;
    const order = ++this.#lastOrder;
    const before = this.#closed.get(service);
    this.#closed.set(service, order);
    return () => {
      if (this.#closed.get(service) !== order) return;
      if (before === undefined) this.#closed.delete(service);
      else this.#closed.set(service, before);
    };
  }

  /** An earlier process closed one. */
  closedOlder({ service, route }: Pick<SentRecord, "service" | "route">, place: number): void {
    if (closingRoutes.has(route)) this.#closed.set(service, Math.max(this.#closed.get(service) ?? 0, place));
  }

  /** Records are missing that earlier processes wrote before this number; where none is given, at any time. */
  missing(place = ownOrders): void {
    this.#missingOrder = Math.max(this.#missingOrder, place);
  }

  /** Whether the terminal's "there is none" proves nothing of a sending. */
  mayBeCleared(service: string, sending: Sending): boolean {
    return this.#mayLackSince(sending) || sending.order < (this.#closed.get(service) ?? 0);
  }

  /** Whether records of what was sent or learned since a sending are missing: another operation may stand under its key. */
  #mayLackSince({ order }: Sending): boolean {
    return order < this.#missingOrder;
  }

  /** From when on all that was forgotten is older than a day, on `nowMs`'s scale; -Infinity where nothing was. */
  get allFromMs(): number {
    return this.#forgottenMs + recentMs;
  }

  /** What was sent until then may be forgotten. */
  forgotten(atMs: number): void {
    this.#forgottenMs = Math.max(this.#forgottenMs, atMs);
  }

  #sending(
    { route, timeMs, digest, device, ask, fresh = false, amount }: SentRecord,
    { place, order, atMs, endedMs }: Pick<Sending, "place" | "order" | "atMs" | "endedMs">,
  ): Sending {
    // Field by field: put together of others V8 makes it twice as large, and a full journal is read in twice the time.
    return {
      route,
      sentMs: timeMs,
      digest,
      device,
      ask,
      isFresh: fresh,
      amount: amountOf(amount),
      place,
      order,
      atMs,
      endedMs,
      notes: [],
      said: nothingSaid,
      isFound: false,
      settled: undefined,
      isStopped: false,
      isFollowed: false,
    };
  }

  /** In the order of their sending: a journal that is read late brings what was sent before. */
  #with(sendings: readonly Sending[], sending: Sending): readonly Sending[] {
    const oldestMs = nowMs() - recentMs;
    const kept = sendings.filter(({ atMs }) => atMs >= oldestMs);
    this.#total += kept.length + 1 - sendings.length;
    const place = kept.findLastIndex(({ order }) => order < sending.order) + 1;
    return kept.toSpliced(place, 0, sending);
  }

  #under({ service, key = "" }: Key): UnderKey {
    return this.#keys.get(nameOf(service, key)) ?? [];
  }

  /** Its answer came, or stayed out. */
  ended(sending: Sending, said: SaidByAnswer): void {
    sending.endedMs = nowMs();
    sending.said = said;
  }

  /** It wasn't sent after all, or was refused before anything was begun. */
  remove(sent: Key, sending: Sending): void {
    const there = this.#under(sent);
    const sendings = there.filter((each) => each !== sending);
    this.#total -= there.length - sendings.length;
    const name = nameOf(sent.service, sent.key ?? "");
    if (sendings.length === 0) this.#keys.delete(name);
    else this.#keys.set(name, sendings);
  }

  /** The order of what was sent last. */
  get lastOrder(): number {
    return this.#lastOrder;
  }

  /** What was sent under a key until then was aborted. */
  stopped(sent: Key, order: number): void {
    for (const sending of this.#under(sent)) if (sending.order <= order) sending.isStopped = true;
  }

  /** The last one of a route under a key, where an amount is given of those that may be of it. */
  find(sent: Key & Pick<SentRecord, "route">, amount?: number): RecentOperation | undefined {
    return lastOperation(this.#under(sent).filter((each) => each.route === sent.route && mayBeOf(each, amount)));
  }

  /** The same as it was before a sending. */
  before({ service, key }: Key, { route, order }: Sending, amount?: number): RecentOperation | undefined {
    const sendings = this.#under({ service, key });
    return lastOperation(sendings.filter((each) => each.route === route && each.order < order && mayBeOf(each, amount)));
  }

  /** The sending whose record has this place. */
  at(sent: Key, place: PlaceInJournal): Sending | undefined {
    return this.#under(sent).find((each) => each.place === place);
  }

  /** What was sent last under a key over a device, unless nothing of it was carried out. */
  lastOver(sent: Key, device: string): Sending | undefined {
    const oldestMs = nowMs() - recentMs;
    const over = this.#under(sent).filter((each) => each.device === device && each.atMs >= oldestMs);
    return requestsOf(over)
      .findLast(({ end }) => end !== "failed")
      ?.sendings.at(-1);
  }

  /** The only one that was sent under a key. */
  only(sent: Key): RecentOperation | undefined {
    const last = this.#under(sent).at(-1);
    return last === undefined || !this.#isAlone(sent) ? undefined : this.find({ ...sent, route: last.route });
  }

  /** Whether all that was sent under a key is one operation. */
  #isAlone(sent: Key): boolean {
    const sendings = this.#under(sent);
    const [first] = sendings;
    return first !== undefined && sendings.every((each) => isSameRequest(each, first));
  }

  /** The order of what this process sent last under a key, on any route; 0 where nothing of it is remembered. */
  lastOrderOf(sent: Key): number {
    const order = lastOf(this.#under(sent));
    return order > ownOrders ? order : 0;
  }

  /**
   * Whether what is answered about an operation's key is about that operation: nothing was sent under the key since, nor may be carried out
   * after it, and nothing that the terminal has of before could be taken for it.
   */
  isLast(sent: Key, sending: Sending): boolean {
    const sendings = this.#under(sent);
    const { route, order, atMs, said, device } = sending;
    if (this.#mayLackSince(sending) || sendings.some((each) => each.order > order)) return false;
    const others = requestsOf(sendings.filter((each) => !isSameRequest(each, sending)));
    // Of what the terminal took for a new one it says how that goes on, unless it may forget that.
    const isKnownApart = isAskedBefore(route) || (said.begun === true && !mayBeForgotten(route, contractIn(device)));
    return !others.some(
      (each) => (!isKnownApart && each.end !== "failed") || mayCome(each, (other) => other.atMs > atMs - onItsWayMs),
    );
  }

  /**
   * Since when a question by this key can only be answered about this operation, on `nowMs`'s scale; undefined where another was sent
   * under the key, or one is under way.
   */
  aloneSinceMs(sent: Pick<SentRecord, "service" | "route" | "key" | "digest">): number | undefined {
    const sendings = this.#under(sent);
    const last = sendings.at(-1);
    if (last?.route !== sent.route || last.digest !== sent.digest || !this.#isAlone(sent)) return undefined;
    if (this.#mayLackSince(last)) return undefined;
    const sinceMs = Math.max(...sendings.map(({ endedMs = Number.POSITIVE_INFINITY }) => endedMs));
    return sinceMs === Number.POSITIVE_INFINITY ? undefined : sinceMs;
  }

  /** Whether another operation under this key, of another route, has no known end: `recent` where it may be carried out yet. */
  othersOpen(sent: Key & Pick<SentRecord, "route">): "recent" | "old" | undefined {
    const others = requestsOf(this.#under(sent).filter(({ route }) => route !== sent.route));
    if (others.some((each) => mayCome(each, (other) => nowMs() < mayRunUntilMs(other)))) return "recent";
    return others.some(({ end }) => end === undefined) ? "old" : undefined;
  }

  /** Whether the terminal is known to have had an operation under this key: that it knows of none proves nothing of another one. */
  hadAny(sent: Key): boolean {
    return requestsOf(this.#under(sent)).some(
      ({ sendings, end }) =>
        end !== "failed" && (end !== undefined || sendings.some(({ said, isFound }) => said.begun === true || isFound)),
    );
  }

  /** What is in flight, or is followed by this process and has no known end. */
  unended(): readonly Pick<SentRecord, "service" | "route" | "key">[] {
    const oldestMs = nowMs() - recentMs;
    return [...this.#keys].flatMap(([name, sendings]) => {
      const [service = "", key] = name.split("\n");
      const open = requestsOf(sendings.filter(({ atMs }) => atMs >= oldestMs)).filter(({ sendings: same, end }) =>
        same.some(({ endedMs, isFollowed }) => endedMs === undefined || (isFollowed && end === undefined)),
      );
      return open.flatMap(({ sendings: [first] }) => (first === undefined ? [] : [{ service, route: first.route, key }]));
    });
  }

  /** The oldest go: each time one comes at most a few are too old. */
  #forget(): void {
    const oldestMs = nowMs() - recentMs;
    for (const [name, sendings] of this.#keys) {
      const isOld = !sendings.some(({ atMs }) => atMs >= oldestMs);
      if (!isOld && this.#total <= this.#max) return;
      const kept = isOld || this.#keys.size > 1 ? [] : sendings.slice(-this.#max);
      const lastGone = sendings[sendings.length - kept.length - 1];
      if (!isOld && lastGone !== undefined) this.forgotten(lastGone.atMs);
      this.#total -= sendings.length - kept.length;
      if (kept.length === 0) this.#keys.delete(name);
      else this.#keys.set(name, kept);
    }
  }
}

/** Whether what is known of an operation may be replaced: nothing is, or "failed", which the terminal's own word takes back. */
export function mayBecome(known: OperationEnd | undefined, end: OperationEnd | undefined): boolean {
  return known === undefined || (known === "failed" && end !== "failed");
}
