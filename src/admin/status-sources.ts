import type { ContractName, ServiceName } from "../core/call.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { LogHealth } from "../core/log.ts";

/** The sources of the status, as interfaces: lines, ports and a journal implement them without importing them. */

/** A bridge's line is down, recovering, idle, awaiting or closed; a gateway's is down or open. */
export type StatusLineState = "down" | "recovering" | "idle" | "awaiting" | "closed" | "open";

/** Whether a service's terminal answers, as far as is known; see `trouble/liveness`. */
export interface LiveService {
  readonly service: ServiceName;
  readonly state: "heard" | "unheard" | "unproven";
  /** When the service replied last, on `nowMs`'s scale; undefined if it did not since the line opened. */
  readonly heardMs: number | undefined;
  /** Why the service is probably unheard, and what to do; undefined unless it is. */
  readonly cause: { readonly cause: string; readonly cure: string } | undefined;
  /** Why the service probably answers posline's own question with an error, and what to do; undefined unless it does. */
  readonly refusal?: { readonly cause: string; readonly cure: string } | undefined;
}

/** A line as it is now, read at each request for the status. */
export interface LiveLine {
  readonly state: StatusLineState;
  /** Why the line is in its state, for people. */
  readonly reason: string;
  /** The device's real node while it is open, if known. */
  readonly device?: string | undefined;
  /** Calls in the send queue; undefined in a gateway, which has no queue. */
  readonly waiting?: number | undefined;
  /** Milliseconds by which something due is late. */
  stalledMs?(now: number): number;
  /** The state of each service of the line; absent in a gateway, which has no terminal at the other end. */
  liveness?(now: number): readonly LiveService[];
}

/** Counts of a line's traffic since posline began; see `capture/line-traffic`. */
export interface LineTrafficCounts {
  readonly sentBytes: number;
  readonly sentFrames: number;
  readonly receivedBytes: number;
  readonly receivedFrames: number;
  /** Counts of each service's probes, by ending. */
  readonly probes: ReadonlyMap<ServiceName, Readonly<Record<"answered" | "refused" | "unanswered", number>>>;
}

export interface LineSource {
  readonly name: string;
  /** The device as configured. */
  readonly path: string;
  /** Calls that may wait. */
  readonly queueCallsMax?: number | undefined;
  /** Absent if traffic isn't counted. */
  readonly traffic?: LineTrafficCounts | undefined;
  readonly live: LiveLine;
}

export interface ServiceSource {
  readonly service: ServiceName;
  /** The contract that the service has, if known. */
  readonly contract?: ContractName | undefined;
  /** The name of the service's line. */
  readonly line: string;
  /** The host on which tills reach the service, in a bridge. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** The URL at which the service is asked, in a gateway. */
  readonly upstream?: string | undefined;
}

/** An operation that was sent, and whose outcome is unknown. */
export interface UnknownOperationSource {
  /** When it was sent, as ISO 8601. */
  readonly time: string;
  readonly requestId: string;
  /** The call's `callId`, for watchers; undefined if an earlier process sent it. */
  readonly callId?: string | undefined;
  readonly service: string;
  readonly route: string;
  readonly key?: string | undefined;
  readonly amount?: string | undefined;
  readonly currency?: string | undefined;
  readonly cause: string;
  /** The attempts to learn how the operation ended. */
  readonly tried?: TriedSource | undefined;
}

/** The attempts to learn how an operation ended. */
export interface TriedSource {
  /** Count of posline's own questions. */
  readonly asked: number;
  /** Time of the last one, as ISO 8601. */
  readonly lastAsked?: string | undefined;
  /** The last answer to anybody's question. */
  readonly lastAnswer?: string | undefined;
  /** Why posline doesn't ask, in a sentence; absent if it does. */
  readonly cannotAsk?: string | undefined;
}

/** An operation whose unknown outcome became known. */
export interface SettledOperationSource {
  readonly requestId?: string | undefined;
  readonly callId?: string | undefined;
  readonly service: string;
  readonly route: string;
  readonly key?: string | undefined;
  readonly result: OperationEnd;
}

/** The journal of money as it is now. */
export interface LiveJournal {
  /** `ok`, or why the journal can't be written and what to do. */
  readonly state: string;
  /** False if the journal has not been read since the start: then `unknown` lacks older operations. */
  readonly isReadable?: boolean | undefined;
  /** Operations of unknown outcome, in order of sending. */
  unknown(): readonly UnknownOperationSource[];
  /** Count of all unknown operations, if `unknown` gives only the newest. */
  readonly unknownTotal?: number | undefined;
}

export interface JournalSource {
  readonly folder: string;
  /** What happens to requests that can't be recorded. */
  readonly onFailure: "refuse" | "relay";
  readonly live: LiveJournal;
}

/** All sources, each list in the order in which it is shown. */
export interface StatusSources {
  readonly lines: readonly LineSource[];
  readonly services: readonly ServiceSource[];
  /** undefined if no journal is kept. */
  readonly journal?: JournalSource | undefined;
  /** The log's health: lines may be missing from it. */
  readonly log?: LogHealth | undefined;
}
