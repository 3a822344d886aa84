import { Deadline, nowMs } from "../core/clock.ts";
import { everythingRead } from "../core/loop-turns.ts";
import { standstillBeatMs, standstillLateMs } from "./limits.ts";

/**
 * Tells how old what is read now may be. Where the process stood still (stopped, frozen, waiting for its disk), bytes lay in the kernel
 * meanwhile, and nothing of them says for how long. A heartbeat that is overdue does: they came after the one before.
 *
 * What stops the monotonic clock as well, a paused virtual machine or a box asleep, isn't seen.
 */
export class Standstill {
  /** When all that had come was read, the last time that this was known. */
  #aliveMs = nowMs();
  readonly #next = new Deadline(() => this.#beat());
  #isOver = false;

  start(): void {
    this.#alive();
  }

  stop(): void {
    this.#isOver = true;
    this.#next.dispose();
  }

  /** When bytes that are read now came, at the earliest. */
  earliestMs(now: number): number {
    return this.#isLate(now) ? this.#aliveMs : now;
  }

  #beat(): void {
    // A timer may come ahead of what lies in the kernel.
    if (this.#isLate(nowMs())) void everythingRead().then(() => this.#alive());
    else this.#alive();
  }

  #isLate(now: number): boolean {
    return now - this.#aliveMs > standstillBeatMs + standstillLateMs;
  }

  #alive(): void {
    if (this.#isOver) return;
    this.#aliveMs = nowMs();
    this.#next.set(this.#aliveMs + standstillBeatMs, this.#aliveMs);
  }
}
