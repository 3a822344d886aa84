import { isObject, type JsonObject } from "../../core/json-object.ts";
import { errorAnswer, idFrom, int64From, type ServiceAnswer } from "./answer.ts";

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

/** A field of a request; null and the empty text are as good as absent, as they are to the bridge's `check: "contract"`. */
export function fieldIn(body: JsonObject, name: string): unknown {
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  return value === null || value === "" ? undefined : value;
}

/** Reads a request's fields, and refuses the request if a field isn't as its contract documents. */
export class RequestReader {
  readonly route: string;
  readonly #body: JsonObject;
  readonly #invalidCode: number;

  /** @param invalidCode The service's code for a field that is missing or wrong. */
  constructor(route: string, body: JsonObject, invalidCode: number) {
    this.route = route;
    this.#body = body;
    this.#invalidCode = invalidCode;
  }

  refuse(state: string, cure: string, code = this.#invalidCode): never {
    throw new RequestRefused(code, `Cannot answer ${this.route}: ${state}: ${cure}`);
  }

  /** A text or an id. */
  optionalId(name: string): string | undefined {
    const value = fieldIn(this.#body, name);
    return value === undefined ? undefined : (idFrom(value) ?? this.refuse(`${name} is not a string`, "send it as a string"));
  }

  id(name: string): string {
    return this.optionalId(name) ?? this.#missing(name);
  }

  optionalInt64(name: string): bigint | undefined {
    const value = fieldIn(this.#body, name);
    if (value === undefined) return undefined;
    return (
      int64From(value) ?? this.refuse(`${name} is not an integer of 64 bits`, "send it without quotes, fraction or exponent")
    );
  }

  /** An amount that is moved, in minor units. */
  amount(name: string): bigint {
    const amount = this.optionalInt64(name) ?? this.#missing(name);
    return amount > 0n ? amount : this.refuse(`${name} is not greater than 0`, "send it in minor units");
  }

  /** An amount that may be left out, in minor units; 0 without it. */
  optionalAmount(name: string): bigint {
    const amount = this.optionalInt64(name) ?? 0n;
    return amount >= 0n ? amount : this.refuse(`${name} is less than 0`, "send 0 or more, in minor units");
  }

  /** True if a flag is set; an absent one isn't. */
  flag(name: string): boolean {
    const value = fieldIn(this.#body, name) ?? false;
    return typeof value === "boolean" ? value : this.refuse(`${name} is not true or false`, "send it without quotes");
  }

  /** Refuses a field that is there and isn't an object. */
  checkObject(name: string): void {
    const value = fieldIn(this.#body, name);
    if (value !== undefined && !isObject(value)) this.refuse(`${name} is not an object`, "send an object");
  }

  #missing(name: string): never {
    return this.refuse(`${name} is missing`, "send it");
  }
}
