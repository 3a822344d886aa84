import { isObject, type JsonObject } from "../../core/json-object.ts";
import { errorAnswer, type ServiceAnswer } from "./answer.ts";

/** A refusal, thrown from whatever depth its reason is found at. Changes made by then stay. */
class RequestRefused extends Error {
  override readonly name = "Refused";
  readonly answer: ServiceAnswer;

  constructor(code: number, message: string) {
    super(message);
    this.answer = errorAnswer(code, message);
  }
}

/** The result of the work, or the refusal that ended it. */
export function answerOrRefusal(work: () => ServiceAnswer): ServiceAnswer {
  try {
    return work();
  } catch (error) {
    if (error instanceof RequestRefused) return error.answer;
    throw error;
  }
}

/** The codes by which a service refuses a field. */
export interface RefusalCodes {
  /** One of another type than the contract documents. */
  readonly wrong: number;
  readonly missing: number;
  /** An amount that can't be. */
  readonly amount: number;
}

export const int64Max = 2n ** 63n - 1n;
export const int32Max = 2n ** 31n - 1n;

/** Reads a request's fields, or those of an object in it, and refuses the request if a field isn't as its contract documents. */
export class RequestReader {
  readonly route: string;
  readonly #object: JsonObject;
  readonly #codes: RefusalCodes;
  readonly #path: string;

  /** @param path That of an object within the request. */
  constructor(route: string, object: JsonObject, codes: RefusalCodes, path = "") {
    this.route = route;
    this.#object = object;
    this.#codes = codes;
    this.#path = path;
  }

  refuse(state: string, cure: string, code = this.#codes.wrong): never {
    throw new RequestRefused(code, `Cannot answer ${this.route}: ${state}: ${cure}`);
  }

  /** The name of a field in a message. */
  named(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  /** A field as it came; null and the empty text are as good as absent, as they are to the bridge's `check: "contract"`. */
  value(name: string): unknown {
    const value = Object.hasOwn(this.#object, name) ? this.#object[name] : undefined;
    return value === null || value === "" ? undefined : value;
  }

  /** A text or an id, which may come as an integer (seen in the field: types are loose). */
  optionalId(name: string): string | undefined {
    const value = this.value(name);
    if (value === undefined || (typeof value === "string" && value !== "")) return value;
    if (typeof value === "bigint") return String(value);
    return this.refuse(`${this.named(name)} is not a string`, "send it as a string");
  }

  id(name: string): string {
    return this.optionalId(name) ?? this.#missing(name);
  }

  /** Refuses fields that aren't texts, though no answer here depends on them. */
  checkTexts(names: readonly string[]): void {
    for (const name of names) this.optionalId(name);
  }

  optionalInteger(name: string, max = int64Max): bigint | undefined {
    const value = this.value(name);
    if (value === undefined || (typeof value === "bigint" && value <= max && value >= -max - 1n)) return value;
    const state = `${this.named(name)} is not an integer of ${max === int32Max ? 32 : 64} bits`;
    return this.refuse(state, "send it without quotes, fraction or exponent");
  }

  /** An amount that is moved, in minor units. */
  amount(name: string): bigint {
    const amount = this.optionalInteger(name) ?? this.#missing(name);
    if (amount > 0n) return amount;
    return this.refuse(`${this.named(name)} is not greater than 0`, "send it in minor units", this.#codes.amount);
  }

  /** An integer that can't be negative: an amount in minor units, a quantity, a rate. */
  optionalAmount(name: string, max?: bigint): bigint | undefined {
    const amount = this.optionalInteger(name, max);
    if (amount === undefined || amount >= 0n) return amount;
    return this.refuse(`${this.named(name)} is less than 0`, "send 0 or more, in minor units", this.#codes.amount);
  }

  /** True if a flag is set; an absent one isn't. */
  flag(name: string): boolean {
    const value = this.value(name) ?? false;
    return typeof value === "boolean"
      ? value
      : this.refuse(`${this.named(name)} is not true or false`, "send it without quotes");
  }

  object(name: string): RequestReader | undefined {
    const value = this.value(name);
    return value === undefined ? undefined : this.#nested(value, this.named(name));
  }

  list(name: string): readonly RequestReader[] {
    const value = this.value(name) ?? [];
    if (!Array.isArray(value)) return this.refuse(`${this.named(name)} is not a list`, "send a list of objects");
    return value.map((each, index) => this.#nested(each, `${this.named(name)}[${index}]`));
  }

  #nested(value: unknown, path: string): RequestReader {
    if (isObject(value)) return new RequestReader(this.route, value, this.#codes, path);
    return this.refuse(`${path} is not an object`, "send an object");
  }

  #missing(name: string): never {
    return this.refuse(`${this.named(name)} is missing`, "send it", this.#codes.missing);
  }
}
