import { isObject } from "../../core/json-object.ts";

/** A saved state that can't be taken back. The message holds the path and what is wrong, in one line. */
export class StateError extends Error {
  override readonly name = "StateError";
}

/** A value in a saved state, with its path. A value of another type is refused under that path: a person may have edited it. */
export class StateReader {
  readonly #value: unknown;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    this.#value = value;
    this.#path = path;
  }

  at(name: string): StateReader {
    if (!isObject(this.#value)) return this.refuse("must be an object");
    return new StateReader(Object.hasOwn(this.#value, name) ? this.#value[name] : undefined, `${this.#path}.${name}`);
  }

  /** Whether there is anything here. */
  get present(): boolean {
    return this.#value !== undefined && this.#value !== null;
  }

  /** The entries of a list. */
  list(entriesMax: number): readonly StateReader[] {
    if (!Array.isArray(this.#value)) return this.refuse("must be a list");
    if (this.#value.length > entriesMax) return this.refuse(`must have no more than ${entriesMax} entries`);
    return this.#value.map((value, index) => new StateReader(value, `${this.#path}[${index}]`));
  }

  text(): string {
    return typeof this.#value === "string" && this.#value !== "" ? this.#value : this.refuse("must be a string");
  }

  flag(): boolean {
    return typeof this.#value === "boolean" ? this.#value : this.refuse("must be true or false");
  }

  integer(min: bigint, max?: bigint): bigint {
    if (typeof this.#value !== "bigint") return this.refuse("must be an integer");
    if (this.#value < min) return this.refuse(`must not be less than ${min}`);
    if (max !== undefined && this.#value > max) return this.refuse(`must not be greater than ${max}`);
    return this.#value;
  }

  /** An integer that is counted with. */
  count(): number {
    return Number(this.integer(0n, BigInt(Number.MAX_SAFE_INTEGER)));
  }

  oneOf<Word extends string>(words: readonly Word[]): Word {
    return words.find((word) => word === this.#value) ?? this.refuse(`must be one of ${words.join(", ")}`);
  }

  refuse(rule: string): never {
    throw new StateError(`${this.#path}: ${rule}`);
  }
}
