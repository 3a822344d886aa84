import type { ContractName } from "./call.ts";
import type { Followed } from "./followed.ts";

/**
 * Posline's own answers to failed exchanges. A till's only question is "was it sent?", so every fault carries an outcome, and its kind
 * fixes the HTTP status.
 */

/** `not-sent`: may be sent again. `unknown`: it may have been carried out; check first. */
export type FaultOutcome = "not-sent" | "unknown";

/** Every answer's `X-Posline-Outcome`. */
export type Outcome = FaultOutcome | "answered";

/**
 * Why a call was refused or failed: every fault's `X-Posline-Reason`, and what it means. A till shows its own words for these, in its own
 * language; the list is closed, and what a word means stays.
 */
export const faultReasons = {
  "malformed-request": "the body is not what the contract asks for",
  "missing-parameter": "a required parameter, or the body, is missing",
  "wrong-sign": "the fiscal sign is wrong",
  "not-http": "the request is not HTTP/1.1",
  "wrong-key": "the API key is missing or wrong",
  "origin-not-allowed": "the page's origin is not in `allowOrigins`",
  "host-not-allowed": "the Host is not in `allowHosts`",
  "unknown-route": "the service has no such route",
  "wrong-method": "the route takes another HTTP method",
  "request-too-slow": "the request was not complete in time",
  "request-too-large": "the body is larger than `bodyBytesMax`",
  "headers-too-large": "the headers are too large",
  "too-many-requests": "too many requests of one connection wait, or the bodies of all take too much memory",
  "key-reused":
    "the same key was sent before with another body, or by another service over the same device (`Prefer: wait` only)",
  "too-many-followed": "as many operations of the service are followed as may be (`Prefer: wait` only)",
  "not-configured": "no service is configured on this port",
  "cannot-ask": "the terminal refuses the question that comes before the call (`Prefer: wait` only)",
  "line-down": "the line's device is not open",
  recovering: "the line is not proven clean yet after a lost answer or an opening",
  "queue-full": "as many calls wait as may (`queueCallsMax`)",
  "waited-too-long": "the line stayed busy with other calls for `queueWaitMs`",
  "not-recorded": "the journal could not record the call before it was sent",
  "caller-left": "the client disconnected, or shut down its side of the connection, before the call was sent",
  stopping: "posline stops, or this line's configuration changed",
  "upstream-unreachable": "a gateway's upstream can't be connected to",
  "upstream-refused": "a gateway's upstream refused the request by its HTTP status",
  "internal-error": "a bug in posline",
  "no-reply": "sent, and no reply came in time",
  "no-question": "sent, and its contract has no question about how it ended: this will not change (`Prefer: wait` only)",
  "sent-before": "the same request was on the line when posline stopped, and isn't sent once more",
  "reply-corrupt": "sent, and the reply is not whole and correct",
  "reply-too-large": "sent, and the reply is larger than `replyBytesMax`",
  "reply-ambiguous": "sent, and the reply may answer an earlier request",
  "line-lost": "sent, and the device was lost before the reply",
  "connection-lost": "sent, and the upstream's connection was lost before the reply",
} as const satisfies Record<string, string>;

export type FaultReason = keyof typeof faultReasons;

/**
 * Seconds after which a call that wasn't sent is worth sending again, by reason: its `Retry-After`. A request that fails again whenever it
 * comes, or that was sent, has none.
 */
export const retryAfterS: Readonly<Partial<Record<FaultReason, number>>> = {
  // The requests of a connection end one after the other, most of them within a second.
  "too-many-requests": 1,
  // Followed operations end, or are given up after some minutes.
  "too-many-followed": 5,
  // A person has to see to the terminal, but a call costs it one question alone.
  "cannot-ask": 10,
  // The device is tried once a second; calls that come while it recovers wait by themselves.
  "line-down": 2,
  // The call has waited for `queueWaitMs` already, and a silent terminal is given 30 s in all (`lateReplyMs`).
  recovering: 10,
  // An exchange has to end, and calls before it to go out: a card payment's answer takes seconds.
  "queue-full": 5,
  "waited-too-long": 5,
  // A disk that failed is tried again after 5 s.
  "not-recorded": 5,
  // The caller doesn't read this answer, but a proxy in between may.
  "caller-left": 1,
  // A restart takes some seconds with an exchange in flight.
  stopping: 5,
};

/** True if a word from elsewhere, such as another posline, is one of these. */
export function isFaultReason(word: unknown): word is FaultReason {
  return typeof word === "string" && Object.hasOwn(faultReasons, word);
}

interface FaultClass {
  readonly httpStatus: number;
  readonly outcome: FaultOutcome;
  /** The reason, if nothing more is known. */
  readonly reason: FaultReason;
}

/** The kinds of faults, each with its HTTP status and outcome. */
export const faultClasses = {
  /** The body is not what the contract's envelope asks for (fiscal 2, bank -29, qr 1). */
  malformed: { httpStatus: 400, outcome: "not-sent", reason: "malformed-request" },
  /** A required parameter is missing (fiscal 3, bank -29, qr 1). */
  missing: { httpStatus: 400, outcome: "not-sent", reason: "missing-parameter" },
  /** A date isn't written as the contract has it (fiscal 14). */
  date: { httpStatus: 400, outcome: "not-sent", reason: "malformed-request" },
  /** An amount is a whole number, but one that the contract doesn't allow (fiscal 4). */
  amount: { httpStatus: 400, outcome: "not-sent", reason: "malformed-request" },
  /** The fiscal sign is wrong (fiscal 1). */
  sign: { httpStatus: 400, outcome: "not-sent", reason: "wrong-sign" },
  /** The HTTP message itself is broken. */
  http: { httpStatus: 400, outcome: "not-sent", reason: "not-http" },
  key: { httpStatus: 401, outcome: "not-sent", reason: "wrong-key" },
  origin: { httpStatus: 403, outcome: "not-sent", reason: "origin-not-allowed" },
  route: { httpStatus: 404, outcome: "not-sent", reason: "unknown-route" },
  method: { httpStatus: 405, outcome: "not-sent", reason: "wrong-method" },
  slow: { httpStatus: 408, outcome: "not-sent", reason: "request-too-slow" },
  size: { httpStatus: 413, outcome: "not-sent", reason: "request-too-large" },
  host: { httpStatus: 421, outcome: "not-sent", reason: "host-not-allowed" },
  /** The operation's key belongs to another call. */
  reused: { httpStatus: 422, outcome: "not-sent", reason: "key-reused" },
  headers: { httpStatus: 431, outcome: "not-sent", reason: "headers-too-large" },
  /** Posline or its line can't send the call: down, recovering, queue full, waited too long, shutting down. */
  unavailable: { httpStatus: 503, outcome: "not-sent", reason: "internal-error" },
  /** Sent, and no reply within the time allowed. */
  timeout: { httpStatus: 504, outcome: "unknown", reason: "no-reply" },
  /** Sent, and the reply is corrupt or not a JSON object, or the line was lost before it came. */
  broken: { httpStatus: 502, outcome: "unknown", reason: "internal-error" },
} as const satisfies Record<string, FaultClass>;

export type FaultKind = keyof typeof faultClasses;

/** Details a fault may carry beside its kind and message. */
export interface FaultDetails {
  /** The reason, if the kind alone doesn't say it. */
  readonly reason?: FaultReason | undefined;
  /** Seconds for `Retry-After`, if not as its reason says. */
  readonly retryAfterS?: number | undefined;
  /** Methods that the route takes, for `Allow`. */
  readonly allow?: readonly string[];
  /** The body in which an upstream posline reported the fault: passed on as it is, in place of the message. */
  readonly payload?: readonly Buffer[];
  /** Milliseconds spent waiting and on the line before it failed. */
  readonly queueMs?: number;
  readonly lineMs?: number;
  /** The operation's state, if it was followed. */
  readonly followed?: Followed;
  /** Set if something was sent before under the key: that this call wasn't sent says nothing of that. */
  readonly sentBefore?: true;
  /** True if it answers several identical calls at once. */
  readonly isJoined?: true;
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

  get reason(): FaultReason {
    return this.details.reason ?? faultClasses[this.kind].reason;
  }

  get httpStatus(): number {
    return faultClasses[this.kind].httpStatus;
  }

  /** Seconds after which the call is worth sending again; undefined if it was sent, or if waiting doesn't help. */
  get retryAfterS(): number | undefined {
    return this.outcome === "not-sent" ? (this.details.retryAfterS ?? retryAfterS[this.reason]) : undefined;
  }
}

/** Ends the message of a fault that isn't the request's own. */
export const nothingSent = "Nothing was sent: it may be sent again, unless an earlier try is in doubt";

/** Advice after an unknown outcome of a call that only reads. */
export const askAgain = "Nothing was changed: send the request again";

/** Advice after an unknown outcome of an operation without a name by which it could be asked about, as far as posline knows. */
export const checkByEye =
  "Outcome unknown, it may have been carried out, and posline has no name to ask by: look at the terminal";

/** Advice after an unknown outcome of what refers to a payment, and must not be sent again blindly (contracts: recovery rules). */
export const checkOriginal =
  "Outcome unknown, it may have been carried out, and /check may show the payment that it refers to in its place: look at the terminal";

/** How to learn the truth after an unknown outcome, by service (contracts: recovery rules). */
export const checkFirst: Readonly<Record<ContractName, string>> = {
  fiscal: "Outcome unknown, it may have been carried out: call /check_status with the same documentExtID before sending again",
  bank: "Outcome unknown, it may have been carried out: call /check with the same pay_id",
  qr: "Outcome unknown, it may have been carried out: call /check with the same pay_id and trans",
};
