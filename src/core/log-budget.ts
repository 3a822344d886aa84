import { Deadline, nowMs } from "./clock.ts";

/**
 * How many lines of one kind the log takes. What anybody can cause at will (requests that are refused, bytes that are noise) must
 * neither fill a disk or wear out an SD card, nor push the lines that matter out of a journal that keeps so many bytes. So the
 * first ones are written, then some a second; of the others their number is, with the latest of them.
 */

/** Milliseconds after which what was left out is reported, if nothing of its kind is written before. */
const tellMs = 10_000;

export interface BudgetSize {
  /** Lines that may come at once. */
  readonly burst: number;
  /** Lines a second from then on. */
  readonly perSecond: number;
}

export class LogBudget<T> {
  readonly #size: BudgetSize;
  readonly #write: (record: T, leftOut: number) => void;
  readonly #deadline = new Deadline(() => this.tell());
  #left: number;
  #refilledMs = nowMs();
  #leftOut = 0;
  #latest: T | undefined;

  /** @param write Writes a record into the log, and how many of its kind before it were left out. */
  constructor(size: BudgetSize, write: (record: T, leftOut: number) => void) {
    this.#size = size;
    this.#left = size.burst;
    this.#write = write;
  }

  /** Writes a record, or leaves it out. */
  add(record: T): void {
    const now = nowMs();
    const { burst, perSecond } = this.#size;
    this.#left = Math.min(burst, this.#left + ((now - this.#refilledMs) / 1_000) * perSecond);
    this.#refilledMs = now;
    if (this.#left >= 1) {
      this.#left--;
      this.#put(record, this.#leftOut);
      return;
    }
    if (this.#leftOut++ === 0) this.#deadline.set(now + tellMs, now);
    this.#latest = record;
  }

  /** Writes the latest of those that were left out, and how many more there were. */
  tell(): void {
    const latest = this.#latest;
    if (latest !== undefined) this.#put(latest, this.#leftOut - 1);
  }

  /** The same, when nothing more will come. */
  end(): void {
    this.tell();
    this.#deadline.dispose();
  }

  #put(record: T, leftOut: number): void {
    this.#leftOut = 0;
    this.#latest = undefined;
    this.#deadline.clear();
    this.#write(record, leftOut);
  }
}

/** The budgets of many kinds. */
export class LogBudgets<T> {
  readonly #write: (record: T, leftOut: number) => void;
  readonly #kindsMax: number;
  readonly #budgets = new Map<string, LogBudget<T>>();

  /** @param kindsMax How many kinds have a budget of their own; those that come later share one. */
  constructor(write: (record: T, leftOut: number) => void, kindsMax: number = Number.POSITIVE_INFINITY) {
    this.#write = write;
    this.#kindsMax = kindsMax;
  }

  /** Writes a record of a kind, or leaves it out. */
  add(kind: string, size: BudgetSize, record: T): void {
    this.#of(kind, size).add(record);
  }

  /** Writes the latest of what was left out of each kind, when nothing more will come. */
  end(): void {
    for (const budget of this.#budgets.values()) budget.end();
  }

  #of(kind: string, size: BudgetSize): LogBudget<T> {
    const known = this.#budgets.get(kind);
    if (known !== undefined) return known;
    if (this.#budgets.size >= this.#kindsMax && kind !== "") return this.#of("", size);
    const budget = new LogBudget(size, this.#write);
    this.#budgets.set(kind, budget);
    return budget;
  }
}
