/** JSON objects, which every service sends and receives. */

/** A JSON object, as parsed: string keys and any values. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True if a parsed value is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A parsed value that should be a JSON object; without members if it is none. */
export const objectIn = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** True if a value is an array of strings; an empty one counts. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** An integer that may be written as a number or a string of digits (seen in the field: types are loose). */
export function looseInteger(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : undefined;
  if (typeof value !== "string" || !/^-?\d{1,15}$/.test(value)) return undefined;
  return Number(value);
}
