import { isInteger, parse, stringify } from "lossless-json";
import { isObject, type JsonObject } from "../../core/json-object.ts";

/**
 * JSON in which every integer is a bigint: amounts and ids are int64 in the contracts, and a number would round them beyond 2^53. A value
 * with a fraction or an exponent stays a number, so that it can be told apart and refused.
 */

/** The JSON object in a text; undefined if it isn't JSON, is JSON of another kind, or an object that names a field twice. */
export function parseExact(text: string): JsonObject | undefined {
  let value: unknown;
  try {
    value = parse(text, undefined, (digits) => (isInteger(digits) ? BigInt(digits) : Number(digits)));
  } catch {
    return undefined;
  }
  return isObject(value) ? value : undefined;
}

/** Writes what `parseExact` reads. */
export function writeExact(value: JsonObject, space?: number): string {
  const text = stringify(value, undefined, space);
  if (text === undefined) throw new Error("Cannot write the answer: it is not JSON");
  return text;
}
