import type { Call } from "../core/call.ts";
import type { Outcome } from "../core/fault.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { Route } from "./contract.ts";

/**
 * The line's side of the journal of money: a request that moves money, prints or changes state is recorded before its first byte goes out,
 * and its outcome before the caller learns it. Where the record is kept is not the line's affair.
 */
export interface OperationLog {
  /** @throws Fault if a call that has just come is the copy of one that was on the line when the process before ended. */
  refuseCopy(call: Call, route: Route): void;
  /**
   * Begins the entry of a call whose turn has come. Nothing is written yet.
   * @param device The mark of the line's device, if known.
   */
  begin(call: Call, route: Route, device?: string): OperationLogEntry;
}

/** The entry of one call. */
export interface OperationLogEntry {
  /**
   * Records that the call is sent. Settles once the record is on the disk, or the policy says to go on without.
   * @throws Fault `unavailable` if the request must not be sent.
   */
  sent(): Promise<void>;
  /**
   * Records the ending; called once, after `sent` was called, whether that succeeded or not. Settles once the outcome is on the disk or
   * can't be had there; never rejects.
   * @returns the operation's end, if the answer alone proves it.
   */
  ended(ending: OperationLogEnding): Promise<OperationEnd | undefined>;
}

/** The outcome that the caller learns. */
export interface OperationLogEnding {
  readonly outcome: Outcome;
  /** `status` and `code` of the answer, if one came. */
  readonly status?: string | undefined;
  readonly code?: number | undefined;
  /** The answer's bytes, of which the record takes the name by which the contract asks about the operation. */
  readonly payload?: readonly Buffer[] | undefined;
  /** True if the caller had left by then. */
  readonly left?: boolean | undefined;
}
