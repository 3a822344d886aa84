import { setMaxListeners } from "node:events";
import type { Presence } from "../core/presence.ts";
import { type Clock, monotonicClock, sleepUnless } from "../settle/clock.ts";
import type { Sending } from "./sending.ts";

/** The waits of callers: each for so long at most, and none once all is stopped. */

/** Milliseconds between two looks whether a sending has ended. */
const flightLookMs = 250;

export class Waiting {
  readonly #clock: Clock = monotonicClock;
  readonly #stop = new AbortController();

  constructor() {
    // Each caller listens to this signal, and Node warns of a leak from the eleventh on.
    setMaxListeners(0, this.#stop.signal);
  }

  get nowMs(): number {
    return this.#clock.nowMs();
  }

  get isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  stop(): void {
    this.#stop.abort();
  }

  sleep(ms: number): Promise<void> {
    return this.#clock.sleep(ms, this.#stop.signal);
  }

  /** Waits for something for as long as anybody is there for whom. */
  whilePresent(over: Promise<unknown>, caller: Presence): Promise<void> {
    const { signal } = this.#stop;
    return new Promise((resolve) => {
      const end = () => {
        caller.offLeave(end);
        signal.removeEventListener("abort", end);
        resolve();
      };
      if (caller.gone || signal.aborted) return resolve();
      caller.onLeave(end);
      signal.addEventListener("abort", end);
      over.then(end, end);
    });
  }

  /** Waits for something until a moment. */
  async until(over: Promise<unknown>, untilMs: number): Promise<void> {
    const isOver = new AbortController();
    await Promise.race([over, sleepUnless(this.#clock, Math.max(0, untilMs - this.nowMs), [isOver.signal, this.#stop.signal])]);
    isOver.abort();
  }

  /** Waits for the answer to a sending. */
  async flightEnded(sending: Sending, isOver: () => boolean): Promise<void> {
    while (sending.endedMs === undefined && !this.isStopped && !isOver()) await this.sleep(flightLookMs);
  }
}
