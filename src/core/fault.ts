import type { ServiceName } from "./call.ts";

/**
 * What posline itself answers when an exchange fails. The one question a till has is "was it sent?", so every fault
 * carries an outcome, and its kind fixes the HTTP status.
 */

/** `not-sent`: safe to send again. `unknown`: it may have been carried out; check first. */
export type FaultOutcome = "not-sent" | "unknown";

/** Every answer's `X-Posline-Outcome`. */
export type Outcome = FaultOutcome | "answered";

interface FaultClass {
  readonly httpStatus: number;
  readonly outcome: FaultOutcome;
}

/** Each kind of fault with its HTTP status and outcome. */
export const faultClasses = {
  /** The body is not what the contract's envelope asks for (fiscal 2, bank -29, qr 1). */
  malformed: { httpStatus: 400, outcome: "not-sent" },
  /** A required parameter is missing (fiscal 3, bank -29, qr 1). */
  missing: { httpStatus: 400, outcome: "not-sent" },
  /** The fiscal sign is wrong (fiscal 1). */
  sign: { httpStatus: 400, outcome: "not-sent" },
  /** The HTTP message itself is broken. */
  http: { httpStatus: 400, outcome: "not-sent" },
  key: { httpStatus: 401, outcome: "not-sent" },
  origin: { httpStatus: 403, outcome: "not-sent" },
  route: { httpStatus: 404, outcome: "not-sent" },
  method: { httpStatus: 405, outcome: "not-sent" },
  slow: { httpStatus: 408, outcome: "not-sent" },
  size: { httpStatus: 413, outcome: "not-sent" },
  host: { httpStatus: 421, outcome: "not-sent" },
  headers: { httpStatus: 431, outcome: "not-sent" },
  /** Not sent because of posline or its line: down, recovering, queue full, waited too long, shutting down. */
  unavailable: { httpStatus: 503, outcome: "not-sent" },
  /** Sent, and no reply within the time allowed. */
  timeout: { httpStatus: 504, outcome: "unknown" },
  /** Sent, and the reply is corrupt or not a JSON object, or the line was lost before it came. */
  broken: { httpStatus: 502, outcome: "unknown" },
} as const satisfies Record<string, FaultClass>;

export type FaultKind = keyof typeof faultClasses;

/** Details a fault may carry beside its kind and message. */
export interface FaultDetails {
  /** Seconds for `Retry-After`, when waiting helps. */
  readonly retryAfterS?: number;
  /** Methods that the route takes, for `Allow`. */
  readonly allow?: readonly string[];
  /** The body in which an upstream posline reported the fault: passed on as it is, in place of the message. */
  readonly payload?: readonly Buffer[];
  /** Milliseconds spent waiting and on the line before it failed. */
  readonly queueMs?: number;
  readonly lineMs?: number;
}

/** A failed exchange. Its message says the action, a colon, the state, and what to do next, with no full stop at the end. */
export class Fault extends Error {
  override readonly name = "Fault";
  readonly kind: FaultKind;
  readonly details: FaultDetails;

  constructor(kind: FaultKind, message: string, details: FaultDetails = {}) {
    super(message);
    this.kind = kind;
    this.details = details;
  }

  get outcome(): FaultOutcome {
    return faultClasses[this.kind].outcome;
  }

  get httpStatus(): number {
    return faultClasses[this.kind].httpStatus;
  }
}

/** Ends the message of a fault that isn't the request's own: whatever it was, it may be sent again. */
export const nothingSent = "Nothing was sent, it is safe to send again";

/** What to do after an unknown outcome of what only reads. */
export const askAgain = "Nothing was changed: send the request again";

/** How to learn the truth after an unknown outcome, by service (contracts: recovery rules). */
export const checkFirst: Readonly<Record<ServiceName, string>> = {
  fiscal: "Outcome unknown, it may have been carried out: call /check_status with the same documentExtID before sending again",
  bank: "Outcome unknown, it may have been carried out: call /check with the same pay_id",
  qr: "Outcome unknown, it may have been carried out: call /check with the same pay_id and trans",
};
