import type { ContractName, ServiceName } from "../core/call.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { LogHealth } from "../core/log.ts";

/** What the status reads, as interfaces: lines, ports and a journal implement them without importing them. */

/** A bridge's line is down, recovering, idle, awaiting or closed; a gateway's is down or open. */
export type StatusLineState = "down" | "recovering" | "idle" | "awaiting" | "closed" | "open";

/** Whether a service's terminal answers, as far as is known; see `recovery/liveness`. */
export interface LiveService {
  readonly service: ServiceName;
  readonly state: "heard" | "unheard" | "unproven";
  /** When it replied last, on `nowMs`'s scale; undefined when it did not since the line opened. */
  readonly heardMs: number | undefined;
  /** Why it is probably unheard, and what to do. */
  readonly cause: { readonly cause: string; readonly cure: string } | undefined;
  /** Why it answers posline's own question with an error, probably, and what to do. */
  readonly refusal?: { readonly cause: string; readonly cure: string } | undefined;
}

/** A line as it is now, read at each request for the status. */
export interface LiveLine {
  readonly state: StatusLineState;
  /** Why, for people. */
  readonly reason: string;
  /** The device's real node while it is open, where that is known. */
  readonly device?: string | undefined;
  /** Calls in the send queue; undefined where there is no queue, as in a gateway. */
  readonly waiting?: number | undefined;
  /** For how many milliseconds something that was due has not happened. */
  stalledMs?(now: number): number;
  /** Which of its services were heard; absent where no terminal is at the other end, as in a gateway. */
  liveness?(now: number): readonly LiveService[];
}

/** What went over a line since posline began; see `capture/line-traffic`. */
export interface LineTrafficCounts {
  readonly sentBytes: number;
  readonly sentFrames: number;
  readonly receivedBytes: number;
  readonly receivedFrames: number;
  /** What became of each service's probes. */
  readonly probes: ReadonlyMap<ServiceName, Readonly<Record<"answered" | "refused" | "unanswered", number>>>;
}

export interface LineSource {
  readonly name: string;
  /** The device as configured. */
  readonly path: string;
  /** Calls that may wait. */
  readonly queueCallsMax?: number | undefined;
  /** Absent where it isn't counted. */
  readonly traffic?: LineTrafficCounts | undefined;
  readonly live: LiveLine;
}

export interface ServiceSource {
  readonly service: ServiceName;
  /** Whose routes it has, where that is known. */
  readonly contract?: ContractName | undefined;
  /** The name of its line. */
  readonly line: string;
  /** Where it is reached by tills, in a bridge. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** Where it is asked, in a gateway. */
  readonly upstream?: string | undefined;
}

/** An operation that was sent, and whose outcome is unknown. */
export interface UnknownOperationSource {
  /** When it was sent, as ISO 8601. */
  readonly time: string;
  readonly requestId: string;
  readonly service: string;
  readonly route: string;
  readonly key?: string | undefined;
  readonly amount?: string | undefined;
  readonly cause: string;
  /** What was tried to learn how it ended. */
  readonly tried?: TriedSource | undefined;
}

/** What was tried to learn how an operation ended. */
export interface TriedSource {
  /** How often posline asked by itself. */
  readonly asked: number;
  /** As ISO 8601. */
  readonly lastAsked?: string | undefined;
  /** The last answer to anybody's question. */
  readonly lastAnswer?: string | undefined;
  /** Why posline doesn't ask, in a sentence. */
  readonly cannotAsk?: string | undefined;
}

/** An operation whose unknown outcome became known. */
export interface SettledOperationSource {
  readonly requestId?: string | undefined;
  readonly service: string;
  readonly route: string;
  readonly key?: string | undefined;
  readonly result: OperationEnd;
}

/** The journal of money as it is now. */
export interface LiveJournal {
  /** `ok`, or why it can't be written and what to do. */
  readonly state: string;
  /** False while it has not been read since the start: `unknown` lacks what was before. */
  readonly isReadable?: boolean | undefined;
  /** The last one last. */
  unknown(): readonly UnknownOperationSource[];
  /** How many there are, where `unknown` gives the newest alone. */
  readonly unknownTotal?: number | undefined;
}

export interface JournalSource {
  readonly folder: string;
  /** What happens to requests that it can't record. */
  readonly onFailure: "refuse" | "relay";
  readonly live: LiveJournal;
}

/** All sources, each list in the order in which it is shown. */
export interface StatusSources {
  readonly lines: readonly LineSource[];
  readonly services: readonly ServiceSource[];
  /** undefined when no journal is kept. */
  readonly journal?: JournalSource | undefined;
  /** The log, of which lines may be missing. */
  readonly log?: LogHealth | undefined;
}
