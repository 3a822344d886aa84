import type { JsonObject } from "../../core/json-object.ts";
import { writeExact } from "./exact-json.ts";
import { FailedOnce } from "./failed-once.ts";
import type { EmulatedOutcome } from "./faults/magic-amounts.ts";
import { rememberedBytesMax, rememberedMax, type ServiceContext } from "./service-context.ts";

/**
 * Operations that are begun, asked about and come to an end, as bank and qr have them. An operation is in progress for as many questions as
 * its outcome says, and for as long as a till takes to ask them: an end doesn't wait for a till that has gone away, just as a customer
 * doesn't. Ends by the clock are found at the next request of any kind, and take effect in the order in which they were due, so that nobody
 * can tell that they were found late.
 *
 * An operation's subject, and the effects of its end, are its service's affair.
 */

/** Ends of an operation; "exhausted" would be approved, had its original so much left. */
const operationEnds = ["approved", "declined", "cancelled", "card-timeout", "reversed", "exhausted"] as const;

export type EmulatedEnd = (typeof operationEnds)[number];

export interface EmulatedOperation extends JsonObject {
  /** Counted from 1, for all operations of a service. */
  readonly number: bigint;
  readonly begunMs: bigint;
  /** How many questions are answered "in progress". */
  readonly checks: bigint;
  /** How many were answered so until now. */
  asked: bigint;
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
}

/** What is remembered of operations. */
export interface SavedOperations<T extends EmulatedOperation> extends JsonObject {
  readonly count: bigint;
  /** As `FailedOnce` saves them. */
  readonly failed: readonly string[];
  readonly operations: readonly T[];
}

/** Questions that are answered "in progress" in a normal course: one is enough to find out a till that doesn't poll. */
const checksDefault = 1n;

/** Milliseconds that a till takes for a question (Endpoints, rule 1, and flow rule 2: every 1000-2000 ms). */
export const checkMs = 2000n;

/** How an operation stands, in a word. */
export const standOf = ({ ended, end }: EmulatedOperation) => (ended ? end : "in progress");

export const isApproved = (operation: EmulatedOperation) => operation.ended && operation.end === "approved";

export class OperationStore<T extends EmulatedOperation> {
  readonly #context: ServiceContext;
  readonly #rules: OperationRules<T>;
  /** Operations by number, the oldest first. */
  #remembered = new Map<bigint, T>();
  #named = new Map<string, T>();
  #running = new Set<T>();
  /** Bytes of JSON of each operation when it was last remembered. */
  readonly #bytes = new Map<bigint, number>();
  #bytesTotal = 0;
  #failed: FailedOnce;
  #count = 0n;

  constructor(context: ServiceContext, kind: OperationRules<T>) {
    this.#context = context;
    this.#rules = kind;
    this.#failed = new FailedOnce(context);
  }

  /** The latest operation with a name. */
  named(name: string): T | undefined {
    return this.#named.get(name);
  }

  numbered(number: bigint): T | undefined {
    return this.#remembered.get(number);
  }

  all(): Iterable<T> {
    return this.#remembered.values();
  }

  /** A number that nothing else has. */
  nextNumber(): bigint {
    this.#count += 1n;
    this.#context.changed();
    return this.#count;
  }

  /** As `FailedOnce` says. */
  outcomeOf(route: string, amount: bigint, key: string): EmulatedOutcome | undefined {
    return this.#failed.outcomeOf(route, amount, key);
  }

  /** Begins an operation. If the memory is full, the oldest is forgotten, ended or not. */
  begin(outcome: EmulatedOutcome | undefined, make: (common: EmulatedOperation) => T): T {
    const operation = make({
      number: this.nextNumber(),
      begunMs: BigInt(this.#context.now().getTime()),
      checks: outcome?.checks === undefined ? checksDefault : BigInt(outcome.checks),
      asked: 0n,
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
    const nowMs = BigInt(this.#context.now().getTime());
    const due = [...this.#running].filter((operation) => dueMs(operation) <= nowMs);
    due.sort((one, other) => Number(dueMs(one) - dueMs(other) || one.number - other.number));
    for (const operation of due) this.end(operation);
  }

  /** Counts a question about an operation, which may be the one that ends it. */
  check(operation: T): void {
    if (operation.ended) return;
    if (operation.asked >= operation.checks) {
      this.end(operation);
      return;
    }
    operation.asked += 1n;
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

  saved(): SavedOperations<T> {
    return { count: this.#count, failed: this.#failed.saved(), operations: [...this.#remembered.values()] };
  }

  /** Takes back the result of `saved`. */
  restore({ count, failed, operations }: SavedOperations<T>): void {
    this.reset();
    this.#count = count;
    this.#failed = new FailedOnce(this.#context, failed);
    for (const operation of operations) this.#remember(operation);
  }

  reset(): void {
    this.#remembered = new Map();
    this.#named = new Map();
    this.#running = new Set();
    this.#failed = new FailedOnce(this.#context);
    this.#bytes.clear();
    this.#bytesTotal = 0;
    this.#count = 0n;
  }

  #remember(operation: T): void {
    this.#remembered.set(operation.number, operation);
    for (const name of this.#rules.namesOf(operation)) this.#named.set(name, operation);
    if (!operation.ended) this.#running.add(operation);
    this.#measure(operation);
  }

  #measure(operation: T): void {
    // Without how far it is, so that a restored memory forgets the same as the saved one.
    const bytes = Buffer.byteLength(writeExact({ ...operation, asked: 0n, end: "", ended: false }));
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
