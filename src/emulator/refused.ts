import type { JsonObject } from "../core/json-object.ts";
import { type Answer, idOf, int64Of, refusal } from "./answer.ts";

/** A refusal, thrown from whatever depth its reason is found at. What was changed by then stays changed. */
class Refused extends Error {
  override readonly name = "Refused";
  readonly answer: Answer;

  constructor(code: number, message: string) {
    super(message);
    this.answer = refusal(code, message);
  }
}

/** The answer that the work comes to, or the refusal that ended it. */
export function answerOf(work: () => Answer): Answer {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refused) return error.answer;
    throw error;
  }
}

/** Reads a request's fields, and refuses the request where one isn't what its contract documents. Null is as good as absent. */
export class RequestReader {
  readonly route: string;
  readonly #body: JsonObject;
  readonly #invalidCode: number;

  /** @param invalidCode What the service answers when a field is missing or wrong. */
  constructor(route: string, body: JsonObject, invalidCode: number) {
    this.route = route;
    this.#body = body;
    this.#invalidCode = invalidCode;
  }

  refuse(state: string, cure: string, code = this.#invalidCode): never {
    throw new Refused(code, `Cannot answer ${this.route}: ${state}: ${cure}`);
  }

  /** A text or an id; the empty one is absent. */
  idIfAny(name: string): string | undefined {
    const value = this.#body[name];
    const id = idOf(value);
    if (id === undefined && value !== undefined && value !== null && value !== "") {
      return this.refuse(`${name} is no string`, "send it as a string");
    }
    return id;
  }

  id(name: string): string {
    return this.idIfAny(name) ?? this.#missing(name);
  }

  int64IfAny(name: string): bigint | undefined {
    const value = this.#body[name];
    if (value === undefined || value === null) return undefined;
    return int64Of(value) ?? this.refuse(`${name} is no integer of 64 bits`, "send it without quotes, fraction or exponent");
  }

  /** An amount that is moved, in minor units. */
  amount(name: string): bigint {
    const amount = this.int64IfAny(name) ?? this.#missing(name);
    return amount > 0n ? amount : this.refuse(`${name} is not greater than 0`, "send it in minor units");
  }

  /** An amount that may be left out, in minor units; 0 without it. */
  amountIfAny(name: string): bigint {
    const amount = this.int64IfAny(name) ?? 0n;
    return amount >= 0n ? amount : this.refuse(`${name} is less than 0`, "send 0 or more, in minor units");
  }

  /** Whether a flag is set; what isn't documented as one is taken for unset. */
  flag(name: string): boolean {
    return this.#body[name] === true;
  }

  #missing(name: string): never {
    return this.refuse(`${name} is missing`, "send it");
  }
}
