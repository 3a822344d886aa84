import type { JsonObject } from "../../../core/json-object.ts";
import type { BankWorld } from "./terminals.ts";

/** The batches of the terminals: the sums for /xreport and /close-shift, from one /close-shift to the next. */

/** The kinds of operations in a batch, in the order in which they are reported. */
const batchKinds = ["sale", "refund", "cancel", "preauth", "confirm"] as const;

export interface BatchTotal {
  readonly kind: (typeof batchKinds)[number];
  readonly currency: string;
  readonly count: bigint;
  /** Minor units. May be beyond 64 bits, as a sum of amounts. */
  readonly sum: bigint;
}

export interface BatchTotals extends JsonObject {
  /** Counted from 1, for each terminal. */
  readonly batch: bigint;
  /** Totals for each kind and currency that occurred, in a fixed order. */
  readonly totals: readonly BatchTotal[];
}

/** The open batch of a terminal. */
export interface SavedBatch extends BatchTotals {
  readonly terminal: bigint;
}

export class Batches {
  readonly #world: BankWorld;
  readonly #open: Map<bigint, BatchTotals>;

  constructor(world: BankWorld, saved: readonly SavedBatch[] = []) {
    this.#world = world;
    this.#open = new Map(saved.map(({ terminal, ...totals }) => [terminal, totals]));
  }

  /** The batch of a terminal that is open now. */
  of(terminal: bigint): BatchTotals {
    return this.#open.get(terminal) ?? { batch: 1n, totals: [] };
  }

  /** @param route The operation's: "/sale", to be counted as a sale. */
  add(terminal: bigint, route: string, currency: string, amount: bigint): void {
    const kind = batchKinds.find((each) => `/${each}` === route);
    if (kind === undefined) throw new RangeError(`Cannot count ${route} in a batch: it is not a card operation`);
    const { batch, totals } = this.of(terminal);
    const same = (each: BatchTotal) => each.kind === kind && each.currency === currency;
    const { count, sum } = totals.find(same) ?? { count: 0n, sum: 0n };
    const changed = { kind, currency, count: count + 1n, sum: sum + amount };
    this.#open.set(terminal, { batch, totals: [...totals.filter((each) => !same(each)), changed].sort(orderIn(this.#world)) });
  }

  /** Begins the next batch of a terminal. */
  close(terminal: bigint): void {
    this.#open.set(terminal, { batch: this.of(terminal).batch + 1n, totals: [] });
  }

  saved(): readonly SavedBatch[] {
    return [...this.#open].map(([terminal, totals]) => ({ terminal, ...totals }));
  }
}

/** The order of a batch's totals: by kind, then by currency. */
function orderIn({ currencies }: BankWorld): (one: BatchTotal, other: BatchTotal) => number {
  const names = Object.keys(currencies);
  return (one, other) =>
    batchKinds.indexOf(one.kind) - batchKinds.indexOf(other.kind) ||
    names.indexOf(one.currency) - names.indexOf(other.currency);
}
