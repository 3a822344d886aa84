import { isInteger, parse, stringify } from "lossless-json";
import { isObject, type JsonObject } from "../core/json-object.ts";

/**
 * JSON without rounding, on the till's side: an integer that a number holds exactly is a number, a larger one a bigint. Both may
 * be given where the contracts have an int64.
 */

/** The JSON object in a text; undefined when it is not JSON, JSON of another kind, or an object that names a field twice. */
export function parseExactObject(text: string): JsonObject | undefined {
  let value: unknown;
  try {
    value = parse(text, undefined, exactly);
  } catch {
    return undefined;
  }
  return isObject(value) ? value : undefined;
}

function exactly(digits: string): number | bigint {
  const number = Number(digits);
  return Number.isSafeInteger(number) || !isInteger(digits) ? number : BigInt(digits);
}

/**
 * Writes a request's body.
 * @throws TypeError when it is not a JSON object, or holds a number that JSON cannot write.
 */
export function writeExactObject(value: object): string {
  const text = stringify(value, refuseOddNumbers);
  if (text === undefined || !text.startsWith("{")) throw new TypeError("Cannot write the body: it must be a JSON object");
  return text;
}

/**
 * Writes what a service answered, for a reader: it may hold any number, and one that has lost digits as it was read hides nothing else of the
 * answer.
 */
export function showExactObject(value: JsonObject): string {
  return stringify(value) ?? "{}";
}

/** Whether it is a number that may have lost digits as it was read: of integers a bigint keeps them, of 1e20 nothing does. */
export const isInexact = (value: unknown): boolean => typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER;

/** `NaN` would be written as a word that is not JSON, and an integer beyond 2^53 has lost digits already. */
function refuseOddNumbers(key: string, value: unknown): unknown {
  if (typeof value !== "number") return value;
  if (!Number.isFinite(value)) throw new TypeError(`Cannot write the body: ${key} must be a finite number`);
  if (isInexact(value)) {
    throw new TypeError(`Cannot write the body: ${key} is beyond 2^53: use a bigint`);
  }
  return value;
}

/** A scalar as its text, so that 7 and "7" are the same id; undefined for what is absent, null or empty. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
