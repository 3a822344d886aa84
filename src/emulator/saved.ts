import { isObject } from "../core/json-object.ts";
import { StateError } from "./world.ts";

/** A value in a saved state, and where it stands. Reading it as what it isn't names that place: a person may have edited it. */
export class Saved {
  readonly #value: unknown;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    this.#value = value;
    this.#path = path;
  }

  at(name: string): Saved {
    if (!isObject(this.#value)) return this.wrong("must be an object");
    return new Saved(Object.hasOwn(this.#value, name) ? this.#value[name] : undefined, `${this.#path}.${name}`);
  }

  /** Whether there is anything here. */
  get present(): boolean {
    return this.#value !== undefined && this.#value !== null;
  }

  /** The entries of a list. */
  list(entriesMax: number): readonly Saved[] {
    if (!Array.isArray(this.#value)) return this.wrong("must be a list");
    if (this.#value.length > entriesMax) return this.wrong(`must have no more than ${entriesMax} entries`);
    return this.#value.map((value, index) => new Saved(value, `${this.#path}[${index}]`));
  }

  text(): string {
    return typeof this.#value === "string" && this.#value !== "" ? this.#value : this.wrong("must be a string");
  }

  flag(): boolean {
    return typeof this.#value === "boolean" ? this.#value : this.wrong("must be true or false");
  }

  integer(min: bigint, max?: bigint): bigint {
    if (typeof this.#value !== "bigint") return this.wrong("must be an integer");
    if (this.#value < min) return this.wrong(`must not be less than ${min}`);
    if (max !== undefined && this.#value > max) return this.wrong(`must not be greater than ${max}`);
    return this.#value;
  }

  /** An integer that is counted with. */
  count(): number {
    return Number(this.integer(0n, BigInt(Number.MAX_SAFE_INTEGER)));
  }

  oneOf<Word extends string>(words: readonly Word[]): Word {
    return words.find((word) => word === this.#value) ?? this.wrong(`must be one of ${words.join(", ")}`);
  }

  wrong(rule: string): never {
    throw new StateError(`${this.#path}: ${rule}`);
  }
}
