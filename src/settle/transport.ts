import type { ContractName, ServiceName } from "../core/call.ts";
import type { FaultReason, Outcome } from "../core/fault.ts";
import type { OperationResult } from "../core/followed.ts";

/**
 * What carries a request to a service and its answer back: HTTP, or a line. It sends each request once and says what became of it.
 */

export interface TransportRequest {
  /** By its name: its contract's, or one of its own. */
  readonly service: ServiceName;
  readonly contract: ContractName;
  /** With its leading slash. */
  readonly route: string;
  /** GET where the contract has it and there is nothing to say. */
  readonly method: "GET" | "POST";
  /** Bank and qr: JSON. Fiscal: the signed form, percent-encoded. undefined for a route that takes none. */
  readonly body: string | undefined;
  /** From its abort on it may not be sent any more, and is `not-sent`; one that has left is waited for. */
  readonly withdrawn?: AbortSignal | undefined;
  /** Seconds for which the bridge is asked to follow the operation (`Prefer: wait`), where the transport can ask it. */
  readonly waitS?: number | undefined;
}

/** What became of a request. Whatever isn't proven to be unsent or answered is `unknown`. */
export interface Answer {
  readonly outcome: Outcome;
  /** The body that came back, if any: the service's answer, or a fault in the service's envelope. */
  readonly text: string | undefined;
  readonly httpStatus: number | undefined;
  /** Milliseconds after which it may be tried again, where that was said. */
  readonly retryAfterMs: number | undefined;
  /** Why it was not answered, where posline said so (`X-Posline-Reason`). */
  readonly reason: FaultReason | undefined;
  /** The outcome in words, where no body says it. */
  readonly failure: string | undefined;
  /** Why no connection could be made, where that is why it wasn't sent. */
  readonly unreachable?: UnreachableReason | undefined;
  /** How the operation stands, where the bridge followed it. */
  readonly followed?: FollowedAnswer | undefined;
}

/** A bridge's word for an operation that it followed. */
export interface FollowedAnswer {
  readonly result: OperationResult;
  /** The query whose answer it gives, where that isn't the operation's own. */
  readonly answerOf: string | undefined;
  /** If the same call comes again, it is only asked about. */
  readonly isGuarded: boolean;
  /** The name that only the terminal's answer gives (qr: `trans`), where it is proven. */
  readonly trans?: string | undefined;
}

/** Why no connection could be made: nothing listens at the address, or the host's name has no address. */
export type UnreachableReason = "refused" | "no-address";

export interface Transport {
  /**
   * Sends one request, once. Resolves whatever becomes of it; a rejection counts as `unknown`.
   * @param signal Ends the waiting; what it was is then `unknown`, unless the transport says at once that nothing was sent.
   */
  send(request: TransportRequest, signal: AbortSignal): Promise<Answer>;
  /** Gives back what it holds. */
  close(): Promise<void>;
}

/** A failure without an answer's body. */
export function failedAnswer(outcome: "not-sent" | "unknown", failure: string): Answer {
  return { outcome, text: undefined, httpStatus: undefined, retryAfterMs: undefined, reason: undefined, failure };
}
