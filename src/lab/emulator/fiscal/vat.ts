import type { JsonObject } from "../../../core/json-object.ts";
import type { StateReader } from "../state-reader.ts";
import { type FiscalFields, fiscalInt64Max } from "./request.ts";
import { type FiscalWorld, rateMax, rateOf } from "./shop.ts";

/**
 * VAT as receipts show it. The contract gives rates and asks for amounts, but not how one comes from the other: here a line's amount
 * contains its VAT, the lines of one rate are added up over the document, and the VAT in that is rounded half up to the minor unit, once a
 * rate. So a shift reports the sums of its receipts.
 */

/** VAT in minor units, by rate in percent x100. */
export type VatByRate = ReadonlyMap<bigint, bigint>;

export const noVat: VatByRate = new Map();

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
export function ratesOf(item: FiscalFields, world: FiscalWorld): readonly bigint[] {
  const rates = item.list("itemTaxes").flatMap((tax) => rateOf(tax, world) ?? []);
  return [...new Set(rates)];
}

/** The VAT of a document's lines. */
export function vatOf(lines: readonly TaxedLine[]): VatByRate {
  const amounts = new Map<bigint, bigint>();
  for (const { amount, rates } of lines) {
    for (const rate of rates) amounts.set(rate, (amounts.get(rate) ?? 0n) + amount);
  }
  return new Map([...amounts].map(([rate, amount]) => [rate, vatIn(amount, rate)]));
}

export function addVat(one: VatByRate, other: VatByRate): VatByRate {
  if (other.size === 0) return one;
  const sum = new Map(one);
  for (const [rate, amount] of other) sum.set(rate, (sum.get(rate) ?? 0n) + amount);
  return sum;
}

/** VAT as metrics and saved states list it, the lowest rate first. */
export function vatEntries(vat: VatByRate, more: JsonObject = {}): readonly JsonObject[] {
  const sorted = [...vat].sort(([one], [other]) => (one < other ? -1 : 1));
  return sorted.map(([vatPercent, vatAmount]) => ({ vatPercent, vatAmount, ...more }));
}

export function restoredVat(saved: StateReader): VatByRate {
  const vat = new Map<bigint, bigint>();
  for (const entry of saved.list(rateMax + 1)) {
    const percent = entry.at("vatPercent").integer(0n, BigInt(rateMax));
    if (vat.has(percent)) entry.at("vatPercent").refuse("must be there once");
    vat.set(percent, entry.at("vatAmount").integer(0n, fiscalInt64Max));
  }
  return vat;
}
