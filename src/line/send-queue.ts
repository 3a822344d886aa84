/** What waits to be sent on a line. */
export interface Queued {
  /** Sent before all that isn't urgent. */
  readonly urgent: boolean;
  /** Sent after all that isn't in the background. */
  readonly background: boolean;
  /** When it has waited too long, on `nowMs`'s scale. */
  waitUntilMs: number;
}

/**
 * The send queue of a line: first in, first out, urgent items before all others and background items behind them, bounded in number
 * and in time. Background items have a bound of their own, so that they never take a caller's place. At its head is one slot, for the
 * item whose turn has come while it is recorded: nothing is sent before it, and it may still be taken out. It has no clock.
 */
export class SendQueue<T extends Queued> {
  readonly #urgent: T[] = [];
  readonly #others: T[] = [];
  readonly #background: T[] = [];
  readonly #callsMax: number;
  #head: T | undefined;
  #isHeadReady = false;

  constructor(callsMax: number) {
    this.#callsMax = callsMax;
  }

  /** How many callers' items wait; the one in the head slot isn't among them, nor are those in the background. */
  get size(): number {
    return this.#urgent.length + this.#others.length;
  }

  /** No place is left for such an item. */
  isFullFor({ background }: Pick<Queued, "background">): boolean {
    return (background ? this.#background.length : this.size) >= this.#callsMax;
  }

  /** Nothing waits that is sent before a caller's item that comes now, nor anything behind it. */
  get isEmpty(): boolean {
    return this.#head === undefined && this.size === 0 && this.#background.length === 0;
  }

  /** An item waits for nothing but the line. */
  get hasReady(): boolean {
    return this.#head === undefined ? this.size > 0 || this.#background.length > 0 : this.#isHeadReady;
  }

  /** The item that is being recorded, or was. */
  get head(): T | undefined {
    return this.#head;
  }

  get isHeadReady(): boolean {
    return this.#isHeadReady;
  }

  /**
   * Adds an item at the end, before what isn't urgent if it is, behind all callers' if it is in the background.
   * @throws Error when the queue is full: the caller looks first.
   */
  add(item: T): void {
    if (this.isFullFor(item)) throw new Error(`Cannot queue a call: ${this.#callsMax} are waiting, which is the limit`);
    this.#listOf(item).push(item);
  }

  /** Puts an item before all others of callers, or of the background, whatever the limit: it had its place already. */
  putFirst(item: T): void {
    (item.background ? this.#background : this.#urgent).unshift(item);
  }

  #listOf({ urgent, background }: T): T[] {
    if (background) return this.#background;
    return urgent ? this.#urgent : this.#others;
  }

  /** Takes out the item that is to be sent now; undefined when there is none, or while the head is being recorded. */
  next(): T | undefined {
    if (this.#head === undefined) return this.#urgent.shift() ?? this.#others.shift() ?? this.#background.shift();
    return this.#isHeadReady ? this.#takeHead() : undefined;
  }

  /** Puts an item that was taken out into the head slot, until it is recorded. */
  hold(item: T): void {
    this.#head = item;
  }

  /** The head is recorded, and waits for nothing but the line. */
  headRecorded(): void {
    this.#isHeadReady = true;
  }

  /** Takes an item out wherever it is; false when it isn't here. */
  remove(item: T): boolean {
    if (this.#head === item) return this.#takeHead() !== undefined;
    for (const list of [this.#urgent, this.#others, this.#background]) {
      const at = list.indexOf(item);
      if (at === -1) continue;
      list.splice(at, 1);
      return true;
    }
    return false;
  }

  /** When the first item will have waited too long; Infinity when none waits. */
  get nextDueMs(): number {
    let due = this.#head?.waitUntilMs ?? Number.POSITIVE_INFINITY;
    for (const item of this.#urgent) due = Math.min(due, item.waitUntilMs);
    for (const item of this.#background) due = Math.min(due, item.waitUntilMs);
    // These all wait equally long, so the first one is due first.
    return Math.min(due, this.#others[0]?.waitUntilMs ?? Number.POSITIVE_INFINITY);
  }

  /** The items that have waited too long; they are taken out one by one, since each may let the next one through. */
  *expired(now: number): Generator<T> {
    for (const item of [this.#head, ...this.#urgent, ...this.#others, ...this.#background]) {
      if (item !== undefined && item.waitUntilMs <= now) yield item;
    }
  }

  /** Takes out all, in order. */
  takeAll(): readonly T[] {
    const head = this.#takeHead();
    const waiting = [this.#urgent, this.#others, this.#background].flatMap((list) => list.splice(0));
    return head === undefined ? waiting : [head, ...waiting];
  }

  #takeHead(): T | undefined {
    const head = this.#head;
    this.#head = undefined;
    this.#isHeadReady = false;
    return head;
  }
}
