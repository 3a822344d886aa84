import type { JsonObject } from "../../../core/json-object.ts";
import { zeroPadded } from "../answer.ts";
import type { StateReader } from "../state-reader.ts";
import { type DocumentKind, documentKinds, type FiscalDocument, restoredTime } from "./document.ts";
import { nothingPaid, type PaidByKind } from "./payments.ts";
import { fiscalInt64Max, int32Max } from "./request.ts";
import { paymentKinds } from "./shop.ts";
import { addVat, noVat, restoredVat, type VatByRate, vatEntries } from "./vat.ts";

/** The shift of the emulated fiscal service (Shift). Its sums are computed from its documents. */
export class FiscalShift {
  #id: bigint;
  #openedAt: string;
  #open: boolean;

  private constructor(id: bigint, openedAt: string, open: boolean) {
    this.#id = id;
    this.#openedAt = openedAt;
    this.#open = open;
  }

  /** The first shift. A shift is open from the start, so that a first sale needs nothing else. */
  static first(now: string): FiscalShift {
    return new FiscalShift(1n, now, true);
  }

  static restored(saved: StateReader): FiscalShift {
    return new FiscalShift(saved.at("id").integer(1n, int32Max), restoredTime(saved.at("openedAt")), saved.at("open").flag());
  }

  get id(): bigint {
    return this.#id;
  }

  get open(): boolean {
    return this.#open;
  }

  /** When it was opened, yyyy-MM-dd HH:mm:ss. */
  get openedAt(): string {
    return this.#openedAt;
  }

  /** The next shift opens. */
  begin(now: string): void {
    this.#id += 1n;
    this.#openedAt = now;
    this.#open = true;
  }

  end(): void {
    this.#open = false;
  }

  /** The fields that every answer about a shift begins with. */
  get fields(): JsonObject {
    return { shiftID: this.#id, shiftOpenAt: this.#openedAt };
  }

  get fiscalId(): string {
    return `EMUS${zeroPadded(this.#id, 6)}`;
  }

  saved(): JsonObject {
    return { id: this.#id, openedAt: this.#openedAt, open: this.#open };
  }
}

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
    [`${name}VatAmounts`]: vatEntries(vat, { currency_name: currency }),
  };
}

export function savedShiftTotals(totals: ShiftTotals): JsonObject {
  const saved = ({ count, sum, paid, vat }: ShiftTotal) => ({ count, sum, paid, vat: vatEntries(vat) });
  return Object.fromEntries(documentKinds.map((kind) => [kind, saved(totals[kind])]));
}

export function restoredShiftTotals(saved: StateReader): ShiftTotals {
  return {
    sale: restoredTotal(saved.at("sale")),
    refund: restoredTotal(saved.at("refund")),
    deposit: restoredTotal(saved.at("deposit")),
    withdraw: restoredTotal(saved.at("withdraw")),
  };
}

function restoredTotal(saved: StateReader): ShiftTotal {
  const paid = { ...nothingPaid };
  for (const kind of paymentKinds) paid[kind] = saved.at("paid").at(kind).integer(0n, fiscalInt64Max);
  return {
    count: saved.at("count").integer(0n),
    sum: saved.at("sum").integer(0n, fiscalInt64Max),
    paid,
    vat: restoredVat(saved.at("vat")),
  };
}
