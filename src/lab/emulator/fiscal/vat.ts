import type { JsonObject } from "../../../core/json-object.ts";
import type { RequestReader } from "../request-reader.ts";
import { type FiscalWorld, rateOf } from "./shop.ts";

/**
 * VAT as receipts show it. The contract gives rates and asks for amounts, but not how one comes from the other: here a line's amount
 * contains its VAT, the lines of one rate are added up over the document, and the VAT in that is rounded half up to the minor unit, once a
 * rate. So a shift reports the sums of its receipts.
 */

/** VAT in minor units, by rate in percent x100, the lowest rate first: as metrics list it. */
export type VatByRate = readonly VatAmount[];

interface VatAmount extends JsonObject {
  readonly vatPercent: bigint;
  readonly vatAmount: bigint;
}

export const noVat: VatByRate = [];

/** The VAT contained in an amount: amount × rate / (1 + rate), half up. */
export function vatIn(amount: bigint, percent: bigint): bigint {
  return divideHalfUp(amount * percent, 10_000n + percent);
}

/** Divides a number that isn't negative, rounding a half up. */
export function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}

/** A line of a receipt, with its rates. */
export interface TaxedLine {
  readonly amount: bigint;
  readonly rates: readonly bigint[];
}

/** The rates of a line, each once. */
export function ratesOf(item: RequestReader, world: FiscalWorld): readonly bigint[] {
  const rates = item.list("itemTaxes").flatMap((tax) => rateOf(tax, world) ?? []);
  return [...new Set(rates)];
}

/** The VAT of a document's lines. */
export function vatOf(lines: readonly TaxedLine[]): VatByRate {
  const amounts = new Map<bigint, bigint>();
  for (const { amount, rates } of lines) {
    for (const rate of rates) amounts.set(rate, (amounts.get(rate) ?? 0n) + amount);
  }
  return byRate(new Map([...amounts].map(([rate, amount]) => [rate, vatIn(amount, rate)])));
}

export function addVat(one: VatByRate, other: VatByRate): VatByRate {
  const sum = new Map(one.map(({ vatPercent, vatAmount }) => [vatPercent, vatAmount]));
  for (const { vatPercent, vatAmount } of other) sum.set(vatPercent, (sum.get(vatPercent) ?? 0n) + vatAmount);
  return byRate(sum);
}

const byRate = (amounts: ReadonlyMap<bigint, bigint>): VatByRate =>
  [...amounts]
    .map(([vatPercent, vatAmount]) => ({ vatPercent, vatAmount }))
    .sort((one, other) => (one.vatPercent < other.vatPercent ? -1 : 1));
