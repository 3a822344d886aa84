import type { JsonObject } from "../core/json-object.ts";
import { currency, type DocumentKind, documentKinds, type FiscalDocument } from "./fiscal-document.ts";
import { kinds, nothingPaid, type Paid } from "./fiscal-payments.ts";
import { int64Max } from "./fiscal-request.ts";
import { addVat, noVat, restoredVat, type Vat, vatEntries } from "./fiscal-vat.ts";
import type { Saved } from "./saved.ts";

/** What documents add up to, by kind of document (Shift metrics). All sums in minor units. */
export type Totals = Readonly<Record<DocumentKind, Total>>;

interface Total {
  readonly count: bigint;
  readonly sum: bigint;
  readonly paid: Paid;
  readonly vat: Vat;
}

const nothing: Total = { count: 0n, sum: 0n, paid: nothingPaid, vat: noVat };

export const noTotals: Totals = { sale: nothing, refund: nothing, deposit: nothing, withdraw: nothing };

/** The totals with documents added to them. */
export function add(totals: Totals, documents: Iterable<FiscalDocument>): Totals {
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

function addPaid(one: Paid, other: Paid): Paid {
  return {
    cash: one.cash + other.cash,
    cashless: one.cashless + other.cashless,
    credit: one.credit + other.credit,
    bonuses: one.bonuses + other.bonuses,
    prepayment: one.prepayment + other.prepayment,
  };
}

/** What a document puts into the drawer; negative for what it takes out of it. */
export function cashOf({ kind, payments }: Pick<FiscalDocument, "kind" | "payments">): bigint {
  return kind === "sale" || kind === "deposit" ? payments.paid.cash : -payments.paid.cash;
}

/** As the metrics show them. */
export function shownTotals({ sale, refund, deposit, withdraw }: Totals): JsonObject {
  return {
    ...shownTotal("sale", sale),
    depositCount: deposit.count,
    depositSum: deposit.sum,
    withdrawCount: withdraw.count,
    withdrawSum: withdraw.sum,
    ...shownTotal("moneyBack", refund),
    currency_name: currency,
  };
}

function shownTotal(name: "sale" | "moneyBack", { count, sum, paid, vat }: Total): JsonObject {
  return {
    [`${name}Count`]: count,
    [`${name}Sum`]: sum,
    [`${name}CashSum`]: paid.cash,
    [`${name}CashlessSum`]: paid.cashless,
    [`${name}CreditSum`]: paid.credit,
    [`${name}BonusSum`]: paid.bonuses,
    [`${name}VatAmounts`]: vatEntries(vat, { currency_name: currency }),
  };
}

export function savedTotals(totals: Totals): JsonObject {
  const saved = ({ count, sum, paid, vat }: Total) => ({ count, sum, paid, vat: vatEntries(vat) });
  return Object.fromEntries(documentKinds.map((kind) => [kind, saved(totals[kind])]));
}

export function restoredTotals(saved: Saved): Totals {
  return {
    sale: restoredTotal(saved.at("sale")),
    refund: restoredTotal(saved.at("refund")),
    deposit: restoredTotal(saved.at("deposit")),
    withdraw: restoredTotal(saved.at("withdraw")),
  };
}

function restoredTotal(saved: Saved): Total {
  const paid = { ...nothingPaid };
  for (const kind of kinds) paid[kind] = saved.at("paid").at(kind).integer(0n, int64Max);
  return {
    count: saved.at("count").integer(0n),
    sum: saved.at("sum").integer(0n, int64Max),
    paid,
    vat: restoredVat(saved.at("vat")),
  };
}
