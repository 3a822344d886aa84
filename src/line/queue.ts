import type { Presence } from "../core/call.ts";
import { Deadline, nowMs } from "../core/clock.ts";

/** What waits for its turn on a line. */
export interface Waiting {
  /** Goes before all that isn't urgent. */
  readonly urgent: boolean;
  /** When it has waited too long, on `nowMs`'s scale. */
  waitUntilMs: number;
  readonly caller: Presence;
}

/**
 * The calls that wait for a line: first in, first out, urgent ones before all others. Bounded in number and in time, and a call
 * whose caller leaves is taken out, so it is never sent.
 */
export class CallQueue<T extends Waiting> {
  readonly #urgent: T[] = [];
  readonly #others: T[] = [];
  readonly #callsMax: number;
  readonly #expired: (waiting: T) => void;
  readonly #deadline = new Deadline(() => this.#expire());

  /** @param expired Called for each call that has waited too long, after it was taken out. */
  constructor(callsMax: number, expired: (waiting: T) => void) {
    this.#callsMax = callsMax;
    this.#expired = expired;
  }

  get size(): number {
    return this.#urgent.length + this.#others.length;
  }

  get isFull(): boolean {
    return this.size >= this.#callsMax;
  }

  /**
   * Adds a call at the end, before what isn't urgent if it is.
   * @param left Called when its caller leaves while it waits, after it was taken out.
   * @throws Error when the queue is full: the caller looks first.
   */
  add(waiting: T, left: () => void): void {
    if (this.isFull) throw new Error(`Cannot queue a call: ${this.size} are waiting, which is the limit`);
    this.#put(waiting, left);
    (waiting.urgent ? this.#urgent : this.#others).push(waiting);
  }

  /** Puts a call before all others, whatever the limit: it had its place already. */
  putFirst(waiting: T, left: () => void): void {
    this.#put(waiting, left);
    this.#urgent.unshift(waiting);
  }

  /** Takes out the call whose turn it is. */
  next(): T | undefined {
    const waiting = this.#urgent.shift() ?? this.#others.shift();
    if (waiting === undefined) return undefined;
    waiting.caller.onGone = undefined;
    if (this.size === 0) this.#deadline.clear();
    return waiting;
  }

  /** For how many milliseconds a call that has waited too long is still here. */
  overdueMs(now: number): number {
    return this.#deadline.overdueMs(now);
  }

  /** Takes out all, in order. */
  drain(): readonly T[] {
    const all = [...this.#urgent.splice(0), ...this.#others.splice(0)];
    for (const waiting of all) waiting.caller.onGone = undefined;
    this.#deadline.dispose();
    return all;
  }

  #put(waiting: T, left: () => void): void {
    waiting.caller.onGone = () => {
      if (this.#remove(waiting)) left();
    };
    const now = nowMs();
    this.#deadline.set(Math.min(this.#firstDueMs(), waiting.waitUntilMs), now);
  }

  #remove(waiting: T): boolean {
    const list = this.#urgent.includes(waiting) ? this.#urgent : this.#others;
    const at = list.indexOf(waiting);
    if (at === -1) return false;
    list.splice(at, 1);
    waiting.caller.onGone = undefined;
    return true;
  }

  #firstDueMs(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const waiting of this.#urgent) first = Math.min(first, waiting.waitUntilMs);
    // These all wait equally long, so the first one is due first.
    return Math.min(first, this.#others[0]?.waitUntilMs ?? Number.POSITIVE_INFINITY);
  }

  #expire(): void {
    const now = nowMs();
    for (const list of [this.#urgent, this.#others]) {
      for (const waiting of list.filter((each) => each.waitUntilMs <= now)) {
        if (this.#remove(waiting)) this.#expired(waiting);
      }
    }
    this.#deadline.set(this.#firstDueMs(), now);
  }
}
