import { isObject } from "../core/json-object.ts";

/** The time of a settle run: its clock, its pauses and its window; and what may end its waits. */

export interface Clock {
  /** Monotonic milliseconds: a box's wall clock may jump by years at its first time sync. */
  nowMs(): number;
  /** Resolves after so many milliseconds, or at once when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
}

export const monotonicClock: Clock = {
  nowMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      if (signal?.aborted === true) done();
      else signal?.addEventListener("abort", done);
    }),
};

/** Sleeps until one of the signals is aborted. `AbortSignal.any` would leave out browsers that have all else. */
export async function sleepUnless(clock: Clock, ms: number, signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  const over = new AbortController();
  const wake = () => over.abort();
  for (const signal of signals) {
    if (signal?.aborted === true) wake();
    signal?.addEventListener("abort", wake);
  }
  try {
    await clock.sleep(ms, over.signal);
  } finally {
    for (const signal of signals) signal?.removeEventListener("abort", wake);
  }
}

/**
 * What JavaScript may give for an AbortSignal, as its controller, or for a function would fail once the operation is on its way, which
 * would then be followed for nobody.
 * @param doing As `settle`.
 * @throws TypeError for options that can't be listened to.
 */
export function checkOptions(doing: string, options: unknown, signals: readonly string[]): void {
  if (!isObject(options)) throw new TypeError(`Cannot ${doing}: the options are not an object`);
  for (const name of signals) {
    const given = options[name] ?? undefined;
    if (given === undefined || (isObject(given) && "aborted" in given && "addEventListener" in given)) continue;
    throw new TypeError(`Cannot ${doing}: ${name} is not an AbortSignal: pass a controller's signal`);
  }
  const onProgress = options["onProgress"] ?? undefined;
  if (onProgress === undefined || typeof onProgress === "function") return;
  throw new TypeError(`Cannot ${doing}: onProgress is not a function`);
}

/** Milliseconds between attempts at something that isn't let through: doubling, from a moment to what a customer will bear. */
const backOffMs = { min: 1_000, max: 10_000 } as const;

/** Milliseconds between queries where the contract names none. */
const intervalMsDefault = { min: 1_000, max: 2_000 } as const;

/** Milliseconds by which the interval grows with each query, from the shortest to the longest that the contract recommends. */
const intervalGrowthMs = 250;

export class Pauses {
  readonly #shortestMs: number;
  readonly #longestMs: number;
  #intervalMs: number;
  #backOffMs: number = backOffMs.min;

  /**
   * @param usual The contract's recommendation.
   * @param fixedMs In its place, where the caller wants another.
   * @throws TypeError for what is not a number, RangeError for an interval that would flood a terminal.
   */
  constructor(usual: { readonly min: number; readonly max: number } = intervalMsDefault, fixedMs?: number) {
    if (fixedMs !== undefined && typeof fixedMs !== "number")
      throw new TypeError("Cannot settle: intervalMs is not a number: use milliseconds");
    if (fixedMs !== undefined && !(fixedMs >= intervalMsMin)) {
      throw new RangeError(`Cannot settle: intervalMs is ${fixedMs}: use at least ${intervalMsMin}`);
    }
    this.#shortestMs = fixedMs ?? usual.min;
    this.#longestMs = fixedMs ?? usual.max;
    this.#intervalMs = this.#shortestMs;
  }

  /** Milliseconds to wait before what comes next. */
  nextMs({ pause, retryAfterMs = 0 }: { pause: "none" | "interval" | "back-off"; retryAfterMs?: number | undefined }): number {
    if (pause === "none") return 0;
    if (pause === "back-off") {
      const waitMs = Math.max(this.#backOffMs, retryAfterMs);
      this.#backOffMs = Math.min(this.#backOffMs * 2, backOffMs.max);
      return waitMs;
    }
    this.#backOffMs = backOffMs.min;
    const waitMs = this.#intervalMs;
    this.#intervalMs = Math.min(waitMs + intervalGrowthMs, this.#longestMs);
    return waitMs;
  }
}

/** Minimum milliseconds between two queries: a terminal on a serial line has other things to do. */
const intervalMsMin = 50;

const windowMsDefault = 180_000;

/**
 * Milliseconds for which an operation is followed: one that never ends would be a wait without a limit.
 * @throws TypeError for what is not a number, RangeError for one that can't be milliseconds.
 */
export function checkedWindowMs(windowMs: unknown = windowMsDefault): number {
  if (typeof windowMs !== "number") throw new TypeError("Cannot settle: windowMs is not a number: use milliseconds");
  if (Number.isFinite(windowMs) && windowMs >= 0) return windowMs;
  throw new RangeError(`Cannot settle: windowMs is ${windowMs}: use milliseconds`);
}

/** The longest that a timer can be set to, in milliseconds; one set to more would ring at once. */
export const timerMsMax = 2 ** 31 - 1;
