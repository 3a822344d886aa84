import type { Followed } from "./followed.ts";
import type { JsonObject } from "./json-object.ts";
import type { Presence } from "./presence.ts";

/**
 * The words every room speaks: a call goes in, a reply comes out.
 *
 * A call carries the body exactly as its sender wrote it, as the pieces in which it came. Nothing between the two ends
 * re-serialises it: integers beyond 2^53, key order, white space and unknown fields survive, and a fiscal sign stays valid.
 */

/** The contracts by which services are asked. */
export type ContractName = "fiscal" | "bank" | "qr";

export const contractNames: readonly ContractName[] = ["fiscal", "bank", "qr"];

/** A service's name in the configuration: its contract's, or one of its own where a box has several of that contract. */
export type ServiceName = string;

/** One request to a service, on its way from a listener to a caller. */
export interface Call {
  readonly service: ServiceName;
  readonly contract: ContractName;
  /** With its leading slash, as the contract writes it: `/sale`. */
  readonly route: string;
  /**
   * The body verbatim. Bank and qr: the JSON text, no piece when there is no body. Fiscal: the form
   * `data=<Base64>&sign=<Base64>`, each value as its sender escaped it.
   */
  readonly body: readonly Buffer[];
  /** Fit for a log line: at most 64 characters of `[A-Za-z0-9._-]`. Unique only where its client gave none, and no trace. */
  readonly requestId: string;
  /** Tells it from every other call, where its request id is its client's word or its trace's; absent where the request id does. */
  readonly callId?: string | undefined;
  /** The W3C `traceparent` with which it came, or which a gateway made for it: valid, and passed on as it is. */
  readonly trace?: string | undefined;
  /** What the sender calls the operation, for logs: pay_id or documentExtID. */
  readonly key: string | undefined;
  readonly caller: Presence;
  /** Milliseconds for which its caller waits for the operation's end (`Prefer: wait`); undefined: for its own answer alone. */
  readonly followMs?: number | undefined;
  /** What was known when it was decided to send a followed one. */
  readonly decided?: Decided;
  /** Asked by posline itself: sent only when no other call waits. */
  readonly background?: boolean;
}

/** What was known of a key when it was decided to send an operation under it. */
export interface Decided {
  /** What the terminal had there: "" for nothing; undefined where it wasn't asked, though it may have another operation there. */
  readonly before: string | undefined;
  /** The fields of its body that name it in a question, to the digit. */
  readonly names: JsonObject;
  /** Nothing was sent under its key since. */
  readonly stands: () => boolean;
}

/** What the service answered, byte for byte. */
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
  /** How the operation ended, where it was followed. */
  readonly followed?: Followed;
  /** It answers several identical calls at once. */
  readonly isJoined?: true;
}

/**
 * The one shape by which the rooms meet.
 * @throws Fault, whose outcome says whether the request was sent.
 */
export type Handler = (call: Call) => Promise<Reply>;
