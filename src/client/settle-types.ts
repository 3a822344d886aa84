import type { Outcome } from "../core/fault.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Clock } from "../settle/clock.ts";
import type { UnreachableReason } from "../settle/transport.ts";
import type { Token } from "./token.ts";

/** The public types of `settle`: its options, its events, its steps and its result. */

/** What is done next. `start`: the operation is sent. `ask`: the query is. `print`: the copy is printed, once. */
export type Action = "start" | "ask" | "print";

export type SettleEventType = "sent" | "resent" | "asked" | "printing" | "not sent" | "in progress" | "waiting" | "final";

export interface SettleEvent {
  /**
   * `sent`, `resent`, `asked`, `printing` come before it is done; the first event before anything was sent. `resent`: an earlier
   * one may have reached the service. `not sent`: what the event before announced provably didn't leave. `in progress`: the service
   * has it. `waiting`: for `waitMs`.
   */
  readonly type: SettleEventType;
  /**
   * The token by which the operation can be resumed from here: store it before this event's handler returns, in place of the one before.
   * An older one may say that nothing was sent yet, and resumed it would be sent again.
   */
  readonly token: Token;
  readonly waitMs?: number;
  /** Of `not sent`: why no connection could be made, where that is the reason. */
  readonly unreachable?: UnreachableReason | undefined;
  /** Of `not sent`: why, in the service's words. */
  readonly message?: string | undefined;
  /** The answer that was just had: the payment's QR code may be in it. */
  readonly reply?: JsonObject | undefined;
}

export interface SettleOptions {
  /**
   * Milliseconds for which it is followed once the first request has come to an end; default 180000. Where nothing listens at the address,
   * it is tried again after 1, 2, 4, 8 and then every 10 s until then, and is `not-sent` in the end (resumed: `unknown`).
   */
  readonly windowMs?: number;
  /** Milliseconds between two questions; default the contract's, 1000 growing to 2000. */
  readonly intervalMs?: number;
  /**
   * Stops following: the result is then "unknown", unless nothing was ever sent. It doesn't stop the operation. Who waits for one that
   * another caller follows gets "unknown" at once, with a token that is only asked about, while that one follows it on.
   */
  readonly signal?: AbortSignal;
  /**
   * From its abort on nothing more is sent that could begin the operation: no start, and none again. What may have begun is asked
   * about to its end; what was never sent has ended as `not-sent`. The token remembers it.
   */
  readonly askOnly?: AbortSignal;
  /**
   * From its abort on the operation was aborted at the terminal, whose `/abort` was answered with success: only then may an accepted
   * one be gone that isn't found any more. The token remembers it.
   */
  readonly aborted?: AbortSignal;
  /**
   * Called with each step, and awaited. What it throws before anything was sent stops the operation and is thrown on; later nothing
   * may come between a payment and its result, and what it throws is left alone.
   */
  readonly onProgress?: (event: SettleEvent) => void | Promise<void>;
  /** For tests: another clock. */
  readonly clock?: Clock;
}

/** A request of a settle run, for the till's own record. */
export interface SettleStep {
  readonly action: Action;
  readonly route: string;
  /** Milliseconds since the run began. */
  readonly atMs: number;
  readonly outcome: Outcome;
  readonly status: "success" | "error" | undefined;
  readonly code: number | undefined;
  /** The bridge followed it from there. */
  readonly byBridge?: true;
}

export interface Settled<Result extends string = OperationEnd | "unknown" | "not-sent", Data = JsonObject> {
  /**
   * How it ended, as far as that is proven, in the words of `X-Posline-Result`. `unknown` says that nothing is, and is never a failure: of
   * qr's cancel, refund and final_confirm, which can't be asked about, an error that was answered is unknown as well (see `code` and
   * `message`).
   * `not-sent`: the operation itself was never sent, and can't have begun; `message` says why.
   */
  readonly result: Result;
  /** What the service said of it; undefined when it said nothing. */
  readonly data: Data | undefined;
  readonly code: number | undefined;
  readonly message: string | undefined;
  /**
   * Of a qr payment the transaction id by which it is confirmed, cancelled or refunded (qr.md, Endpoints: data.trans must be saved and
   * used); undefined where none is proven, and of all other operations.
   */
  readonly trans: string | undefined;
  readonly steps: readonly SettleStep[];
  readonly token: Token;
}
