import { createHash } from "node:crypto";
import type { JsonObject } from "../../core/json-object.ts";
import { writeExact } from "./exact-json.ts";
import type { EmulatedOutcome } from "./faults/magic-amounts.ts";
import { rememberedBytesMax, rememberedMax, type ServiceContext } from "./service-context.ts";
import type { StateReader } from "./state-reader.ts";

/**
 * Operations that are begun, asked about and come to an end, as bank and qr have them. An operation is in progress for as many questions as
 * its outcome says, and for as long as a till takes to ask them: an end doesn't wait for a till that has gone away, just as a customer
 * doesn't. Ends by the clock are found at the next request of any kind, and take effect in the order in which they were due, so that nobody
 * can tell that they were found late.
 *
 * An operation's subject, and the effects of its end, are its service's affair.
 */

/** Ends of an operation; "exhausted" would be approved, had its original so much left. */
export const operationEnds = ["approved", "declined", "cancelled", "card-timeout", "reversed", "exhausted"] as const;

export type EmulatedEnd = (typeof operationEnds)[number];

export interface EmulatedOperation {
  /** Counted from 1, for all operations of a service. */
  readonly number: number;
  readonly begunMs: number;
  /** How many questions are answered "in progress". */
  readonly checks: number;
  /** How many were answered so until now. */
  asked: number;
  /** The end that the operation is bound for, and once ended, the one it came to. */
  end: EmulatedEnd;
  ended: boolean;
}

/** The service's part of an operation. */
export interface OperationRules<T extends EmulatedOperation> {
  /** Every name that the operation is found by. If a name belongs to several, the latest is found. */
  namesOf(operation: T): readonly string[];
  /** Called when the operation is about to end as its `end` says: brings about its effects, or else turns it into another end. */
  ending(operation: T): void;
  saved(operation: T): JsonObject;
  /** Makes an operation of its saved state, with the fields that all operations have. */
  restored(common: EmulatedOperation, saved: StateReader): T;
}

/** Questions that are answered "in progress" in a normal course: one is enough to find out a till that doesn't poll. */
const checksDefault = 1;

/** Milliseconds that a till takes for a question (Endpoints, rule 1, and flow rule 2: every 1000-2000 ms). */
export const checkMs = 2000;

/** How an operation stands, in a word. */
export const standOf = ({ ended, end }: EmulatedOperation) => (ended ? end : "in progress");

export const isApproved = (operation: EmulatedOperation) => operation.ended && operation.end === "approved";

export class OperationStore<T extends EmulatedOperation> {
  readonly #context: ServiceContext;
  readonly #rules: OperationRules<T>;
  /** Operations by number, the oldest first. */
  #remembered = new Map<number, T>();
  #named = new Map<string, T>();
  #running = new Set<T>();
  /** Bytes of JSON of each operation when it was last remembered. */
  readonly #bytes = new Map<number, number>();
  #bytesTotal = 0;
  /** Requests that failed by the outcome "internal-error", the oldest first: digests, which are short whatever the key. */
  #failed = new Set<string>();
  #count = 0;

  constructor(context: ServiceContext, kind: OperationRules<T>) {
    this.#context = context;
    this.#rules = kind;
  }

  /** The latest operation with a name. */
  named(name: string): T | undefined {
    return this.#named.get(name);
  }

  numbered(number: number): T | undefined {
    return this.#remembered.get(number);
  }

  all(): Iterable<T> {
    return this.#remembered.values();
  }

  /** A number that nothing else has. */
  nextNumber(): number {
    this.#count += 1;
    this.#context.changed();
    return this.#count;
  }

  /**
   * The outcome of a new request: to be asked once, when nothing can refuse the request any more.
   * @param key Tells the request from others: a request that failed succeeds when it comes again.
   */
  outcomeOf(route: string, amount: bigint, key: string): EmulatedOutcome | undefined {
    const outcome = this.#context.outcomeOf(route, amount);
    const request = createHash("sha256").update(key).digest("base64");
    const failedBefore = this.#failed.delete(request);
    if (failedBefore) this.#context.changed();
    if (outcome?.name !== "internal-error") return outcome;
    if (failedBefore) return undefined;
    this.#failed.add(request);
    for (const oldest of this.#failed) {
      if (this.#failed.size <= rememberedMax) break;
      this.#failed.delete(oldest);
    }
    this.#context.changed();
    return outcome;
  }

  /** Begins an operation. If the memory is full, the oldest is forgotten, ended or not. */
  begin(outcome: EmulatedOutcome | undefined, make: (common: EmulatedOperation) => T): T {
    const operation = make({
      number: this.nextNumber(),
      begunMs: this.#context.now().getTime(),
      checks: outcome?.checks ?? checksDefault,
      asked: 0,
      end: operationEndOf(outcome),
      ended: false,
    });
    this.#remember(operation);
    this.#forgetOldest();
    return operation;
  }

  /** Notes that a service's memory of an operation has changed. */
  changed(operation: T): void {
    this.#measure(operation);
    this.#forgetOldest();
    this.#context.changed();
  }

  /** Ends operations that are due by the clock. */
  endDue(): void {
    const nowMs = this.#context.now().getTime();
    const due = [...this.#running].filter((operation) => dueMs(operation) <= nowMs);
    due.sort((one, other) => dueMs(one) - dueMs(other) || one.number - other.number);
    for (const operation of due) this.end(operation);
  }

  /** Counts a question about an operation, which may be the one that ends it. */
  check(operation: T): void {
    if (operation.ended) return;
    if (operation.asked >= operation.checks) {
      this.end(operation);
      return;
    }
    operation.asked += 1;
    this.#context.changed();
  }

  /** Ends an operation that is in progress: as it was bound to, or otherwise. */
  end(operation: T, end = operation.end): void {
    operation.end = end;
    this.#rules.ending(operation);
    operation.ended = true;
    this.#running.delete(operation);
    this.#context.changed();
  }

  /** Ends all operations in progress. */
  endAll(end: EmulatedEnd): void {
    for (const operation of [...this.#running]) this.end(operation, end);
  }

  saved(): JsonObject {
    return {
      count: BigInt(this.#count),
      failed: [...this.#failed],
      operations: [...this.#remembered.values()].map((operation) => ({
        number: BigInt(operation.number),
        begunMs: BigInt(operation.begunMs),
        checks: BigInt(operation.checks),
        asked: BigInt(operation.asked),
        end: operation.end,
        ended: operation.ended,
        ...this.#rules.saved(operation),
      })),
    };
  }

  /**
   * Takes back the result of `saved`.
   * @throws StateError, with nothing changed.
   */
  restore(saved: StateReader): void {
    const count = saved.at("count").count();
    const failed = saved
      .at("failed")
      .list(rememberedMax)
      .map((key) => key.text());
    let last = 0;
    const operations = saved
      .at("operations")
      .list(rememberedMax)
      .map((each) => {
        const common = readCommon(each, last + 1, count);
        last = common.number;
        return this.#rules.restored(common, each);
      });
    this.reset();
    this.#count = count;
    this.#failed = new Set(failed);
    for (const operation of operations) this.#remember(operation);
  }

  reset(): void {
    this.#remembered = new Map();
    this.#named = new Map();
    this.#running = new Set();
    this.#failed = new Set();
    this.#bytes.clear();
    this.#bytesTotal = 0;
    this.#count = 0;
  }

  #remember(operation: T): void {
    this.#remembered.set(operation.number, operation);
    for (const name of this.#rules.namesOf(operation)) this.#named.set(name, operation);
    if (!operation.ended) this.#running.add(operation);
    this.#measure(operation);
  }

  #measure(operation: T): void {
    const bytes = Buffer.byteLength(writeExact(this.#rules.saved(operation)));
    this.#bytesTotal += bytes - (this.#bytes.get(operation.number) ?? 0);
    this.#bytes.set(operation.number, bytes);
  }

  /** The latest operation stays, however large it is. */
  #forgetOldest(): void {
    for (const oldest of this.#remembered.values()) {
      if (this.#remembered.size <= rememberedMax && this.#bytesTotal <= rememberedBytesMax) break;
      if (this.#remembered.size > 1) this.#forget(oldest);
    }
  }

  #forget(operation: T): void {
    this.#remembered.delete(operation.number);
    this.#bytesTotal -= this.#bytes.get(operation.number) ?? 0;
    this.#bytes.delete(operation.number);
    this.#running.delete(operation);
    for (const name of this.#rules.namesOf(operation)) {
      if (this.#named.get(name) === operation) this.#named.delete(name);
    }
  }
}

const dueMs = (operation: EmulatedOperation) => operation.begunMs + operation.checks * checkMs;

/**
 * The end that an outcome names. An outcome that is no operation's end, such as a doubt about its start or a printer's paper, lets it take
 * its normal course.
 */
export function operationEndOf(outcome: EmulatedOutcome | undefined): EmulatedEnd {
  return operationEnds.find((end) => end === outcome?.name) ?? "approved";
}

function readCommon(saved: StateReader, numberMin: number, count: number): EmulatedOperation {
  return {
    number: Number(saved.at("number").integer(BigInt(numberMin), BigInt(count))),
    begunMs: saved.at("begunMs").count(),
    checks: saved.at("checks").count(),
    asked: saved.at("asked").count(),
    end: saved.at("end").oneOf(operationEnds),
    ended: saved.at("ended").flag(),
  };
}
