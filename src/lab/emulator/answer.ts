import { isObject, type JsonObject } from "../../core/json-object.ts";

/** An emulated service's answer: the response envelope, and the fields that the route adds. Integers may be bigints. */
export interface ServiceAnswer extends JsonObject {
  readonly status: "success" | "error";
  readonly code?: number;
}

export function errorAnswer(code: number, message: string, more: JsonObject = {}): ServiceAnswer {
  return { ...more, status: "error", code, message };
}

/** An id as its sender wrote it, a string or an integer (seen in the field: types are loose); undefined if there is none. */
export function idFrom(value: unknown): string | undefined {
  if (typeof value === "bigint") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

const int64Max = 2n ** 63n - 1n;

/** An integer of 64 bits, such as an amount in minor units; undefined for anything else. */
export function int64From(value: unknown): bigint | undefined {
  return typeof value === "bigint" && value <= int64Max && value >= -int64Max - 1n ? value : undefined;
}

/** The fields of an object; none when it isn't an object. */
export function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** A number written with leading zeros, as references on receipts are. */
export function zeroPadded(value: number | bigint, digits: number): string {
  return String(value).padStart(digits, "0");
}
