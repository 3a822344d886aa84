import type { ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { FaultReason } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type ExchangeRecord, exchangeFields } from "../core/log-fields.ts";
import type { Discard, DiscardReason, Frame } from "../wire/decoded.ts";
import type { StatusLineState } from "./status-sources.ts";

/** Requests, counted by outcome. */
export interface OutcomeTotals {
  /** The terminal, or the upstream, answered, with success or not. */
  answered: number;
  /** Refused by posline, and never sent. */
  notSent: number;
  /** Sent, and no good reply came. */
  unknown: number;
}

/** Requests, counted by outcome and reason. */
export interface OutcomeCounts extends OutcomeTotals {
  /** Requests that were not answered, by reason. */
  readonly reasons: Partial<Record<FaultReason, number>>;
}

export const noOutcomes = (): OutcomeCounts => ({ answered: 0, notSent: 0, unknown: 0, reasons: {} });

/** Counts an outcome alone. */
export function countTotal(totals: OutcomeTotals, outcome: ExchangeRecord["outcome"]): void {
  if (outcome === "answered") totals.answered++;
  else if (outcome === "unknown") totals.unknown++;
  else totals.notSent++;
}

export function countOutcome(counts: OutcomeCounts, { outcome, reason }: Pick<ExchangeRecord, "outcome" | "reason">): void {
  countTotal(counts, outcome);
  if (reason !== undefined) counts.reasons[reason] = (counts.reasons[reason] ?? 0) + 1;
}

/** Told of a line's reports, in their own shape. */
export interface LineObserver {
  state(state: StatusLineState, reason: string): void;
  discard(discard: Discard): void;
  late(frame: Frame): void;
  probeAnswered(service: ServiceName, answer: JsonObject): void;
}

/** A clean line alternates between idle and awaiting, many times a second: here they count as one state. */
const countedState = (state: StatusLineState) => (state === "awaiting" ? "idle" : state);

/** Counts of one line since posline began, or since the configuration has had that line. */
export class LineMetrics {
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
  #state: StatusLineState = "down";
  #stateMs = nowMs();
  #lastExchange: { readonly timeMs: number; readonly record: ExchangeRecord } | undefined;
  #lastLate: { readonly time: string; readonly framing: string; readonly bytes: number } | undefined;

  /** Observes one line of this name; a new configuration may replace it with another, which begins closed. */
  observer(probeAnswered: LineObserver["probeAnswered"]): LineObserver {
    let before: StatusLineState = "down";
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

  /** Counts a request to a service of this line that has ended. Text is made only when the status is read: each exchange passes here. */
  exchange(record: ExchangeRecord): void {
    countOutcome(this.#counts, record);
    this.#lastExchange = { timeMs: Date.now(), record };
  }

  /** Milliseconds for which the line has been in this state; idle and awaiting are one. 0 if the line has not reported it yet. */
  sinceMs(state: StatusLineState, now: number): number {
    return countedState(state) === countedState(this.#state) ? Math.max(0, now - this.#stateMs) : 0;
  }

  /** When the line came into its state, on `nowMs`'s scale; idle and awaiting are one. */
  get stateMs(): number {
    return this.#stateMs;
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

  /** The last exchange, with the key masked as in the log. */
  get lastExchange() {
    if (this.#lastExchange === undefined) return undefined;
    const { timeMs, record } = this.#lastExchange;
    const { requestId, service, route, key, outcome, reason, status, code, queueMs, lineMs } = exchangeFields(record);
    return {
      time: new Date(timeMs).toISOString(),
      requestId,
      service,
      route,
      key,
      outcome,
      reason,
      status,
      code,
      queueMs,
      lineMs,
    };
  }

  #changed(before: StatusLineState, state: StatusLineState): void {
    const wasOpen = isOpen(before);
    if (!wasOpen && isOpen(state)) this.#openings++;
    else if (wasOpen && state === "down") this.#losses++;
    else if (wasOpen && before !== "recovering" && state === "recovering") this.#recoveries++;
    if (countedState(this.#state) !== countedState(state)) this.#stateMs = nowMs();
    this.#state = state;
  }
}

const isOpen = (state: StatusLineState) => state !== "down" && state !== "closed";
