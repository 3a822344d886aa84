import type { Followed, Ids, OperationEnd } from "./followed.ts";
import type { JsonObject } from "./json-object.ts";
import type { Presence } from "./presence.ts";

/**
 * The words every room speaks: a call goes in, a reply comes out.
 *
 * A call carries the body exactly as its sender wrote it, as the pieces in which it came. Nothing between the two ends
 * re-serialises it: integers beyond 2^53, key order, white space and unknown fields survive, and a fiscal sign stays valid.
 */

/** The contracts by which services are asked. */
export const contractNames = ["fiscal", "bank", "qr"] as const;

export type ContractName = (typeof contractNames)[number];

/** A service's name in the configuration: its contract's, or one of its own if a box has several of that contract. */
export type ServiceName = string;

/** The money that a request names, for those who watch. */
export interface Amount {
  /** Whole minor units. */
  readonly digits: string;
  /** The currency's three letters, if the request has them. */
  readonly currency: string | undefined;
}

/** A request to a service, on its way from a listener to a caller. */
export interface Call {
  readonly service: ServiceName;
  readonly contract: ContractName;
  /** The route with its leading slash, as the contract writes it: `/sale`. */
  readonly route: string;
  /**
   * The body verbatim. Bank and qr: the JSON text, empty if there is no body. Fiscal: the form `data=<Base64>&sign=<Base64>`, each value as
   * its sender escaped it.
   */
  readonly body: readonly Buffer[];
  /** An id fit for a log line: at most 64 characters of `[A-Za-z0-9._-]`. Unique only if its client gave none, and no trace. */
  readonly requestId: string;
  /** An id that no other call has, if the request id is its client's word or its trace's; absent if the request id is unique itself. */
  readonly callId?: string | undefined;
  /** The W3C `traceparent` with which the call came, or which a gateway made for it: valid, and passed on as it is. */
  readonly trace?: string | undefined;
  /** The sender's name of the operation, for logs: pay_id or documentExtID. */
  readonly key: string | undefined;
  readonly amount?: Amount | undefined;
  /** Of a question of posline's own: the `callId` of the call whose operation it asks about. */
  readonly about?: string | undefined;
  readonly caller: Presence;
  /** Milliseconds for which the caller waits for the operation's end (`Prefer: wait`); undefined: for the call's own answer alone. */
  readonly followMs?: number | undefined;
  /** Facts by which it was decided to send a followed call. */
  readonly decided?: Decided;
  /** True if posline itself asks: sent only when no other call waits. */
  readonly background?: boolean;
}

/** Facts about a key by which it was decided to send an operation under it. */
export interface Decided {
  /** What the terminal had under the key before: `{}` for nothing; undefined if that isn't known. */
  readonly before: Ids | undefined;
  /** The body's fields that name the operation in a question, to the digit. */
  readonly names: JsonObject;
  /** True if nothing was sent under the key since. */
  readonly stands: () => boolean;
}

/** A service's answer, byte for byte. */
export interface Reply {
  /** The JSON text as it came, as views of the buffers it was read into. */
  readonly payload: readonly Buffer[];
  /** `status` and `code` read from the payload, for logs and rules. */
  readonly status: string | undefined;
  readonly code: number | undefined;
  /** Milliseconds spent waiting for the line. */
  readonly queueMs: number;
  /** Milliseconds from the first byte written to the last byte read. */
  readonly lineMs: number;
  /** The operation's end, if it was followed. */
  readonly followed?: Followed;
  /** The operation's end, if this answer alone proves it; for those who watch. */
  readonly end?: OperationEnd | undefined;
  /** True if it answers several identical calls at once. */
  readonly isJoined?: true;
}

/**
 * The one shape by which the rooms meet.
 * @throws Fault, whose outcome says whether the request was sent.
 */
export type Handler = (call: Call) => Promise<Reply>;
