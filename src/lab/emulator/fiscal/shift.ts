import type { JsonObject } from "../../../core/json-object.ts";
import { zeroPadded } from "../answer.ts";
import type { DocumentKind, FiscalDocument } from "./document.ts";
import { nothingPaid, type PaidByKind } from "./payments.ts";
import { addVat, noVat, type VatByRate } from "./vat.ts";

/** The shift of the emulated fiscal service (Shift). Its sums are computed from its documents. */
export interface FiscalShift extends JsonObject {
  id: bigint;
  /** yyyy-MM-dd HH:mm:ss */
  openedAt: string;
  open: boolean;
}

/** The first shift. A shift is open from the start, so that a first sale needs nothing else. */
export const firstShift = (now: string): FiscalShift => ({ id: 1n, openedAt: now, open: true });

/** The fields that every answer about a shift begins with. */
export const shiftFields = ({ id, openedAt }: FiscalShift) => ({ shiftID: id, shiftOpenAt: openedAt });

export const fiscalShiftId = ({ id }: FiscalShift) => `EMUS${zeroPadded(id, 6)}`;

/** Sums of documents, by kind of document (Shift metrics). All sums in minor units. */
export type ShiftTotals = Readonly<Record<DocumentKind, ShiftTotal>>;

interface ShiftTotal {
  readonly count: bigint;
  readonly sum: bigint;
  readonly paid: PaidByKind;
  readonly vat: VatByRate;
}

const nothing: ShiftTotal = { count: 0n, sum: 0n, paid: nothingPaid, vat: noVat };

export const noTotals: ShiftTotals = { sale: nothing, refund: nothing, deposit: nothing, withdraw: nothing };

/** The totals with documents added to them. */
export function addToTotals(totals: ShiftTotals, documents: Iterable<FiscalDocument>): ShiftTotals {
  const sums = { ...totals };
  for (const { kind, sum, payments, vat } of documents) {
    const before = sums[kind];
    sums[kind] = {
      count: before.count + 1n,
      sum: before.sum + sum,
      paid: addPaid(before.paid, payments.paid),
      vat: addVat(before.vat, vat),
    };
  }
  return sums;
}

function addPaid(one: PaidByKind, other: PaidByKind): PaidByKind {
  return {
    cash: one.cash + other.cash,
    cashless: one.cashless + other.cashless,
    credit: one.credit + other.credit,
    bonuses: one.bonuses + other.bonuses,
    prepayment: one.prepayment + other.prepayment,
  };
}

/** The cash that a document puts into the drawer; negative if it takes some out. */
export function cashOf({ kind, payments }: Pick<FiscalDocument, "kind" | "payments">): bigint {
  return kind === "sale" || kind === "deposit" ? payments.paid.cash : -payments.paid.cash;
}

/** The totals as the metrics show them. */
export function totalsFields({ sale, refund, deposit, withdraw }: ShiftTotals, currency: string): JsonObject {
  return {
    ...totalFields("sale", sale, currency),
    depositCount: deposit.count,
    depositSum: deposit.sum,
    withdrawCount: withdraw.count,
    withdrawSum: withdraw.sum,
    ...totalFields("moneyBack", refund, currency),
    currency_name: currency,
  };
}

function totalFields(name: "sale" | "moneyBack", { count, sum, paid, vat }: ShiftTotal, currency: string): JsonObject {
  return {
    [`${name}Count`]: count,
    [`${name}Sum`]: sum,
    [`${name}CashSum`]: paid.cash,
    [`${name}CashlessSum`]: paid.cashless,
    [`${name}CreditSum`]: paid.credit,
    [`${name}BonusSum`]: paid.bonuses,
    [`${name}VatAmounts`]: vat.map((each) => ({ ...each, currency_name: currency })),
  };
}
