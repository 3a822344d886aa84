import type { JsonObject } from "../../../src/core/json-object.ts";

/** What the fiscal service should do, reckoned in the plainest way: a list of documents, and sums over it. */

export type Kind = "sale" | "refund" | "deposit" | "withdraw";

export interface Paid {
  readonly cash: bigint;
  readonly cashless: bigint;
  readonly credit: bigint;
  readonly bonuses: bigint;
}

export interface Asked {
  readonly kind: Kind;
  readonly key: number;
  readonly sum: bigint;
  readonly paid: Paid;
  /** The code for payments that don't fit the sum. */
  readonly wrongPayment: number | undefined;
  readonly parent: number | undefined;
}

interface Doc extends Asked {
  checks: number;
  /** The shift that it counts in; 0 while it is processing. */
  shift: number;
}

const cardFailures = new Map([
  [20, 8],
  [21, 8],
  [23, 23],
  [30, 8],
  [54, 8],
]);

export class FiscalModel {
  docs: Doc[] = [];
  shift = 1;
  open = true;
  readonly #rolledBack = new Set<string>();

  /** The code that a request for a document is answered with. */
  ask(asked: Asked): number {
    const { kind, key, sum, paid, wrongPayment } = asked;
    const receipt = kind === "sale" || kind === "refund";
    if (wrongPayment !== undefined) return wrongPayment;
    const known = this.doc(key);
    if (known !== undefined) {
      if (known.kind !== kind || (!receipt && known.sum !== sum)) return 4;
      return known.shift === 0 ? 44 : 0;
    }
    if (!this.open) return 6;
    const forbidden = this.#parentCode(asked);
    if (forbidden !== 0) return forbidden;
    const takes = kind === "refund" || kind === "withdraw";
    const promised = this.docs.filter((doc) => doc.shift === 0 && (doc.kind === "refund" || doc.kind === "withdraw"));
    if (takes && paid.cash > this.drawer() - total(promised, (doc) => doc.paid.cash)) return 4;
    return this.#begin(asked);
  }

  #parentCode({ parent, sum }: Asked): number {
    if (parent === undefined) return 0;
    const sale = this.doc(parent);
    if (sale?.kind !== "sale") return 9;
    if (sale.shift === 0) return 44;
    return sum > sale.sum - this.refunded(parent) ? 4 : 0;
  }

  #begin(asked: Asked): number {
    const ending = Number(asked.sum % 100n);
    const request = `${asked.kind} ${asked.key}`;
    const again = this.#rolledBack.delete(request);
    const keep = (checks: number, shift: number, code: number) => {
      this.docs.push({ ...asked, checks, shift });
      return code;
    };
    if (ending === 5 && !again) {
      this.#rolledBack.add(request);
      return 5;
    }
    if (ending === 3) return keep(0, this.shift, 5);
    if (ending === 10) return 10;
    if (ending === 15) return keep(0, this.shift, 15);
    if (ending === 44) return keep(3, 0, 44);
    if (ending > 60 && ending < 70) return keep(ending - 60, 0, 44);
    const failure = asked.paid.cashless > 0n ? cardFailures.get(ending) : undefined;
    return failure ?? keep(0, this.shift, 0);
  }

  /** docStatus, or -1 for code 9. */
  check(key: number): number {
    const doc = this.doc(key);
    if (doc === undefined) return -1;
    if (doc.shift > 0) return 1;
    if (doc.checks > 0) doc.checks -= 1;
    else if (this.open) doc.shift = this.shift;
    return doc.shift > 0 ? 1 : 0;
  }

  abort(key: number): number {
    const doc = this.doc(key);
    if (doc === undefined) return 9;
    if (doc.shift > 0) return 5;
    this.docs = this.docs.filter((each) => each !== doc);
    return 0;
  }

  openShift(): void {
    if (!this.open) this.shift += 1;
    this.open = true;
  }

  closeShift(operation: string): number {
    if (!this.open) return 6;
    if (operation === "delete") this.docs = this.docs.filter((doc) => doc.shift > 0);
    else if (operation !== "renew" && this.docs.some((doc) => doc.shift === 0)) return 44;
    this.open = false;
    return 0;
  }

  doc(key: number): Doc | undefined {
    return this.docs.find((doc) => doc.key === key);
  }

  refunded(sale: number): bigint {
    return total(this.docs, (doc) => (doc.parent === sale ? doc.sum : 0n));
  }

  drawer(): bigint {
    const cash = (kind: Kind) =>
      total(
        this.docs.filter((doc) => doc.shift > 0 && doc.kind === kind),
        (doc) => doc.paid.cash,
      );
    return cash("deposit") - cash("withdraw") + cash("sale") - cash("refund");
  }

  metrics(): JsonObject {
    const of = (kind: Kind) => this.docs.filter((doc) => doc.shift === this.shift && doc.kind === kind);
    const sums = (name: string, docs: readonly Doc[]) => ({
      [`${name}Count`]: BigInt(docs.length),
      [`${name}Sum`]: total(docs, ({ sum }) => sum),
      [`${name}CashSum`]: total(docs, ({ paid }) => paid.cash),
      [`${name}CashlessSum`]: total(docs, ({ paid }) => paid.cashless),
      [`${name}CreditSum`]: total(docs, ({ paid }) => paid.credit),
      [`${name}BonusSum`]: total(docs, ({ paid }) => paid.bonuses),
      [`${name}VatAmounts`]:
        docs.length === 0 ? [] : [{ vatPercent: 1800n, vatAmount: total(docs, ({ sum }) => vat18(sum)), currency_name: "XTS" }],
    });
    return {
      cash: this.drawer(),
      ...sums("sale", of("sale")),
      ...sums("moneyBack", of("refund")),
      depositCount: BigInt(of("deposit").length),
      depositSum: total(of("deposit"), ({ sum }) => sum),
      withdrawCount: BigInt(of("withdraw").length),
      withdrawSum: total(of("withdraw"), ({ sum }) => sum),
    };
  }
}

/** 18 % of the net in a gross amount, to a tenth, and then half up. */
const vat18 = (gross: bigint) => ((gross * 180n) / 118n + 5n) / 10n;

function total(docs: readonly Doc[], of: (doc: Doc) => bigint): bigint {
  return docs.reduce((sofar, doc) => sofar + of(doc), 0n);
}
