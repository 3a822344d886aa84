import { Deadline, nowMs } from "../core/clock.ts";
import { leavingsRead } from "../core/loop-turns.ts";
import { standstillBeatMs, standstillLateMs } from "./limits.ts";

/**
 * Tells how old bytes that are read now may be. If the process stood still (stopped, frozen, waiting for its disk), bytes lay in the kernel
 * meanwhile, and nothing of them says for how long. An overdue heartbeat does: they came after the one before.
 *
 * A stop of the monotonic clock as well, of a paused virtual machine or a box asleep, isn't seen.
 */
export class Standstill {
  /** The last moment at which everything that had come was known to be read. */
  #aliveMs = nowMs();
  readonly #next = new Deadline(() => this.#beat());
  readonly #beatMs: number;
  #isOver = false;

  /** @param beatMs Milliseconds between two heartbeats. */
  constructor(beatMs = standstillBeatMs) {
    this.#beatMs = beatMs;
  }

  start(): void {
    this.#alive();
  }

  stop(): void {
    this.#isOver = true;
    this.#next.dispose();
  }

  /** The earliest moment at which bytes that are read now can have come. */
  earliestMs(now: number): number {
    return this.isLate(now) ? this.#aliveMs : now;
  }

  /** True if the process stood still, and what lay in the kernel may not be read yet. */
  isLate(now: number): boolean {
    return now - this.#aliveMs > this.#beatMs + standstillLateMs;
  }

  #beat(): void {
    // A timer may fire before bytes that lie in the kernel are read.
    if (this.isLate(nowMs())) void leavingsRead().then(() => this.#alive());
    else this.#alive();
  }

  #alive(): void {
    if (this.#isOver) return;
    this.#aliveMs = nowMs();
    this.#next.set(this.#aliveMs + this.#beatMs, this.#aliveMs);
  }
}
