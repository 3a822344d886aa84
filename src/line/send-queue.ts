/** An item that waits to be sent on a line. */
export interface Queued {
  /** True if sent before all items that aren't urgent. */
  readonly urgent: boolean;
  /** True if sent after all items that aren't in the background. */
  readonly background: boolean;
  /** When the item has waited too long, on `nowMs`'s scale. */
  waitUntilMs: number;
}

/**
 * The send queue of a line: first in, first out, urgent items first and background items last, bounded in number and in time. Background
 * items have a bound of their own, so that they never take a caller's place. At the head is a slot for the item whose turn has come while
 * it is recorded: nothing is sent before it, and it may still be taken out. The queue has no clock.
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

  /** Count of callers' waiting items, without the head slot and the background. */
  get size(): number {
    return this.#urgent.length + this.#others.length;
  }

  /** True if no place is left for such an item. */
  isFullFor({ background }: Pick<Queued, "background">): boolean {
    return (background ? this.#background.length : this.size) >= this.#callsMax;
  }

  /** True if nothing waits at all, in the head slot or the background either. */
  get isEmpty(): boolean {
    return this.#head === undefined && this.size === 0 && this.#background.length === 0;
  }

  /** True if an item waits for nothing but the line. */
  get hasReady(): boolean {
    return this.#head === undefined ? this.size > 0 || this.#background.length > 0 : this.#isHeadReady;
  }

  /** The item in the head slot: being recorded, or recorded. */
  get head(): T | undefined {
    return this.#head;
  }

  get isHeadReady(): boolean {
    return this.#isHeadReady;
  }

  /**
   * Adds an item: urgent ones before the others, background ones after all callers'.
   * @throws Error if the queue is full: the caller looks first.
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

  /** Takes out the item to send now; undefined if there is none, or while the head is being recorded. */
  next(): T | undefined {
    if (this.#head === undefined) return this.#urgent.shift() ?? this.#others.shift() ?? this.#background.shift();
    return this.#isHeadReady ? this.#takeHead() : undefined;
  }

  /** Puts an item that was taken out into the head slot, until it is recorded. */
  hold(item: T): void {
    this.#head = item;
  }

  /** Notes that the head is recorded, and waits for nothing but the line. */
  headRecorded(): void {
    this.#isHeadReady = true;
  }

  /** Takes an item out wherever it is; false if it isn't here. */
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

  /** When the first item will have waited too long; Infinity if none waits. */
  get nextDueMs(): number {
    let due = this.#head?.waitUntilMs ?? Number.POSITIVE_INFINITY;
    for (const item of this.#urgent) due = Math.min(due, item.waitUntilMs);
    for (const item of this.#background) due = Math.min(due, item.waitUntilMs);
    // Ordinary items all wait equally long, so the first of them is due first.
    return Math.min(due, this.#others[0]?.waitUntilMs ?? Number.POSITIVE_INFINITY);
  }

  /** Takes out items that have waited too long, one by one, since each may let the next one through. */
  *expired(now: number): Generator<T> {
    for (const item of [this.#head, ...this.#urgent, ...this.#others, ...this.#background]) {
      if (item !== undefined && item.waitUntilMs <= now) yield item;
    }
  }

  /** Takes out all items, in order. */
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
