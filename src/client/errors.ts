import type { ServiceName } from "../core/call.ts";
import type { FaultReason, Outcome } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { UnreachableReason } from "../settle/transport.ts";

/**
 * A call that didn't succeed is one of three things, and a till must never take one for another: it was not sent, its outcome is
 * unknown, or the service answered with an error.
 */

export interface CallFailure {
  readonly service: ServiceName;
  /** With its leading slash. */
  readonly route: string;
  readonly message: string;
  /** The code in the answer's envelope: the service's own, or the one posline put into a fault. */
  readonly code?: number | undefined;
  readonly httpStatus?: number | undefined;
  /** Why it was not answered, where posline said so: a word of a closed list, for a till's own texts. */
  readonly reason?: FaultReason | undefined;
  /** What to do next, by the contract. */
  readonly advice: string;
}

/** What all failures of a call have in common. */
export abstract class CallError extends Error {
  abstract readonly outcome: Outcome;
  readonly service: ServiceName;
  readonly route: string;
  readonly code: number | undefined;
  readonly httpStatus: number | undefined;
  readonly reason: FaultReason | undefined;
  readonly advice: string;

  constructor({ service, route, message, code, httpStatus, reason, advice }: CallFailure) {
    super(message);
    this.service = service;
    this.route = route;
    this.code = code;
    this.httpStatus = httpStatus;
    this.reason = reason;
    this.advice = advice;
  }
}

/** Nothing reached the service: the same request may be sent again. */
export class NotSentError extends CallError {
  override readonly name = "NotSentError";
  override readonly outcome = "not-sent";
  /** True when waiting helps; false when the request or the settings have to be corrected first. */
  readonly passing: boolean;
  /** Milliseconds to wait before the next attempt, where the answer said so. */
  readonly retryAfterMs: number | undefined;
  /** Set where no connection could be made: nothing listens at the address, or the host's name has no address. */
  readonly unreachable: UnreachableReason | undefined;

  constructor(failure: CallFailure, passing: boolean, retryAfterMs: number | undefined, unreachable?: UnreachableReason) {
    super(failure);
    this.passing = passing;
    this.retryAfterMs = retryAfterMs;
    this.unreachable = unreachable;
  }
}

/** The operation may have been carried out or not: ask before anything else. Never a failure. */
export class UnknownError extends CallError {
  override readonly name = "UnknownError";
  override readonly outcome = "unknown";
}

/** The service answered with status "error". What that means for the operation is the contract's affair; see `advice`. */
export class RejectedError extends CallError {
  override readonly name = "RejectedError";
  override readonly outcome = "answered";
  /** The whole answer. */
  readonly reply: JsonObject;
  /** The answer doesn't say how the operation ends: ask before another one is begun in its place. */
  readonly leavesOpen: boolean;

  constructor(failure: CallFailure, reply: JsonObject, leavesOpen: boolean) {
    super(failure);
    this.reply = reply;
    this.leavesOpen = leavesOpen;
  }

  /** `data` of the answer: of a failed bank operation, its transaction result. */
  get data(): unknown {
    return this.reply["data"];
  }
}
