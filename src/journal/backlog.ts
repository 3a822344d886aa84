import type { Pending, Recording } from "./pending.ts";

/**
 * The records that wait for the disk, in order; the first ones may have been waiting for a working disk for long. There is a
 * bound to them, and what is dropped then is first what tells least: that something was not sent.
 */

/** Records kept while the disk fails: those of a busy day. */
const keptMax = 2_048;

export class Backlog {
  #waiting: Pending[] = [];

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** The first one that somebody waits for. */
  get awaited(): Pending | undefined {
    return this.#waiting.find(({ released }) => !released);
  }

  [Symbol.iterator](): Iterator<Pending> {
    return this.#waiting[Symbol.iterator]();
  }

  /** Takes a record, and gives those that had to be dropped for it. */
  add(pending: Pending): readonly Pending[] {
    this.#waiting.push(pending);
    const dropped: Pending[] = [];
    while (this.#waiting.length > keptMax) dropped.push(...this.#drop());
    return dropped;
  }

  /** Takes out the first ones. */
  take(max: number): readonly Pending[] {
    const taken = this.#waiting.slice(0, max);
    this.#waiting = this.#waiting.slice(taken.length);
    return taken;
  }

  /** Puts some before all others. */
  putFirst(some: readonly Pending[]): void {
    this.#waiting = [...some, ...this.#waiting];
  }

  /** Takes out one; false when it isn't there. */
  remove(recording: Recording): boolean {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((pending) => pending !== recording);
    return this.#waiting.length < before;
  }

  #drop(): readonly Pending[] {
    const dropped = this.#notSent() ?? this.#waiting.slice(0, 1);
    this.#waiting = this.#waiting.filter((pending) => !dropped.includes(pending));
    for (const pending of dropped) pending.release(false);
    return dropped;
  }

  /** The first operation that both began and ended here, as not sent. */
  #notSent(): readonly Pending[] | undefined {
    const all = new Set<Recording>(this.#waiting);
    for (const pending of this.#waiting) {
      const { record } = pending;
      if (record.kind !== "outcome" || record.outcome !== "not-sent" || !all.has(record.sent)) continue;
      return this.#waiting.filter((each) => each === pending || each === record.sent);
    }
    return undefined;
  }
}
