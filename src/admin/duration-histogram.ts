/**
 * Durations counted by size, for /metrics. The counts are plain numbers: a duration costs a look through the bounds, some ten
 * nanoseconds, and nothing is made of them until somebody reads.
 */

/**
 * Upper bounds in milliseconds, each included. A question to a terminal takes some 10 ms, a receipt a second or two, a sale as
 * long as a customer looks for a card: mostly less than two minutes, and what takes longer is counted beyond the last bound.
 */
export const durationBoundsMs: readonly number[] = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 90_000, 120_000,
];

export class DurationHistogram {
  /** Counts by bound, each without the ones below; the last is beyond all bounds. */
  readonly #counts: number[] = new Array<number>(durationBoundsMs.length + 1).fill(0);
  #sumMs = 0;

  add(ms: number): void {
    let n = 0;
    while (ms > (durationBoundsMs[n] ?? Number.POSITIVE_INFINITY)) n++;
    this.#counts[n] = (this.#counts[n] ?? 0) + 1;
    this.#sumMs += ms;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  /** Counts up to each bound, those below it included; the last is the count of all. */
  cumulative(): readonly number[] {
    let sum = 0;
    return this.#counts.map((count) => {
      sum += count;
      return sum;
    });
  }
}
