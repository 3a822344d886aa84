import { isObject, type JsonObject } from "../core/json-object.ts";

/** What an emulated service answers: the response envelope, and whatever the route adds to it. Integers may be bigints. */
export interface Answer extends JsonObject {
  readonly status: "success" | "error";
  readonly code?: number;
}

export function refusal(code: number, message: string, more: JsonObject = {}): Answer {
  return { ...more, status: "error", code, message };
}

/** The first of these fields that is absent, null or an empty string. */
export function missingField(body: JsonObject, names: readonly string[]): string | undefined {
  return names.find((name) => body[name] === undefined || body[name] === null || body[name] === "");
}

/** An id as its sender wrote it, a string or an integer (FIELD-NOTES: types are loose); undefined when there is none. */
export function idOf(value: unknown): string | undefined {
  if (typeof value === "bigint") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

const int64Max = 2n ** 63n - 1n;

/** An integer of 64 bits, such as an amount in minor units; undefined when it is none. */
export function int64Of(value: unknown): bigint | undefined {
  return typeof value === "bigint" && value <= int64Max && value >= -int64Max - 1n ? value : undefined;
}

/** The fields of an object; none when it is no object. */
export function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** The objects of a list; none when it is no list. */
export function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

/** A number written with leading zeros, as references on receipts are. */
export function reference(value: number | bigint, digits: number): string {
  return String(value).padStart(digits, "0");
}
