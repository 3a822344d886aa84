/** What waits to be sent on a line. */
export interface Queued {
  /** Sent before all that isn't urgent. */
  readonly urgent: boolean;
  /** When it has waited too long, on `nowMs`'s scale. */
  waitUntilMs: number;
}

/**
 * The send queue of a line: first in, first out, urgent items before all others, bounded in number and in time. At its head is one
 * slot, for the item whose turn has come while it is recorded: nothing is sent before it, and it may still be taken out. It has no clock.
 */
export class SendQueue<T extends Queued> {
  readonly #urgent: T[] = [];
  readonly #others: T[] = [];
  readonly #callsMax: number;
  #head: T | undefined;
  #isHeadReady = false;

  constructor(callsMax: number) {
    this.#callsMax = callsMax;
  }

  /** How many wait; the one in the head slot isn't among them. */
  get size(): number {
    return this.#urgent.length + this.#others.length;
  }

  get isFull(): boolean {
    return this.size >= this.#callsMax;
  }

  /** Nothing is before an item that comes now. */
  get isEmpty(): boolean {
    return this.#head === undefined && this.size === 0;
  }

  /** An item waits for nothing but the line. */
  get hasReady(): boolean {
    return this.#head === undefined ? this.size > 0 : this.#isHeadReady;
  }

  /** The item that is being recorded, or was. */
  get head(): T | undefined {
    return this.#head;
  }

  get isHeadReady(): boolean {
    return this.#isHeadReady;
  }

  /**
   * Adds an item at the end, before what isn't urgent if it is.
   * @throws Error when the queue is full: the caller looks first.
   */
  add(item: T): void {
    if (this.isFull) throw new Error(`Cannot queue a call: ${this.size} are waiting, which is the limit`);
    (item.urgent ? this.#urgent : this.#others).push(item);
  }

  /** Puts an item before all others, whatever the limit: it had its place already. */
  putFirst(item: T): void {
    this.#urgent.unshift(item);
  }

  /** Takes out the item that is to be sent now; undefined when there is none, or while the head is being recorded. */
  next(): T | undefined {
    if (this.#head === undefined) return this.#urgent.shift() ?? this.#others.shift();
    return this.#isHeadReady ? this.#takeHead() : undefined;
  }

  /** Puts an item that was taken out into the head slot, until it is recorded. */
  hold(item: T): void {
    this.#head = item;
    this.#isHeadReady = false;
  }

  /** The head is recorded, and waits for nothing but the line. */
  headRecorded(): void {
    this.#isHeadReady = true;
  }

  /** Takes an item out wherever it is; false when it isn't here. */
  remove(item: T): boolean {
    if (this.#head === item) return this.#takeHead() !== undefined;
    for (const list of [this.#urgent, this.#others]) {
      const at = list.indexOf(item);
      if (at !== -1) return list.splice(at, 1).length > 0;
    }
    return false;
  }

  /** When the first item will have waited too long; Infinity when none waits. */
  get nextDueMs(): number {
    let due = this.#head?.waitUntilMs ?? Number.POSITIVE_INFINITY;
    for (const item of this.#urgent) due = Math.min(due, item.waitUntilMs);
    // These all wait equally long, so the first one is due first.
    return Math.min(due, this.#others[0]?.waitUntilMs ?? Number.POSITIVE_INFINITY);
  }

  /** The items that have waited too long; they are taken out one by one, since each may let the next one through. */
  *expired(now: number): Generator<T> {
    for (const item of [this.#head, ...this.#urgent, ...this.#others]) {
      if (item !== undefined && item.waitUntilMs <= now) yield item;
    }
  }

  /** Takes out all, in order. */
  takeAll(): readonly T[] {
    const head = this.#takeHead();
    return [...(head === undefined ? [] : [head]), ...this.#urgent.splice(0), ...this.#others.splice(0)];
  }

  #takeHead(): T | undefined {
    const head = this.#head;
    this.#head = undefined;
    this.#isHeadReady = false;
    return head;
  }
}
