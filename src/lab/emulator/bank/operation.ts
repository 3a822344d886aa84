import { type EmulatedOperation, isApproved } from "../operations.ts";
import type { BatchTotals } from "./batches.ts";

/** The bank's memory of an operation, and how operations hang together. */

/** Card operations, by route; with the routes that each may refer to by rrn, if it needs an original. */
export const originalsOf = {
  "/sale": undefined,
  "/preauth": undefined,
  "/confirm": ["/preauth"],
  "/cancel": ["/sale", "/preauth", "/confirm", "/refund"],
  "/refund": ["/sale", "/confirm"],
} as const satisfies Readonly<Record<string, readonly string[] | undefined>>;

export type FinancialRoute = keyof typeof originalsOf;
export type ReportRoute = "/xreport" | "/close-shift";

interface BankOperationBase extends EmulatedOperation {
  /** undefined: nobody can ask for the operation. */
  readonly payId: string | undefined;
  readonly terminal: bigint;
  readonly merchant: bigint;
  /** True if an /abort is answered with success, and stops nothing. */
  readonly abortTooLate: boolean;
}

export interface CardOperation extends BankOperationBase {
  readonly route: FinancialRoute;
  readonly rrn: string;
  /** Minor units, as are the others. */
  readonly amount: bigint;
  readonly tips: bigint;
  readonly cashback: bigint;
  readonly currency: string;
  /** The number of the operation that this one refers to; that one may be forgotten by now. */
  readonly original: bigint | undefined;
}

export interface ReportOperation extends BankOperationBase {
  readonly route: ReportRoute;
  /** The totals that a report gives, once it is approved. */
  totals: BatchTotals | undefined;
}

export type BankOperation = CardOperation | ReportOperation;

export const isCardOperation = (operation: BankOperation): operation is CardOperation => "rrn" in operation;

/** The names that operations are found by. */
export const operationNames = {
  /** The idempotency key: seen in the field, /cancel carries the pay_id of the operation it cancels. */
  key: (route: string, payId: string) => `${route} ${payId}`,
  payId: (payId: string) => `pay_id ${payId}`,
  rrn: (rrn: string) => `rrn ${rrn}`,
};

export function bankOperationNames(operation: BankOperation): readonly string[] {
  const { payId, route } = operation;
  const own = payId === undefined ? [] : [operationNames.key(route, payId), operationNames.payId(payId)];
  return isCardOperation(operation) ? [...own, operationNames.rrn(operation.rrn)] : own;
}

/**
 * How much of an approved operation is left to be confirmed, refunded or cancelled. The contract says nothing of it; as acquirers do it, a
 * preauth is confirmed once, refunds add up to the amount at most, and a cancel takes the operation away for good, even if it gave back
 * only part. A cancelled refund counts for nothing.
 */
export function remainingAmount(original: CardOperation, operations: Iterable<BankOperation>): bigint {
  const later = [...operations].filter(isCardOperation).filter((each) => each.original !== undefined && isApproved(each));
  const undone = new Map(later.filter(({ route }) => route === "/cancel").map((each) => [each.original, each.amount]));
  if (undone.has(original.number)) return 0n;
  let left = original.amount;
  for (const each of later.filter((link) => link.original === original.number)) {
    if (each.route === "/confirm") return 0n;
    left -= each.amount - (undone.get(each.number) ?? 0n);
  }
  return left;
}
