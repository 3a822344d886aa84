import type { JsonObject } from "../envelope/json.ts";
import { reference } from "./answer.ts";
import { currency, type DocumentKind, type FiscalDocument, timestamp } from "./fiscal-document.ts";

interface Total {
  count: number;
  sum: number;
  cash: number;
  cashless: number;
  credit: number;
  bonuses: number;
}

function nothing(): Record<DocumentKind, Total> {
  const total = (): Total => ({ count: 0, sum: 0, cash: 0, cashless: 0, credit: 0, bonuses: 0 });
  return { sale: total(), refund: total(), deposit: total(), withdraw: total() };
}

/** The shift of the emulated fiscal service and what was counted in it. Sums in minor units. */
export class FiscalShift {
  #id = 0;
  #openedAt = "";
  #open = false;
  #totals = nothing();
  /** What is in the drawer: it stays there from shift to shift. */
  #cash = 0;

  constructor(now: Date) {
    this.begin(now);
  }

  get open(): boolean {
    return this.#open;
  }

  /** Opens a shift; one that is open stays as it is. */
  begin(now: Date): JsonObject {
    if (!this.#open) {
      this.#id += 1;
      this.#openedAt = timestamp(now);
      this.#totals = nothing();
      this.#open = true;
    }
    return { shiftID: this.#id, fiscalID: this.#fiscalId(), shiftOpenAt: this.#openedAt };
  }

  end(): JsonObject {
    this.#open = false;
    return { ...this.metrics(), fiscalShiftID: this.#fiscalId(), fiscalShiftNum: String(this.#id) };
  }

  count(document: FiscalDocument): void {
    const total = this.#totals[document.kind];
    total.count += 1;
    for (const part of ["sum", "cash", "cashless", "credit", "bonuses"] as const) {
      total[part] += document[part];
    }
    this.#cash += document.kind === "sale" || document.kind === "deposit" ? document.cash : -document.cash;
  }

  state(): JsonObject {
    const isShiftOpen = String(this.#open);
    const shiftStatus = this.#open ? 1 : 2;
    return { shiftID: this.#id, isShiftOpen, shiftStatus, shiftOpenAt: this.#openedAt, cash: this.#cash };
  }

  metrics(): JsonObject {
    const { sale, refund, deposit, withdraw } = this.#totals;
    return {
      shiftID: this.#id,
      shiftOpenAt: this.#openedAt,
      cash: this.#cash,
      ...byPayment("sale", sale),
      depositCount: deposit.count,
      depositSum: deposit.sum,
      withdrawCount: withdraw.count,
      withdrawSum: withdraw.sum,
      ...byPayment("moneyBack", refund),
      currency_name: currency,
    };
  }

  #fiscalId(): string {
    return `EMUS${reference(this.#id, 6)}`;
  }
}

/** VAT isn't reckoned: the list is there, empty. */
function byPayment(name: "sale" | "moneyBack", total: Total): JsonObject {
  return {
    [`${name}Count`]: total.count,
    [`${name}Sum`]: total.sum,
    [`${name}CashSum`]: total.cash,
    [`${name}CashlessSum`]: total.cashless,
    [`${name}CreditSum`]: total.credit,
    [`${name}BonusSum`]: total.bonuses,
    [`${name}VatAmounts`]: [],
  };
}
