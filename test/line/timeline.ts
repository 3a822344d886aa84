import assert from "node:assert/strict";

/** Moments at one time, at most: more is a line that looks at its clock again and again. */
const atOnceMax = 100_000;

/** Simulated time: moments in a list, run in their order. Nothing of the process is replaced, and nothing waits. */
export class Timeline {
  now = 1_000_000;
  /** In their order; few at a time. */
  readonly #moments: { readonly dueMs: number; readonly run: () => void }[] = [];
  /** How many have run since time passed. */
  #atOnce = 0;

  /** Calls `run` after so many milliseconds; what it returns takes that back. */
  after(ms: number, run: () => void): () => void {
    const moment = { dueMs: this.now + Math.max(0, ms), run };
    const at = this.#moments.findIndex(({ dueMs }) => dueMs > moment.dueMs);
    this.#moments.splice(at === -1 ? this.#moments.length : at, 0, moment);
    return () => {
      const index = this.#moments.indexOf(moment);
      if (index !== -1) this.#moments.splice(index, 1);
    };
  }

  /** Lets so many milliseconds pass. */
  advance(ms: number): void {
    const until = this.now + ms;
    while (this.#next(until));
    this.now = until;
  }

  /** Lets time pass until something is so; false when it isn't after `limitMs`. */
  until(done: () => boolean, limitMs = 3_600_000): boolean {
    const until = this.now + limitMs;
    while (!done()) if (!this.#next(until)) return false;
    return true;
  }

  #next(until: number): boolean {
    const [first] = this.#moments;
    if (first === undefined || first.dueMs > until) return false;
    this.#moments.shift();
    this.#atOnce = first.dueMs > this.now ? 0 : this.#atOnce + 1;
    assert.ok(this.#atOnce < atOnceMax, `time stands still at ${this.now}`);
    this.now = first.dueMs;
    first.run();
    return true;
  }
}
