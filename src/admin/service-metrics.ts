import type { ExchangeRecord } from "../core/log-fields.ts";
import type { Capabilities } from "./capabilities.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { countOutcome, countTotal, noOutcomes, type OutcomeCounts, type OutcomeTotals } from "./line-metrics.ts";

/** Counts of one service since posline began, or since the configuration has had that service. */
export class ServiceMetrics {
  readonly counts: OutcomeCounts = noOutcomes();
  /** Counts by route as the log has it: one of the contract's, or `?`; so there are as many as the contract has, and one. */
  readonly routes = new Map<string, OutcomeTotals>();
  /** How long calls waited that were sent, or were refused after waiting. */
  readonly queued = new DurationHistogram();
  /** How long sent calls were on the line, with a reply or without. */
  readonly onLine = new DurationHistogram();
  /** The service's operations, by the answer to its last probe. */
  capabilities: (Capabilities & { readonly toldAt: string }) | undefined;

  /** Counts a request that has ended. Each exchange passes here. */
  exchange(record: ExchangeRecord): void {
    countOutcome(this.counts, record);
    const { route, outcome, queueMs, lineMs } = record;
    let totals = this.routes.get(route);
    if (totals === undefined) {
      totals = { answered: 0, notSent: 0, unknown: 0 };
      this.routes.set(route, totals);
    }
    countTotal(totals, outcome);
    const wasSent = outcome !== "not-sent";
    // A refusal at the door never was in the queue.
    if (wasSent || queueMs > 0) this.queued.add(queueMs);
    if (wasSent) this.onLine.add(lineMs);
  }
}
