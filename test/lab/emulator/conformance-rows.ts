import type { ContractName } from "../../../src/core/call.ts";
import type { EmulatedOutcome } from "../../../src/lab/emulator/faults/magic-amounts.ts";

/**
 * What each route of the three contracts answers: its success, each code that the contract allows for it, and a resend. One
 * table for both transports.
 */

export type Json = Readonly<Record<string, unknown>>;

/** One request; `raw` goes out as it is, in place of a body that is made of JSON. */
export interface Ask {
  readonly route: string;
  readonly body?: Json;
  readonly raw?: string;
  /** Fiscal: a sign that doesn't fit. */
  readonly badSign?: true;
}

export interface Row extends Ask {
  readonly service: ContractName;
  /** `success`, `resend`, or the code. */
  readonly case: "success" | "resend" | number;
  /** More than one row may show the same case. */
  readonly why?: string;
  readonly before?: readonly Ask[];
  /** Forced upon the last request. */
  readonly outcome?: EmulatedOutcome;
  /** Paths that a success must have: `data.rrn`. */
  readonly has?: readonly string[];
}
