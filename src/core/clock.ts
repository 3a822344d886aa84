import { performance } from "node:perf_hooks";

/**
 * Monotonic time. A box without a battery clock jumps by years at its first time sync, so only this clock measures waits.
 */
export const nowMs: () => number = () => performance.now();

/**
 * A deadline that is moved often and fires seldom: moving it later costs no timer call, since the timer that is already running only looks
 * whether the deadline has really passed.
 */
export class Deadline {
  readonly #onDue: () => void;
  #dueMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  /** Sets the deadline to a moment on `nowMs`'s scale; Infinity is none. */
  set(dueMs: number, now: number): void {
    this.#dueMs = dueMs;
    if (dueMs < this.#timerDueMs) this.#arm(now);
  }

  get isSet(): boolean {
    return this.#dueMs !== Number.POSITIVE_INFINITY;
  }

  /** Milliseconds by which the deadline has passed without coming due: a few on a busy machine, more only if its timer is lost. */
  overdueMs(now: number): number {
    return Math.max(0, now - this.#dueMs);
  }

  /** Sets the deadline to a moment that comes sooner than the present one; a later moment changes nothing. */
  hasten(dueMs: number, now: number): void {
    if (dueMs < this.#dueMs) this.set(dueMs, now);
  }

  clear(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  /** Lets go of the timer, so that it no longer keeps the process alive. */
  dispose(): void {
    this.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
  }

  #arm(now: number): void {
    clearTimeout(this.#timer);
    this.#timerDueMs = this.#dueMs;
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.ceil(this.#dueMs - now)));
  }

  #look(): void {
    this.#timer = undefined;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
    if (this.#dueMs === Number.POSITIVE_INFINITY) return;
    const now = nowMs();
    if (now < this.#dueMs) {
      this.#arm(now);
      return;
    }
    this.#dueMs = Number.POSITIVE_INFINITY;
    this.#onDue();
  }
}

/** Waits until something has happened, for so many milliseconds at most. */
export async function within(ms: number, done: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([done, overdue]);
  } finally {
    clearTimeout(timer);
  }
}

/** Lets this thread stand still, if nothing else may happen meanwhile. */
export function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
