import { isObject, type JsonObject } from "../../core/json-object.ts";

/** An emulated service's answer: the response envelope, and the fields that the route adds. Integers may be bigints. */
export interface ServiceAnswer extends JsonObject {
  readonly status: "success" | "error";
  readonly code?: number;
}

export function errorAnswer(code: number, message: string, more: JsonObject = {}): ServiceAnswer {
  return { ...more, status: "error", code, message };
}

/** The fields of an object; none when it isn't an object. */
export function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** A number written with leading zeros, as references on receipts are. */
export function zeroPadded(value: number | bigint, digits: number): string {
  return String(value).padStart(digits, "0");
}
