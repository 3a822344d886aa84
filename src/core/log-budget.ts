import { Deadline, nowMs } from "./clock.ts";

/**
 * Limits the log's lines of one kind. Lines that anybody can cause at will (requests that are refused, bytes that are noise) must neither
 * fill a disk or wear out an SD card, nor push lines that matter out of a journal that keeps so many bytes. So the first ones are written,
 * then some a second; the others are counted, and the latest of them is kept.
 */

/** Milliseconds after which left-out lines are reported, if nothing of their kind is written before. */
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

  /** @param write Writes a record into the log, with the count of its kind that was left out before it. */
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

  /** Writes the latest of the records that were left out, and the count of the others. */
  tell(): void {
    const latest = this.#latest;
    if (latest !== undefined) this.#put(latest, this.#leftOut - 1);
  }

  /** Writes the latest left-out record, when nothing more will come. */
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

  /** @param kindsMax How many kinds have a budget of their own; later ones share one. */
  constructor(write: (record: T, leftOut: number) => void, kindsMax: number = Number.POSITIVE_INFINITY) {
    this.#write = write;
    this.#kindsMax = kindsMax;
  }

  /** Writes a record of a kind, or leaves it out. */
  add(kind: string, size: BudgetSize, record: T): void {
    this.#of(kind, size).add(record);
  }

  /** Writes the latest left-out record of each kind, when nothing more will come. */
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
