import { after } from "node:test";
import { setImmediate as hop } from "node:timers";

/**
 * A clock that stands still until a test moves it: `performance.now`, `Date.now` and the timers are replaced, nothing in the source
 * knows. A minute of a line's life then takes a millisecond, and the machine's load changes nothing.
 */

type Timer = { readonly dueMs: number; readonly number: number; readonly run: () => void };

/** What the source is given for a timer. */
type Handle = { readonly number: number; unref(): void };

const real = {
  now: performance.now,
  date: Date.now,
  set: globalThis.setTimeout,
  clear: globalThis.clearTimeout,
  setTurn: globalThis.setImmediate,
  clearTurn: globalThis.clearImmediate,
  digest: crypto.subtle.digest.bind(crypto.subtle),
};

export class VirtualTime {
  nowMs = 1_000_000;
  /** How far the time of day, as the box has it, is from its beginning here: what somebody, or a time server, sets anew. */
  setOffMs = 0;
  /** How many timers have come due, to see that nothing spins. */
  timersRun = 0;
  #timers = new Map<number, Timer>();
  #count = 0;
  /** Signs that are being made, in a thread that no clock of a test moves: they take no time here, however slow the machine. */
  readonly #signing = new Set<Promise<unknown>>();
  /** Turns of the event loop that the source waits for: they take no time here either. */
  readonly #turns = new Set<NodeJS.Immediate>();

  /** Takes over the clock of this process, until `restore`. */
  constructor() {
    const beganMs = real.date() - this.nowMs;
    performance.now = () => this.nowMs;
    Date.now = () => Math.floor(beganMs + this.nowMs + this.setOffMs);
    const set = (run: () => void, ms = 0): Handle => {
      const number = ++this.#count;
      this.#timers.set(number, { number, dueMs: this.nowMs + Math.max(1, ms), run });
      return { number, unref: () => {} };
    };
    const clear = (handle: Handle | undefined): void => {
      if (handle !== undefined) this.#timers.delete(handle.number);
    };
    // The source only stores what it is given, hands it back, and lets the process end without it: so much does for a timer.
    globalThis.setTimeout = set as unknown as typeof setTimeout;
    globalThis.clearTimeout = clear as unknown as typeof clearTimeout;
    const setTurn = (run: () => void): NodeJS.Immediate => {
      const turn = real.setTurn(() => {
        this.#turns.delete(turn);
        run();
      });
      this.#turns.add(turn);
      return turn;
    };
    const clearTurn = (turn: NodeJS.Immediate | undefined): void => {
      if (turn !== undefined) this.#turns.delete(turn);
      real.clearTurn(turn);
    };
    globalThis.setImmediate = setTurn as unknown as typeof setImmediate;
    globalThis.clearImmediate = clearTurn;
    crypto.subtle.digest = (algorithm, data) => {
      const digest = real.digest(algorithm, data);
      const made: Promise<unknown> = digest.then(
        () => this.#signing.delete(made),
        () => this.#signing.delete(made),
      );
      this.#signing.add(made);
      return digest;
    };
  }

  restore(): void {
    performance.now = real.now;
    Date.now = real.date;
    globalThis.setTimeout = real.set;
    globalThis.clearTimeout = real.clear;
    globalThis.setImmediate = real.setTurn;
    globalThis.clearImmediate = real.clearTurn;
    crypto.subtle.digest = real.digest;
  }

  /** Calls `run` after so many milliseconds. */
  after(ms: number, run: () => void): void {
    setTimeout(run, ms);
  }

  /** Loses every timer that is set, as a bug would, or the end of a test: what waits for one waits for ever. */
  forgetTimers(): void {
    this.#timers.clear();
  }

  /** Lets what was promised happen: every microtask that is ready, however deep, every turn that is waited for, and every sign. */
  async settle(): Promise<void> {
    await new Promise<void>((resolve) => hop(resolve));
    while (this.#signing.size > 0 || this.#turns.size > 0) {
      await Promise.all(this.#signing);
      await new Promise<void>((resolve) => hop(resolve));
    }
  }

  /** Moves on, timer by timer, in order. */
  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms;
    await this.settle();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#timers.delete(next.number);
      this.nowMs = Math.max(this.nowMs, next.dueMs);
      this.timersRun++;
      next.run();
      await this.settle();
    }
    this.nowMs = end;
  }

  /** Moves on until something is so, or for `msMax`; false when it never was. */
  async until(done: () => boolean, msMax = 3_600_000): Promise<boolean> {
    const end = this.nowMs + msMax;
    await this.settle();
    while (!done()) {
      const next = this.#next(end);
      if (next === undefined) return false;
      await this.advance(next.dueMs - this.nowMs);
    }
    return true;
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers.values()) {
      if (timer.dueMs > end) continue;
      if (first === undefined || timer.dueMs < first.dueMs || (timer.dueMs === first.dueMs && timer.number < first.number)) {
        first = timer;
      }
    }
    return first;
  }
}

/** The clock of a whole test file. */
export function virtualTime(): VirtualTime {
  const time = new VirtualTime();
  after(() => time.restore());
  return time;
}
