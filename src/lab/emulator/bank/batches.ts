import type { JsonObject } from "../../../core/json-object.ts";
import type { StateReader } from "../state-reader.ts";
import { type BankWorld, terminalsOf } from "./terminals.ts";

/** The batches of the terminals: the sums for /xreport and /close-shift, from one /close-shift to the next. */

/** The kinds of operations in a batch, in the order in which they are reported. */
export const batchKinds = ["sale", "refund", "cancel", "preauth", "confirm"] as const;

export interface BatchTotal {
  readonly kind: (typeof batchKinds)[number];
  readonly currency: string;
  readonly count: number;
  /** Minor units. May be beyond 64 bits, as a sum of amounts. */
  readonly sum: bigint;
}

export interface BatchTotals {
  /** Counted from 1, for each terminal. */
  readonly batch: number;
  /** Totals for each kind and currency that occurred, in a fixed order. */
  readonly totals: readonly BatchTotal[];
}

export class Batches {
  readonly #world: BankWorld;
  #open: ReadonlyMap<bigint, BatchTotals> = new Map();

  constructor(world: BankWorld) {
    this.#world = world;
  }

  /** The batch of a terminal that is open now. */
  of(terminal: bigint): BatchTotals {
    return this.#open.get(terminal) ?? { batch: 1, totals: [] };
  }

  /** @param route The operation's: "/sale", to be counted as a sale. */
  add(terminal: bigint, route: string, currency: string, amount: bigint): void {
    const kind = batchKinds.find((each) => `/${each}` === route);
    if (kind === undefined) throw new RangeError(`Cannot count ${route} in a batch: it is not a card operation`);
    const { batch, totals } = this.of(terminal);
    const same = (each: BatchTotal) => each.kind === kind && each.currency === currency;
    const { count, sum } = totals.find(same) ?? { count: 0, sum: 0n };
    const changed = { kind, currency, count: count + 1, sum: sum + amount };
    this.#set(terminal, { batch, totals: [...totals.filter((each) => !same(each)), changed].sort(orderIn(this.#world)) });
  }

  /** Begins the next batch of a terminal. */
  close(terminal: bigint): void {
    this.#set(terminal, { batch: this.of(terminal).batch + 1, totals: [] });
  }

  saved(): readonly JsonObject[] {
    return [...this.#open].map(([terminal, totals]) => ({ terminal, ...savedBatchTotals(totals) }));
  }

  /** The batches that `saved` gave. */
  static restored(saved: StateReader, world: BankWorld): Batches {
    const batches = new Batches(world);
    const terminals = terminalsOf(world);
    for (const each of saved.list(terminals.length)) {
      const terminal = each.at("terminal").integer(0n);
      if (!terminals.includes(terminal)) each.at("terminal").refuse(`must be one of ${terminals.join(", ")}`);
      batches.#set(terminal, restoredBatchTotals(each, world));
    }
    return batches;
  }

  #set(terminal: bigint, totals: BatchTotals): void {
    this.#open = new Map([...this.#open, [terminal, totals]]);
  }
}

/** The order of a batch's totals: by kind, then by currency. */
function orderIn({ currencies }: BankWorld): (one: BatchTotal, other: BatchTotal) => number {
  const names = [...currencies.keys()];
  return (one, other) =>
    batchKinds.indexOf(one.kind) - batchKinds.indexOf(other.kind) ||
    names.indexOf(one.currency) - names.indexOf(other.currency);
}

/** A batch's totals, as a saved state and a report show them. */
export function savedBatchTotals({ batch, totals }: BatchTotals): JsonObject {
  return {
    batch: BigInt(batch),
    totals: totals.map(({ kind, currency, count, sum }) => ({ kind, currency, count: BigInt(count), sum })),
  };
}

export function restoredBatchTotals(saved: StateReader, { currencies }: BankWorld): BatchTotals {
  const totals = saved.at("totals").list(batchKinds.length * currencies.size);
  return {
    batch: saved.at("batch").count(),
    totals: totals.map((each) => ({
      kind: each.at("kind").oneOf(batchKinds),
      currency: each.at("currency").oneOf([...currencies.keys()]),
      count: each.at("count").count(),
      sum: each.at("sum").integer(0n),
    })),
  };
}
