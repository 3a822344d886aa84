/** Milliseconds after which a disk that failed is tried again unasked; each time in vain doubles them. */
export const retryMs = { min: 5_000, max: 60_000 } as const;

/**
 * Has a disk that failed tried again by and by: under `refuse` no till may come any more to try it, and whoever asks whether
 * posline is ready would wait for ever.
 */
export class Retry {
  readonly #attempt: () => void;
  #timer: NodeJS.Timeout | undefined;
  #nextMs: number = retryMs.min;
  #isOver = false;

  constructor(attempt: () => void) {
    this.#attempt = attempt;
  }

  /** An attempt failed: there will be another one. */
  failed(): void {
    if (this.#isOver || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#nextMs = Math.min(2 * this.#nextMs, retryMs.max);
      this.#attempt();
    }, this.#nextMs);
    this.#timer.unref();
  }

  /** An attempt worked: there is no need for another. */
  worked(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#nextMs = retryMs.min;
  }

  /** There will be none any more. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}
