import type { Outcome } from "../core/fault.ts";
import { logged } from "../core/log-text.ts";
import type { LogEvent } from "./event.ts";

/** What of a log is wanted. All that is given must hold. */
export interface Wanted {
  /** Milliseconds of the Unix clock. */
  readonly sinceMs?: number | undefined;
  readonly service?: string | undefined;
  /** pay_id or documentExtID. */
  readonly key?: string | undefined;
  readonly outcome?: Outcome | undefined;
  /** A text within the line, in capitals or not. */
  readonly grep?: string | undefined;
}

/** Whether anything is left out at all. */
export function wantsAll(wanted: Wanted): boolean {
  return Object.values(wanted).every((value) => value === undefined);
}

export class Filter {
  readonly #wanted: Wanted;
  readonly #key: string | undefined;
  readonly #grep: string | undefined;
  /** When the last line with a time was written: a crash's trace has none, and belongs to what stands before it. */
  #timeMs: number | undefined;

  /** @param timeMs When text is thought to be written that no line with a time stands before. */
  constructor(wanted: Wanted, timeMs?: number) {
    this.#wanted = wanted;
    // As it stands in the log: cut where it is too long, and a card number masked.
    this.#key = wanted.key === undefined ? undefined : logged(wanted.key);
    this.#grep = wanted.grep?.toLowerCase();
    this.#timeMs = timeMs;
  }

  /**
   * Whether a line is wanted.
   * @param shown The line as people see it: what they look for is what they have seen.
   */
  wants(event: LogEvent, raw: string, shown: () => string): boolean {
    if (event.kind !== "text") this.#timeMs = event.timeMs;
    const { sinceMs, service, outcome } = this.#wanted;
    if (sinceMs !== undefined && (this.#timeMs === undefined || this.#timeMs < sinceMs)) return false;
    if (service !== undefined && (event.kind === "text" || event.kind === "line" || event.service !== service)) return false;
    if (this.#key !== undefined && (event.kind === "text" || event.kind === "line" || event.key !== this.#key)) return false;
    if (outcome !== undefined && (event.kind !== "exchange" || event.outcome !== outcome)) return false;
    const text = this.#grep;
    return text === undefined || raw.toLowerCase().includes(text) || shown().toLowerCase().includes(text);
  }
}
