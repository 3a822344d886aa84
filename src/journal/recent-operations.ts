import { recoveries } from "../contract/recovery.ts";
import { nowMs } from "../core/clock.ts";
import type { LearnedName, OperationEnd, PastOperation } from "../core/followed.ts";
import type { AnswerFields } from "./answer-fields.ts";
import type { SentRecord } from "./record.ts";
import type { PendingRecord } from "./write-queue.ts";

/**
 * The operations of the last day by service, route and key, in memory: so the same call again is recognised without reading a disk,
 * and an answer is never taken for the end of one operation where several were sent under one key.
 */

/** For how long an operation is remembered, in milliseconds: a shop's day. */
export const recentMs = 24 * 60 * 60 * 1_000;

/** Where an operation's `sent` stands: to be written by this process, or written by an earlier one under this number. */
export type PlaceInJournal = PendingRecord | number;

/** One operation; the last one under its route and key. */
export interface RecentOperation extends Omit<PastOperation, "isLast" | "isInFlight"> {
  readonly route: string;
  readonly place: PlaceInJournal;
  /** Greater than of all that was sent before: what earlier processes sent has its record's number, whatever the box's clock was. */
  readonly order: number;
  /** When it was sent, on `nowMs`'s scale, as far as the box's clock can be believed for what an earlier process sent. */
  readonly atMs: number;
  end: OperationEnd | undefined;
  isAccepted: boolean;
  isStopped: boolean;
  learned: LearnedName | undefined;
  /** When it came to an end, or was found, on `nowMs`'s scale; undefined while it is in flight. */
  endedMs: number | undefined;
  /** Another body was sent under this route and key. */
  hasOthers: boolean;
  /** The one that it took the place of; it comes back if this one wasn't sent after all. */
  before: RecentOperation | undefined;
}

/** Ends that stay though the same request is sent once more. */
const doneEnds: ReadonlySet<OperationEnd | undefined> = new Set(["approved", "closed", "unprinted"] as const);

/** Paths of the operations that have an end of their own to ask for; /abort bears the key of another one. */
const followable: ReadonlySet<string> = new Set(Object.values(recoveries).flatMap((rules) => rules.map(({ route }) => route)));

/** Where the orders of what this process sends begin: above the number of any record. */
const ownOrders = 2 ** 52;

/** The key's words can hold anything but a control character (`record.ts`). */
const nameOf = (service: string, key: string) => `${service}\n${key}`;

export class RecentOperations {
  /** By service and key; those sent last stand last. */
  readonly #operations = new Map<string, RecentOperation[]>();
  /** How many were sent by this process, by service and key. */
  readonly #sendings = new Map<string, number>();
  readonly #max: number;
  #lastOrder = ownOrders;

  /** @param max How many keys are remembered: no more than the ring has operations. */
  constructor(max: number) {
    this.#max = max;
  }

  /** An operation is about to be sent; undefined for one that has no key or no end of its own. */
  add(sent: SentRecord, place: PlaceInJournal): RecentOperation | undefined {
    const { service, route, key, digest } = sent;
    if (key === undefined || !followable.has(route)) return undefined;
    const name = nameOf(service, key);
    const there = this.#operations.get(name) ?? [];
    const before = there.find((each) => each.route === route);
    const hasOthers = before !== undefined && (before.hasOthers || before.digest !== digest);
    const said = saidBy({}, digest, before);
    const operation = { ...this.#past(sent, place, nowMs()), ...said, endedMs: undefined, hasOthers, before };
    this.#operations.delete(name);
    this.#operations.set(name, [...there.filter((each) => each !== before), operation]);
    this.#sendings.set(name, this.sendings(service, key) + 1);
    this.#forget();
    return operation;
  }

  /** One that an earlier process sent, in the order of their sending; what this process sent meanwhile is newer. */
  addOlder(sent: SentRecord, place: PlaceInJournal, end: OperationEnd | undefined, answered: AnswerFields): void {
    const { service, route, key, digest, timeMs } = sent;
    if (key === undefined || !followable.has(route)) return;
    // A clock that was set back makes it younger, never older: it is then remembered for longer.
    const ageMs = Math.max(0, Date.now() - timeMs);
    if (ageMs > recentMs) return;
    const name = nameOf(service, key);
    const there = this.#operations.get(name) ?? [];
    const newer = there.find((each) => each.route === route);
    const isOther = newer !== undefined && (newer.hasOthers || newer.digest !== digest);
    const past = this.#past(sent, place, nowMs() - ageMs);
    const isNewest = newer === undefined || typeof newer.place === "number";
    // What stands there then was sent before it.
    const said = saidBy(answered, digest, isNewest ? newer : newer.before);
    const operation = { ...past, ...said, end: end ?? said.end, endedMs: nowMs(), hasOthers: isOther, before: undefined };
    if (!isNewest) {
      if (newer.digest === digest) newer.isAccepted ||= operation.isAccepted;
      newer.hasOthers = isOther;
      // Of those that are older still, the one before it was under way when this one came.
      if (newer.before === undefined || typeof newer.before.place === "number") newer.before = operation;
      return;
    }
    this.#operations.set(name, [...there.filter((each) => each !== newer), operation]);
    this.#forget();
  }

  #past({ route, timeMs, digest, device, ask, fresh = false }: SentRecord, place: PlaceInJournal, atMs: number) {
    const order = typeof place === "number" ? place : ++this.#lastOrder;
    const unknown = { end: undefined, isAccepted: false, isStopped: false, learned: undefined };
    return { route, place, order, atMs, sentMs: timeMs, digest, device, ask, ...unknown, isFresh: fresh };
  }

  /** Its outcome is known. One that wasn't sent after all leaves the one before it. */
  ended(sent: SentRecord, operation: RecentOperation, wasSent: boolean, answered: AnswerFields): void {
    operation.endedMs = nowMs();
    if (!wasSent) {
      this.#remove(sent, operation);
      return;
    }
    const { isAccepted, learned } = saidBy(answered, operation.digest, operation.before);
    operation.isAccepted ||= isAccepted;
    operation.learned = learned;
    // The terminal took it for a new one.
    if (answered.begun === true) operation.end = undefined;
    operation.before = undefined;
  }

  /** The order of what was sent last. */
  get lastOrder(): number {
    return this.#lastOrder;
  }

  /** What was sent under a key until then was aborted. */
  stopped(service: string, key: string, order: number): void {
    for (const operation of this.#operations.get(nameOf(service, key)) ?? []) {
      if (operation.order <= order) operation.isStopped = true;
    }
  }

  /** The one that was sent under a key, where no other was. */
  only(service: string, key: string): RecentOperation | undefined {
    const [only, ...others] = this.#operations.get(nameOf(service, key)) ?? [];
    return others.length > 0 || only?.hasOthers === true ? undefined : only;
  }

  #remove({ service, route, key = "" }: SentRecord, operation: RecentOperation): void {
    const name = nameOf(service, key);
    if (this.#sendings.has(name)) this.#sendings.set(name, this.sendings(service, key) - 1);
    const there = this.#operations.get(name) ?? [];
    const last = there.find((each) => each.route === route);
    if (last !== operation) {
      // A later one took its place meanwhile.
      if (last?.before === operation) last.before = operation.before;
      return;
    }
    const left = there.filter((each) => each !== operation);
    if (operation.before !== undefined) left.push(operation.before);
    if (left.length === 0) this.#delete(name);
    else this.#operations.set(name, left);
  }

  find(service: string, route: string, key: string): RecentOperation | undefined {
    const found = this.#operations.get(nameOf(service, key))?.find((each) => each.route === route);
    return found === undefined || nowMs() - found.atMs > recentMs ? undefined : found;
  }

  /** How many this process sent under a key, on any route; none once all that is remembered under it has gone. */
  sendings(service: string, key: string): number {
    return this.#sendings.get(nameOf(service, key)) ?? 0;
  }

  /** Whether nothing that is remembered was sent under an operation's key since. */
  isLast({ service, key = "" }: Pick<SentRecord, "service" | "key">, operation: RecentOperation): boolean {
    return !(this.#operations.get(nameOf(service, key)) ?? []).some(({ order }) => order > operation.order);
  }

  /**
   * Since when a question by this key can only be answered about this operation, on `nowMs`'s scale; undefined where another was sent
   * under the key, or one is under way.
   */
  aloneSinceMs({ service, route, key, digest }: Pick<SentRecord, "service" | "route" | "key" | "digest">): number | undefined {
    const [only, ...others] = key === undefined ? [] : (this.#operations.get(nameOf(service, key)) ?? []);
    if (only === undefined || others.length > 0 || only.hasOthers) return undefined;
    return only.route === route && only.digest === digest ? only.endedMs : undefined;
  }

  /** The oldest go: each time one comes at most a few are too old. */
  #forget(): void {
    const oldestMs = nowMs() - recentMs;
    for (const [name, operations] of this.#operations) {
      if (this.#operations.size <= this.#max && operations.some(({ atMs }) => atMs >= oldestMs)) return;
      this.#delete(name);
    }
  }

  #delete(name: string): void {
    this.#operations.delete(name);
    this.#sendings.delete(name);
  }
}

/**
 * What is known of an operation by its answer and by what was sent before it. The same request once more is the same operation: what an
 * answer to the first one said holds, and that one may have been given another name, and be alive under that.
 */
function saidBy({ begun, learned: name }: AnswerFields, digest: string, before: RecentOperation | undefined) {
  const isGone = before === undefined || before.end === "failed" || nowMs() - before.atMs > recentMs;
  const same = !isGone && before.digest === digest ? before : undefined;
  const isAccepted = begun === true || (same?.isAccepted === true && !same.isStopped);
  const end = doneEnds.has(same?.end) ? same?.end : undefined;
  if (name === undefined) return { isAccepted, end, learned: same?.learned && { name: same.learned.name, isOnly: false } };
  const isOnly = isGone || (before.learned?.isOnly === true && before.learned.name === name);
  return { isAccepted, end, learned: { name, isOnly } };
}
