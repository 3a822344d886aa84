import { isObject, type JsonObject } from "../../../core/json-object.ts";
import { idFrom, int64From } from "../answer.ts";
import { fieldIn, type RequestReader } from "../request-reader.ts";

/** The codes that the emulated service answers, under the contract's own names (Errors). Signs (1) are checked before. */
export const fiscalCodes = {
  invalidJson: 2,
  missingParams: 3,
  amountMismatch: 4,
  internalError: 5,
  shiftNotOpen: 6,
  paymentTypeNotSupported: 7,
  documentNotPaid: 8,
  documentNotFound: 9,
  documentNotFiscalized: 10,
  changeOnlyForCash: 11,
  docTimeBeforeShift: 12,
  creditSinglePayment: 13,
  invalidDateFormat: 14,
  documentNotPrinted: 15,
  bankTerminalNotConnected: 23,
  documentStillProcessing: 44,
} as const;

export const fiscalInt64Max = 2n ** 63n - 1n;

export const int32Max = 2n ** 31n - 1n;

/**
 * An object within a request, and its path there. A value of another type than the contract documents is code 2: the contract has no code
 * of its own for that, and 2 is what it gives a payload that can't be parsed.
 */
export class FiscalFields {
  readonly #request: RequestReader;
  readonly #object: JsonObject;
  readonly #path: string;

  constructor(request: RequestReader, object: JsonObject, path = "") {
    this.#request = request;
    this.#object = object;
    this.#path = path;
  }

  refuse(code: number, state: string, cure: string): never {
    return this.#request.refuse(state, cure, code);
  }

  /** The name of a field in a message. */
  named(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  /** A field as it came. */
  value(name: string): unknown {
    return fieldIn(this.#object, name);
  }

  /** A text or an id, which may come as an integer (seen in the field: types are loose). */
  text(name: string): string | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    return idFrom(value) ?? this.refuse(fiscalCodes.invalidJson, `${this.named(name)} is not a string`, "send it as a string");
  }

  /** Refuses fields that aren't texts: names that only a receipt shows, and no answer here. */
  checkTexts(names: readonly string[]): void {
    for (const name of names) this.text(name);
  }

  /** Refuses a flag that isn't one. */
  checkFlag(name: string): void {
    const value = this.value(name) ?? false;
    if (typeof value === "boolean") return;
    this.refuse(fiscalCodes.invalidJson, `${this.named(name)} is not true or false`, "send it without quotes");
  }

  integer(name: string, max = fiscalInt64Max): bigint | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const integer = int64From(value);
    if (integer !== undefined && integer <= max && integer >= -max - 1n) return integer;
    const bits = max === int32Max ? 32 : 64;
    return this.refuse(
      fiscalCodes.invalidJson,
      `${this.named(name)} is not an integer of ${bits} bits`,
      "send it without quotes or fraction",
    );
  }

  /** An integer that can't be negative: an amount in minor units, a quantity, a rate. */
  amount(name: string, max = fiscalInt64Max): bigint | undefined {
    const amount = this.integer(name, max);
    if (amount === undefined || amount >= 0n) return amount;
    return this.refuse(fiscalCodes.amountMismatch, `${this.named(name)} is less than 0`, "send 0 or more");
  }

  object(name: string): FiscalFields | undefined {
    const value = this.value(name);
    return value === undefined ? undefined : this.#nested(value, this.named(name));
  }

  list(name: string): readonly FiscalFields[] {
    const value = this.value(name);
    if (value === undefined) return [];
    if (!Array.isArray(value))
      return this.refuse(fiscalCodes.invalidJson, `${this.named(name)} is not a list`, "send a list of objects");
    return value.map((each, index) => this.#nested(each, `${this.named(name)}[${index}]`));
  }

  #nested(value: unknown, path: string): FiscalFields {
    if (isObject(value)) return new FiscalFields(this.#request, value, path);
    return this.refuse(fiscalCodes.invalidJson, `${path} is not an object`, "send an object");
  }
}

/** The keys by which a till names a document. */
export interface DocumentKeys {
  readonly extId: string | undefined;
  readonly id: bigint | undefined;
}

export function documentKeysOf(fields: FiscalFields): DocumentKeys {
  return { extId: fields.text("documentExtID"), id: documentIdOf(fields) };
}

/** documentID, an int64 that may come as a string. 0 is what tills send that have none yet. */
function documentIdOf(fields: FiscalFields): bigint | undefined {
  const text = fields.text("documentID");
  if (text === undefined || text === "0") return undefined;
  const id = /^\d{1,19}$/.test(text) ? BigInt(text) : 0n;
  if (id > 0n && id <= fiscalInt64Max) return id;
  return fields.refuse(
    fiscalCodes.invalidJson,
    "documentID is not an integer greater than 0 of 64 bits",
    "send the service's own, or none",
  );
}
