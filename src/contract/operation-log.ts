import type { Call } from "../core/call.ts";
import type { Outcome } from "../core/fault.ts";
import type { Route } from "./contract.ts";

/**
 * The line's side of the journal of money: what moves money, prints or changes state is recorded before its first byte goes out,
 * and its outcome before the caller learns it. Where the record is kept the line doesn't know.
 */
export interface OperationLog {
  /** @throws Fault where a call that has just come is the copy of one that was on the line when the process before ended. */
  refuseCopy(call: Call, route: Route): void;
  /**
   * Begins the entry of a call whose turn has come. Nothing is written yet.
   * @param device The mark of the line's device, where it is known.
   */
  begin(call: Call, route: Route, device?: string): OperationLogEntry;
}

/** One call in the ledger. */
export interface OperationLogEntry {
  /**
   * Records that the call is sent. Settles once the record is on the disk, or when the policy says to go on without.
   * @throws Fault `unavailable` when the request must not be sent.
   */
  sent(): Promise<void>;
  /**
   * Records how it ended; called once, after `sent` was called, whatever became of that. Settles once the outcome is on the disk
   * or can't be had there; never rejects.
   */
  ended(ending: OperationLogEnding): Promise<void>;
}

/** What the caller learns. */
export interface OperationLogEnding {
  readonly outcome: Outcome;
  /** `status` and `code` of the answer, where one came. */
  readonly status?: string | undefined;
  readonly code?: number | undefined;
  /** Its bytes, of which the record takes the name by which the contract asks about the operation. */
  readonly payload?: readonly Buffer[] | undefined;
  /** The caller had left by then. */
  readonly left?: boolean | undefined;
}
