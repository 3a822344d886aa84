import type { JsonObject } from "../../../core/json-object.ts";
import { int32Max, int64Max, type RequestReader } from "../request-reader.ts";
import { fiscalCodes } from "./request.ts";
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

export function readItems(fields: RequestReader, world: FiscalWorld): ReceiptItems {
  const items = fields.list("items");
  if (items.length === 0)
    return fields.refuse("items is missing or empty", "send at least one item", fiscalCodes.missingParams);
  const read = items.map((item) => ({ line: lineOf(item), amount: amountOf(item), rates: ratesOf(item, world) }));
  const sum = read.reduce((sofar, { amount }) => sofar + amount, 0n);
  if (sum > int64Max) {
    fields.refuse("the items add up to more than 64 bits hold", "send several receipts", fiscalCodes.amountMismatch);
  }
  return { sum, vat: vatOf(read), lines: read.map(({ line }) => line) };
}

/**
 * A line's amount. itemAmount is that of the whole line, and the quantity beside it informs; but if a unit price is sent too (it isn't in
 * the contract, and usual), the three must agree. A discount may be taken off already or not: tills do either.
 */
function amountOf(item: RequestReader): bigint {
  const amount = item.optionalAmount("itemAmount");
  const price = item.optionalAmount("itemPrice");
  const qty = item.optionalAmount("itemQty", int32Max);
  if (price === undefined) return amount ?? 0n;
  const whole = divideHalfUp(price * (qty ?? one), one);
  if (amount === undefined) return whole <= int64Max ? whole : mismatch(item, whole);
  const discount = item.optionalAmount("discount") ?? 0n;
  if (qty !== undefined && amount !== whole && amount !== whole - discount) return mismatch(item, whole);
  return amount;
}

function mismatch(item: RequestReader, whole: bigint): never {
  const state = `${item.named("itemAmount")} is not itemPrice x itemQty / 1000, which is ${whole}`;
  return item.refuse(state, "send amounts that agree", fiscalCodes.amountMismatch);
}

type ReceiptLine = Record<string, string | bigint>;

function lineOf(item: RequestReader): JsonObject {
  const line: ReceiptLine = {};
  for (const name of texts) {
    const text = item.optionalId(name);
    if (text !== undefined) line[name] = text;
  }
  line["itemQty"] = item.optionalAmount("itemQty", int32Max) ?? one;
  for (const name of amounts) {
    const amount = item.optionalAmount(name);
    if (amount !== undefined) line[name] = amount;
  }
  return line;
}
