import { recoveries } from "../contract/recovery.ts";
import { nowMs } from "../core/clock.ts";
import type { OperationEnd, PastOperation } from "../core/followed.ts";
import type { SentRecord } from "./record.ts";
import { type Known, knownOf, nothingSaid, type PlaceInJournal, type SaidByAnswer, type Sending } from "./sending.ts";

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

/** What was sent under one key. */
interface UnderKey {
  /** In the order of their sending. */
  sendings: readonly Sending[];
  /** How many were sent by this process. */
  count: number;
  /** More were sent than are kept: what they said isn't known any more. */
  hasForgotten: boolean;
  /** One that isn't kept may have been given a name of its own. */
  hasOtherNames: boolean;
}

/** Sendings under one key that are kept, beside those of which nothing was learned: 8 of some 700 bytes. */
const sendingsMax = 8;

/** Paths of the operations that have an end of their own to ask for; /abort bears the key of another one. */
const followable: ReadonlySet<string> = new Set(Object.values(recoveries).flatMap((rules) => rules.map(({ route }) => route)));

/**
 * Milliseconds after its sending for which an operation may not be carried out yet: as long as its answer is awaited, and as long once more
 * behind a gateway that answered without it (bank.md, 30 s).
 */
const onItsWayMs = 60_000;

/** Where the orders of what this process sends begin: above the number of any record. */
const ownOrders = 2 ** 52;

/** The key's words can hold anything but a control character (`record.ts`). */
const nameOf = (service: string, key: string) => `${service}\n${key}`;

const saysNothing = ({ said, isFound, settled, endedMs }: Sending) =>
  said.begun === undefined && said.end === undefined && !isFound && settled === undefined && endedMs !== undefined;

/** The last operation of these sendings of one route; undefined where that is too old. */
function lastOperation(sendings: readonly Sending[]): RecentOperation | undefined {
  const sending = sendings.at(-1);
  if (sending === undefined || nowMs() - sending.atMs > recentMs) return undefined;
  const known = knownOf(sendings);
  return { ...known, sending, mayEndWell: known.hadGoodEnd || (known.times > 1 && nowMs() - sending.atMs < onItsWayMs) };
}

const isSameRequest = (one: Sending, other: Sending) => one.route === other.route && one.digest === other.digest;

/** Whether the operation of one of these sendings has no known end. */
const isOpen = (sendings: readonly Sending[], sending: Sending) =>
  knownOf(sendings.filter((each) => isSameRequest(each, sending))).end === undefined;

/** Whether nothing says that the terminal has begun it: also where the same request, sent before, has ended. */
const mayBeOnItsWay = ({ said, isFound, settled }: Sending) =>
  (settled ?? said.end) === undefined && said.begun !== true && !isFound;

const lastOf = ({ sendings }: UnderKey) => sendings.at(-1)?.order ?? 0;

type Key = Pick<SentRecord, "service" | "key">;

export class RecentOperations {
  /** By service and key; those sent last stand last. */
  readonly #keys = new Map<string, UnderKey>();
  readonly #max: number;
  #lastOrder = ownOrders;

  /** @param max How many keys are remembered: no more than the ring has operations. */
  constructor(max: number) {
    this.#max = max;
  }

  /** An operation is about to be sent; undefined for one that has no key or no end of its own. */
  add(sent: SentRecord, place: PlaceInJournal): Sending | undefined {
    const { service, route, key } = sent;
    if (key === undefined || !followable.has(route)) return undefined;
    const sending = this.#sending(sent, { place, order: ++this.#lastOrder, atMs: nowMs(), endedMs: undefined });
    const there = this.#under(sent);
    const name = nameOf(service, key);
    this.#keys.delete(name);
    this.#keys.set(name, { ...this.#with(there, sending), count: there.count + 1 });
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
    this.#forget();
  }

  /** Once what earlier processes sent is there: the oldest stand first again. */
  sort(): void {
    const all = [...this.#keys].sort(([, one], [, other]) => lastOf(one) - lastOf(other));
    this.#keys.clear();
    for (const [name, under] of all) this.#keys.set(name, under);
  }

  #sending(
    { route, timeMs, digest, device, ask, fresh = false }: SentRecord,
    place: Pick<Sending, "place" | "order" | "atMs" | "endedMs">,
  ): Sending {
    const unknown = { said: nothingSaid, isFound: false, settled: undefined, isStopped: false };
    return { route, sentMs: timeMs, digest, device, ask, isFresh: fresh, ...place, ...unknown };
  }

  /** In the order of their sending: a journal that is read late brings what was sent before. */
  #with({ sendings, count, hasForgotten, hasOtherNames }: UnderKey, sending: Sending): UnderKey {
    const oldestMs = nowMs() - recentMs;
    const all = [...sendings.filter(({ atMs }) => atMs >= oldestMs), sending].sort((one, other) => one.order - other.order);
    if (all.length <= sendingsMax) return { sendings: all, count, hasForgotten, hasOtherNames };
    // A till that repeats one for minutes: of a sending between others of which nothing was learned nothing is lost but its name.
    const [first, ...more] = all;
    const idle = more.slice(0, -1).find((each) => saysNothing(each) && first !== undefined && isSameRequest(each, first));
    const dropped = idle ?? first;
    return {
      sendings: all.filter((each) => each !== dropped),
      count,
      hasForgotten: hasForgotten || idle === undefined,
      hasOtherNames: true,
    };
  }

  #under({ service, key = "" }: Key): UnderKey {
    return this.#keys.get(nameOf(service, key)) ?? { sendings: [], count: 0, hasForgotten: false, hasOtherNames: false };
  }

  /** Its answer came, or stayed out. */
  ended(sending: Sending, said: SaidByAnswer): void {
    sending.endedMs = nowMs();
    sending.said = said;
  }

  /** It wasn't sent after all, or was refused before anything was begun. */
  remove(sent: Key, sending: Sending): void {
    const there = this.#under(sent);
    const sendings = there.sendings.filter((each) => each !== sending);
    const name = nameOf(sent.service, sent.key ?? "");
    if (sendings.length === 0 && !there.hasForgotten) this.#keys.delete(name);
    else this.#keys.set(name, { ...there, sendings, count: there.count - 1 });
  }

  /** The order of what was sent last. */
  get lastOrder(): number {
    return this.#lastOrder;
  }

  /** What was sent under a key until then was aborted. */
  stopped(sent: Key, order: number): void {
    for (const sending of this.#under(sent).sendings) if (sending.order <= order) sending.isStopped = true;
  }

  /** The last one of a route under a key. */
  find(sent: Key & Pick<SentRecord, "route">): RecentOperation | undefined {
    const { sendings, hasForgotten, hasOtherNames } = this.#under(sent);
    const found = lastOperation(sendings.filter(({ route }) => route === sent.route));
    if (found === undefined) return undefined;
    return {
      ...found,
      isAccepted: found.isAccepted || hasForgotten,
      hasOtherNames: found.hasOtherNames || hasOtherNames,
    };
  }

  /** The same as it was before a sending. */
  before({ service, key }: Key, { route, order }: Sending): RecentOperation | undefined {
    const { sendings } = this.#under({ service, key });
    return lastOperation(sendings.filter((each) => each.route === route && each.order < order));
  }

  /** The sending whose record has this place. */
  at(sent: Key, place: PlaceInJournal): Sending | undefined {
    return this.#under(sent).sendings.find((each) => each.place === place);
  }

  /** The only one that was sent under a key. */
  only(sent: Key): RecentOperation | undefined {
    const last = this.#under(sent).sendings.at(-1);
    return last === undefined || !this.#isAlone(sent) ? undefined : this.find({ ...sent, route: last.route });
  }

  /** Whether all that was sent under a key is one operation. */
  #isAlone(sent: Key): boolean {
    const { sendings, hasForgotten } = this.#under(sent);
    const [first] = sendings;
    return !hasForgotten && sendings.every(({ route, digest }) => route === first?.route && digest === first.digest);
  }

  /** How many this process sent under a key, on any route; none once all that is remembered under it has gone. */
  sendings(sent: Key): number {
    return this.#under(sent).count;
  }

  /**
   * Whether nothing that is remembered was sent under an operation's key since, and what was sent right before has ended: else that may
   * have been carried out after it.
   */
  isLast(sent: Key, sending: Sending): boolean {
    const { order, atMs } = sending;
    const { sendings } = this.#under(sent);
    if (sendings.some((each) => each.order > order)) return false;
    const older = sendings.filter((each) => !isSameRequest(each, sending));
    return !older.some((each) => each.atMs > atMs - onItsWayMs && (mayBeOnItsWay(each) || isOpen(older, each)));
  }

  /**
   * Since when a question by this key can only be answered about this operation, on `nowMs`'s scale; undefined where another was sent
   * under the key, or one is under way.
   */
  aloneSinceMs(sent: Pick<SentRecord, "service" | "route" | "key" | "digest">): number | undefined {
    const { sendings } = this.#under(sent);
    const last = sendings.at(-1);
    const isIt = last?.route === sent.route && last.digest === sent.digest && this.#isAlone(sent);
    return isIt && sendings.every(({ endedMs }) => endedMs !== undefined) ? last.endedMs : undefined;
  }

  /** Whether another operation under this key, of another route, has no known end: `recent` where it may be carried out yet. */
  othersOpen(sent: Key & Pick<SentRecord, "route">): "recent" | "old" | undefined {
    const others = this.#under(sent).sendings.filter(({ route }) => route !== sent.route);
    const isRecent = ({ atMs, endedMs }: Sending) => endedMs === undefined || atMs >= nowMs() - onItsWayMs;
    if (others.some((each) => isRecent(each) && (mayBeOnItsWay(each) || isOpen(others, each)))) return "recent";
    return others.some((each) => isOpen(others, each)) ? "old" : undefined;
  }

  /** The oldest go: each time one comes at most a few are too old. */
  #forget(): void {
    const oldestMs = nowMs() - recentMs;
    for (const [name, { sendings }] of this.#keys) {
      if (this.#keys.size <= this.#max && sendings.some(({ atMs }) => atMs >= oldestMs)) return;
      this.#keys.delete(name);
    }
  }
}

/** Whether what is known of an operation may be replaced: nothing is, or "failed", which the terminal's own word takes back. */
export function mayBecome(known: OperationEnd | undefined, end: OperationEnd | undefined): boolean {
  return known === undefined || (known === "failed" && end !== "failed");
}
