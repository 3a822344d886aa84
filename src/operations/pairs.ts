import type { SentRecord } from "../journal/record.ts";

/** How far a receipt may be from its payment, in milliseconds: a till prints it at once, or once its operator has seen to the printer. */
export const pairWithinMs = 10 * 60_000;

/** A payment, or the part of a receipt that no drawer took. */
export interface Side {
  readonly sent: SentRecord;
  readonly counts: "sold" | "refunded";
  /** In minor units, as the record has it. */
  readonly amount: string | undefined;
  /** The payment's number, as its answer had it or the receipt names it. */
  readonly rrn: string | undefined;
  /** Whether it was done isn't known: it is told of as that. */
  readonly isDoubted?: boolean;
}

/** Pairs payments with their receipts, by amount and the number that a receipt names, otherwise by amount and time. Both are put in their order. */
export function pairsOf(payments: Side[], receipts: Side[]) {
  for (const sides of [payments, receipts]) sides.sort((one, other) => one.sent.timeMs - other.sent.timeMs);
  const paired = new Set<Side>();
  const pairBy = (
    ones: readonly Side[],
    others: readonly Side[],
    nameOf: (side: Side) => string | undefined,
    fits: (one: Side, other: Side) => boolean = () => true,
  ): number => {
    const named = new Map<string | undefined, Side[]>();
    for (const each of ones) {
      if (paired.has(each)) continue;
      if (named.get(nameOf(each))?.push(each) === undefined) named.set(nameOf(each), [each]);
    }
    named.delete(undefined);
    const before = paired.size;
    for (const other of others) {
      const same = paired.has(other) ? [] : (named.get(nameOf(other)) ?? []);
      const at = same.findIndex((each) => fits(each, other));
      for (const one of at < 0 ? [] : same.splice(at, 1)) paired.add(one).add(other);
    }
    return (paired.size - before) / 2;
  };
  const ofNumber = ({ counts, amount, rrn }: Side) => rrn && `${counts} ${amount} ${rrn}`;
  const ofAmount = ({ counts, amount }: Side) => `${counts} ${amount}`;
  const sure = (sides: readonly Side[]) => sides.filter(({ isDoubted }) => isDoubted !== true);
  const byRrn = pairBy(sure(payments), sure(receipts), ofNumber);
  const isNear = ({ sent, rrn }: Side, other: Side) =>
    (rrn === undefined || other.rrn === undefined) && Math.abs(sent.timeMs - other.sent.timeMs) <= pairWithinMs;
  const byAmount = pairBy(sure(payments), sure(receipts), ofAmount, isNear);
  // What is left may be paired with what is in doubt, which isn't counted, and is told of by itself.
  pairBy(payments, receipts, ofNumber);
  pairBy(payments, receipts, ofAmount, isNear);
  // A sale without a receipt that was taken back under its own key needs none.
  const those = (counted: Side["counts"]) => payments.filter(({ counts }) => counts === counted);
  pairBy(those("refunded"), those("sold"), ({ sent: { service, key }, amount }) => key && [service, key, amount].join("\n"));
  const left = (sides: readonly Side[]) => sure(sides).flatMap((each) => (paired.has(each) ? [] : [each.sent]));
  return { byRrn, byAmount, payments: left(payments), receipts: left(receipts) };
}
