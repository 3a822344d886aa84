import type { JsonObject } from "../../../core/json-object.ts";
import { type FiscalFields, fiscalCodes, fiscalInt64Max, int32Max } from "./request.ts";
import type { FiscalWorld } from "./shop.ts";
import { divideHalfUp, ratesOf, type VatByRate, vatOf } from "./vat.ts";

/** The lines of a receipt (Item object): their sums, and their fields in a copy. */

export interface ReceiptItems {
  /** Minor units. */
  readonly sum: bigint;
  readonly vat: VatByRate;
  /** The lines as sent, with the fields that a copy has (seen in the field: /check_copy). */
  readonly lines: readonly JsonObject[];
}

const texts = ["itemId", "itemName", "itemUnit"] as const;

/** Minor units. */
const amounts = ["itemPrice", "itemAmount", "discount"] as const;

/** 1.000, the default of itemQty. */
const one = 1000n;

export function readItems(fields: FiscalFields, world: FiscalWorld): ReceiptItems {
  const items = fields.list("items");
  if (items.length === 0)
    return fields.refuse(fiscalCodes.missingParams, "items is missing or empty", "send at least one item");
  const read = items.map((item) => ({ line: lineOf(item), amount: amountOf(item), rates: ratesOf(item, world) }));
  const sum = read.reduce((sofar, { amount }) => sofar + amount, 0n);
  if (sum > fiscalInt64Max) {
    fields.refuse(fiscalCodes.amountMismatch, "the items add up to more than 64 bits hold", "send several receipts");
  }
  return { sum, vat: vatOf(read), lines: read.map(({ line }) => line) };
}

/**
 * A line's amount. itemAmount is that of the whole line, and the quantity beside it informs; but if a unit price is sent too (it isn't in
 * the contract, and usual), the three must agree. A discount may be taken off already or not: tills do either.
 */
function amountOf(item: FiscalFields): bigint {
  const amount = item.amount("itemAmount");
  const price = item.amount("itemPrice");
  const qty = item.amount("itemQty", int32Max);
  if (price === undefined) return amount ?? 0n;
  const whole = divideHalfUp(price * (qty ?? one), one);
  if (amount === undefined) return whole <= fiscalInt64Max ? whole : mismatch(item, whole);
  const discount = item.amount("discount") ?? 0n;
  if (qty !== undefined && amount !== whole && amount !== whole - discount) return mismatch(item, whole);
  return amount;
}

function mismatch(item: FiscalFields, whole: bigint): never {
  const state = `${item.named("itemAmount")} is not itemPrice x itemQty / 1000, which is ${whole}`;
  return item.refuse(fiscalCodes.amountMismatch, state, "send amounts that agree");
}

type ReceiptLine = Record<string, string | bigint>;

function lineOf(item: FiscalFields): JsonObject {
  const line: ReceiptLine = {};
  for (const name of texts) {
    const text = item.text(name);
    if (text !== undefined) line[name] = text;
  }
  line["itemQty"] = item.amount("itemQty", int32Max) ?? one;
  for (const name of amounts) {
    const amount = item.amount(name);
    if (amount !== undefined) line[name] = amount;
  }
  return line;
}
