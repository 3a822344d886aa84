import type { Outcome } from "../core/fault.ts";
import { logged } from "../core/log-text.ts";
import type { LogEvent } from "./event.ts";

/** The criteria of shown lines. All that are given must hold. */
export interface LogCriteria {
  /** Milliseconds of the Unix clock. */
  readonly sinceMs?: number | undefined;
  readonly service?: string | undefined;
  /** pay_id or documentExtID. */
  readonly key?: string | undefined;
  readonly outcome?: Outcome | undefined;
  /** A text within the line, in any case. */
  readonly grep?: string | undefined;
}

/** True if these criteria leave out nothing. */
export function matchesAll(criteria: LogCriteria): boolean {
  return Object.values(criteria).every((value) => value === undefined);
}

export class LogFilter {
  readonly #criteria: LogCriteria;
  readonly #key: string | undefined;
  readonly #grep: string | undefined;
  /** When the last line with a time was written: a crash's trace has none, and belongs to the line before it. */
  #timeMs: number | undefined;

  /** @param timeMs The time assumed for text that no line with a time precedes. */
  constructor(criteria: LogCriteria, timeMs?: number) {
    this.#criteria = criteria;
    // The key as the log has it: cut if it is too long, and a card number masked.
    this.#key = criteria.key === undefined ? undefined : logged(criteria.key);
    this.#grep = criteria.grep?.toLowerCase();
    this.#timeMs = timeMs;
  }

  /**
   * True if a line matches.
   * @param rendered The line as people see it: they look for text that they have seen.
   */
  matches(event: LogEvent, raw: string, rendered: () => string): boolean {
    if (event.kind !== "text") this.#timeMs = event.timeMs;
    const { sinceMs, service, outcome } = this.#criteria;
    if (sinceMs !== undefined && (this.#timeMs === undefined || this.#timeMs < sinceMs)) return false;
    if (service !== undefined && (event.kind === "text" || event.kind === "line" || event.service !== service)) return false;
    if (this.#key !== undefined && (event.kind === "text" || event.kind === "line" || !isOf(this.#key, event))) return false;
    if (outcome !== undefined && (event.kind !== "exchange" || event.outcome !== outcome)) return false;
    const text = this.#grep;
    return text === undefined || raw.toLowerCase().includes(text) || rendered().toLowerCase().includes(text);
  }
}

/** True if an event is about a key; a call without one is known by its request's id. */
const isOf = (key: string, event: { readonly key?: string | undefined; readonly requestId?: string | undefined }) =>
  event.key === key || event.requestId === key;
