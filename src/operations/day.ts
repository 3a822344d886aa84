import { contractOf, contracts, routeOf } from "../contract/contracts.ts";
import { closingRoutes, isDone, settlingRulesOf } from "../contract/settling.ts";
import type { ContractName } from "../core/call.ts";
import { isGoodEnd } from "../core/followed.ts";
import type { JournalSnapshot } from "../journal/reader.ts";
import { isUnknown, type SentRecord } from "../journal/record.ts";
import { replay } from "../journal/replay.ts";
import { pairsOf, pairWithinMs, type Side } from "./pairs.ts";
import { hasLeft } from "./recall.ts";
import {
  doneAgain,
  endingOf,
  isUnclear,
  operationsIn,
  recordedCurrency,
  type Sendings,
  type SentIndex,
  sentIn,
  underKey,
} from "./recorded-end.ts";

/**
 * A day of a box, as its journal proves it: what was sold and refunded, what was asked for and not done, what is unknown, and what doesn't
 * fit together. Nothing is asked and nothing is guessed: what a record doesn't have is not recorded.
 */

export const dayColumns = ["sold", "refunded", "notDone", "unknown"] as const;

/** Operations, and their amounts in minor units. */
export interface DaySum {
  count: number;
  sum: bigint;
  /** How many of them have no whole amount in their record, and so aren't in the sum. */
  unrecorded: number;
}

/** What one service did in one currency; undefined if the records have none. */
export interface DayRow extends Readonly<Record<(typeof dayColumns)[number], DaySum>> {
  readonly service: string;
  readonly currency: string | undefined;
}

/** What is left for a person to do. */
export interface DayOpen {
  readonly is: "unknown" | "unclear" | "sent again a day later" | "payment without a receipt" | "receipt without a payment";
  readonly sent: SentRecord;
  readonly why: string;
  /** The command or the look that ends it. */
  readonly todo: string;
}

export interface Day {
  readonly rows: readonly DayRow[];
  readonly open: readonly DayOpen[];
  readonly inFlight: number;
  /** Services that the configuration hasn't got any more: of what contract they were isn't recorded, so they are in no sum. */
  readonly uncounted: readonly string[];
  /** Payments that have their receipt, by what that is known; undefined if the box hasn't both, or amounts of some aren't recorded. */
  readonly paired: { readonly byRrn: number; readonly byAmount: number } | undefined;
  /** How many payments and receipts have no amount. */
  readonly unpairable: number;
  /** When the oldest and the newest record were written. */
  readonly held: readonly [number, number] | undefined;
  /** Until when records of the day are overwritten or missing; undefined if none are. */
  readonly lackingUntilMs: number | undefined;
}

export interface DayOptions {
  readonly sinceMs: number;
  readonly untilMs: number;
  /** The only service that is told of. */
  readonly service?: string | undefined;
  /** Those of the configuration; undefined if none can be read. */
  readonly services: Readonly<Record<string, { readonly contract: ContractName }>> | undefined;
}

export function dayOf(snapshot: JournalSnapshot, { sinceMs, untilMs, service, services }: DayOptions): Day {
  const { operations, missingMs, overwrittenMs } = replay(snapshot);
  const index = sentIn(snapshot.records);
  const added: Added[] = [];
  const open: DayOpen[] = [];
  const [payments, receipts]: [Side[], Side[]] = [[], []];
  const used = new Set(Object.values(services ?? {}).map(({ contract }) => contract));
  const uncounted = new Set<string>();
  let inFlight = 0;
  const isTold = ({ timeMs, service: name }: SentRecord) => timeMs >= sinceMs && timeMs < untilMs && name === (service ?? name);
  for (const { sendings, earlier } of operationsIn(operations, (of) => contractOf(of, services))) {
    const [{ sent }] = sendings;
    if (sent.timeMs < sinceMs - pairWithinMs || sent.timeMs >= untilMs + pairWithinMs) continue;
    const contract = contractOf(sent.service, services);
    const rules = contract && settlingRulesOf(contract, sent.route);
    const counts = rules?.takesBack === true && !hasSale(sent, index, contract) ? undefined : rules?.counts;
    const how = { index, isWritten: snapshot.isWritten, contractOf: () => contract };
    const { result, proof = "", todo = "" } = endOf(sendings, how);
    if (services === undefined && contract !== undefined) used.add(contract);
    const isGood = isDone(result, rules);
    const isDoubted = result === "unknown" || result === "in flight";
    if ((isGood || isDoubted) && counts !== undefined) {
      const rrn = sendings.find(({ settled }) => settled?.rrn)?.settled?.rrn;
      if (contract !== "fiscal") payments.push({ sent, counts, amount: sent.amount, rrn, isDoubted });
      // Of cash no terminal knows
      else if (sent.cashless !== "0") receipts.push({ sent, counts, amount: sent.cashless, rrn: sent.rrn, isDoubted });
    }
    if (!isTold(sent) || result === undefined) continue;
    if (result === "in flight") inFlight++;
    if (contract === undefined) uncounted.add(sent.service);
    const isMoney = contract && routeOf(contracts[contract], sent.route)?.effect === "money";
    // What an abort was to stop is open itself, as long as it is.
    const hasTarget = sent.route === "/abort" && underKey(sent, index).some(({ record }) => record.route !== sent.route);
    const isOpen =
      isUnclear(result, rules) ||
      (result === "unknown" && !hasTarget && (isMoney || closingRoutes.has(sent.route) || sendings.some(isUnknown)));
    if (isOpen) open.push({ is: isUnclear(result, rules) ? "unclear" : "unknown", sent, why: proof, todo });
    const again = doneAgain(result, earlier && endOf(earlier, how).result);
    if (again !== undefined) open.push({ is: "sent again a day later", sent, why: again.proof, todo: again.todo });
    if (counts === undefined || result === "in flight") continue;
    const isWhole = /^-?\d+$/.test(sent.amount ?? "");
    const sum = { count: 1, sum: isWhole ? BigInt(sent.amount ?? 0) : 0n, unrecorded: isWhole ? 0 : 1 };
    const column = isGood ? counts : isOpen ? "unknown" : "notDone";
    added.push({ service: sent.service, currency: recordedCurrency(sent, index), [column]: sum });
  }
  const isBoth = used.has("bank") && used.has("fiscal");
  const unpairable = isBoth ? [...payments, ...receipts].filter(({ amount }) => amount === undefined).length : 0;
  const pairs = isBoth && unpairable === 0 ? pairsOf(payments, receipts) : undefined;
  for (const sent of (pairs?.payments ?? []).filter(isTold)) open.push({ is: "payment without a receipt", sent, ...alone });
  for (const sent of (pairs?.receipts ?? []).filter(isTold)) open.push({ is: "receipt without a payment", sent, ...alone });
  const [first, last] = [snapshot.records[0], snapshot.records.at(-1)];
  const lackingMs = Math.max(missingMs, overwrittenMs);
  return {
    rows: rowsTogether(added),
    open: open.sort((one, other) => one.sent.timeMs - other.sent.timeMs),
    ...{ inFlight, uncounted: [...uncounted] },
    paired: pairs && { byRrn: pairs.byRrn, byAmount: pairs.byAmount },
    unpairable,
    held: first && last && [first.record.timeMs, last.record.timeMs],
    lackingUntilMs: lackingMs > sinceMs ? lackingMs : undefined,
  };
}

/** False of a /cancel that took back a reservation or a refund, as far as the records say: no sale. */
function hasSale(sent: SentRecord, index: SentIndex, contract: ContractName | undefined): boolean {
  const under = underKey(sent, index).filter(({ record }) => record.route !== sent.route);
  const counted = under.map(({ record }) => contract && settlingRulesOf(contract, record.route)?.counts);
  return under.length === 0 || counted.includes("sold");
}

const alone = {
  why: "nothing of its amount names it, or was made within 10 minutes of it",
  todo: "compare the reports of both terminals",
} as const;

type Added = Pick<DayRow, "service" | "currency"> & Partial<DayRow>;

/** All that operations or other rows add, by service and currency. */
export function rowsTogether(all: readonly Added[]): readonly DayRow[] {
  const rows = new Map<string, DayRow>();
  for (const { service, currency, ...sums } of all) {
    const name = `${service} ${currency}`;
    const none = () => ({ count: 0, sum: 0n, unrecorded: 0 });
    const row = rows.get(name) ?? { service, currency, sold: none(), refunded: none(), notDone: none(), unknown: none() };
    rows.set(name, row);
    for (const column of dayColumns) {
      row[column].count += sums[column]?.count ?? 0;
      row[column].sum += sums[column]?.sum ?? 0n;
      row[column].unrecorded += sums[column]?.unrecorded ?? 0;
    }
  }
  return [...rows].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
}

/** How an operation ended, by all its records together; `undefined` if nothing of it was sent. */
function endOf(sendings: Sendings, how: Parameters<typeof endingOf>[1]): Partial<ReturnType<typeof endingOf>> {
  const [{ settled, ending }] = sendings;
  const recorded = settled?.result ?? ending?.end;
  // As the judge would say, and most of a day is so
  if (sendings.length === 1 && recorded !== undefined && (recorded === "declined" || isGoodEnd(recorded)))
    return { result: recorded };
  const [first, ...others] = sendings.filter(hasLeft);
  if (first !== undefined) return endingOf([first, ...others], how);
  return sendings.some((each) => each.ending?.begun === false) ? { result: "failed" } : {};
}
