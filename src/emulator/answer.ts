import type { JsonObject } from "../envelope/json.ts";

/** What an emulated service answers: the response envelope, and whatever the route adds to it. */
export interface Answer extends JsonObject {
  readonly status: "success" | "error";
  readonly code?: number;
}

/** One emulated service: what each route does, by its path. */
export type EmulatedService = ReadonlyMap<string, (body: JsonObject) => Answer>;

export function refusal(code: number, message: string): Answer {
  return { status: "error", code, message };
}

/** The first of these fields that is absent, null or an empty string. */
export function missingField(body: JsonObject, names: readonly string[]): string | undefined {
  return names.find((name) => body[name] === undefined || body[name] === null || body[name] === "");
}

/** An id as its sender wrote it, a string or a number; undefined when there is none. */
export function idOf(value: unknown): string | undefined {
  if (typeof value === "number") {
    return String(value);
  }
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** An amount in minor units; 0 when there is none. */
export function amountOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : 0;
}

/** A number written with leading zeros, as references on receipts are. */
export function reference(value: number, digits: number): string {
  return String(value).padStart(digits, "0");
}

/** How many operations each emulated service remembers: days of a busy till, at about 1 kB each some megabytes. */
const rememberedMax = 4096;

/** What a service remembers by id. Bounded: the longest known is forgotten first. */
export class Memory<Value> {
  readonly #values = new Map<string, Value>();
  readonly #max: number;

  constructor(max: number = rememberedMax) {
    this.#max = max;
  }

  find(id: string | undefined): Value | undefined {
    return id === undefined ? undefined : this.#values.get(id);
  }

  remember(id: string, value: Value): void {
    this.#values.delete(id);
    this.#values.set(id, value);
    if (this.#values.size > this.#max) {
      const [oldest] = this.#values.keys();
      if (oldest !== undefined) {
        this.#values.delete(oldest);
      }
    }
  }
}
