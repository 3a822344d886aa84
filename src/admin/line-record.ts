import type { ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { Outcome } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type ExchangeRecord, exchangeFields } from "../core/log-fields.ts";
import type { Discard, DiscardReason, Frame } from "../wire/decoded.ts";
import type { LineState } from "./shown.ts";

/** What becomes of requests, counted. */
export interface OutcomeCounts {
  /** The terminal, or the upstream, answered: whatever it says. */
  answered: number;
  /** Refused by posline, and never sent. */
  notSent: number;
  /** Sent, and no good reply came. */
  unknown: number;
}

export const noOutcomes = (): OutcomeCounts => ({ answered: 0, notSent: 0, unknown: 0 });

export function count(counts: OutcomeCounts, outcome: Outcome): void {
  if (outcome === "answered") counts.answered++;
  else if (outcome === "unknown") counts.unknown++;
  else counts.notSent++;
}

/** A line as it tells of itself; shaped as the line's own report is. */
export interface LineObserver {
  state(state: LineState, reason: string): void;
  discard(discard: Discard): void;
  late(frame: Frame): void;
  probeAnswered(service: ServiceName, answer: JsonObject): void;
}

/** A clean line is idle or awaits a reply, many times a second: that isn't told, and isn't another state here. */
const standing = (state: LineState) => (state === "awaiting" ? "idle" : state);

/** What happened on one line since posline began, or since the configuration has had that line. */
export class LineRecord {
  readonly #counts = noOutcomes();
  readonly #discards: Record<DiscardReason, { count: number; bytes: number }> = {
    noise: { count: 0, bytes: 0 },
    checksum: { count: 0, bytes: 0 },
    oversize: { count: 0, bytes: 0 },
    reset: { count: 0, bytes: 0 },
  };
  #late = 0;
  #openings = 0;
  #losses = 0;
  #recoveries = 0;
  #told: LineState = "down";
  #toldMs = nowMs();
  #lastExchange: { readonly timeMs: number; readonly record: ExchangeRecord } | undefined;
  #lastLate: { readonly time: string; readonly framing: string; readonly bytes: number } | undefined;

  /** Whoever hears one line of this name; a new configuration may bring another in its place, which begins closed. */
  observer(probeAnswered: LineObserver["probeAnswered"]): LineObserver {
    let before: LineState = "down";
    return {
      state: (state) => {
        this.#changed(before, state);
        before = state;
      },
      discard: ({ reason, wireBytes }) => {
        const counted = this.#discards[reason];
        counted.count++;
        counted.bytes += wireBytes;
      },
      late: ({ framing, wireBytes }) => {
        this.#late++;
        this.#lastLate = { time: new Date().toISOString(), framing, bytes: wireBytes };
      },
      probeAnswered,
    };
  }

  /** A request to a service of this line has ended. On the way of each exchange, so it is made into text when somebody asks. */
  exchange(record: ExchangeRecord): void {
    count(this.#counts, record.outcome);
    this.#lastExchange = { timeMs: Date.now(), record };
  }

  /** Milliseconds for which it has been in this state; idle and awaiting are one. 0 where it has not told of it yet. */
  sinceMs(state: LineState, now: number): number {
    return standing(state) === standing(this.#told) ? Math.max(0, now - this.#toldMs) : 0;
  }

  counters() {
    return {
      ...this.#counts,
      late: this.#late,
      discards: this.#discards,
      openings: this.#openings,
      losses: this.#losses,
      recoveries: this.#recoveries,
    };
  }

  get lastLate() {
    return this.#lastLate;
  }

  /** With the key masked as in the log. */
  get lastExchange() {
    if (this.#lastExchange === undefined) return undefined;
    const { timeMs, record } = this.#lastExchange;
    const { requestId, service, route, key, outcome, status, code, queueMs, lineMs } = exchangeFields(record);
    return { time: new Date(timeMs).toISOString(), requestId, service, route, key, outcome, status, code, queueMs, lineMs };
  }

  #changed(before: LineState, state: LineState): void {
    const wasOpen = isOpen(before);
    if (!wasOpen && isOpen(state)) this.#openings++;
    else if (wasOpen && state === "down") this.#losses++;
    else if (wasOpen && before !== "recovering" && state === "recovering") this.#recoveries++;
    if (standing(this.#told) !== standing(state)) this.#toldMs = nowMs();
    this.#told = state;
  }
}

const isOpen = (state: LineState) => state !== "down" && state !== "closed";
