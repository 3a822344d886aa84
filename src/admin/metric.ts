import type { DurationHistogram } from "./duration-histogram.ts";
import type { LineMetrics } from "./line-metrics.ts";
import type { ServiceMetrics } from "./service-metrics.ts";
import type { LineSource, ServiceSource, StatusSources } from "./status-sources.ts";

/** What a metric is, and what it is read from. */

/** The measured values of one moment. */
export interface MetricsView {
  readonly version: string;
  /** The moment, on `nowMs`'s scale. */
  readonly now: number;
  /** As in /readyz. */
  readonly ready: boolean;
  readonly lines: readonly { readonly source: LineSource; readonly metrics: LineMetrics }[];
  readonly services: readonly { readonly source: ServiceSource; readonly metrics: ServiceMetrics }[];
  readonly journal: StatusSources["journal"];
  readonly log: StatusSources["log"];
}

export type Labels = Readonly<Record<string, string>>;

/** A series and its present value. */
export type Sample = readonly [labels: Labels, value: number];

interface Named {
  readonly name: string;
  /** The metric's words, for Prometheus and for the documentation. */
  readonly help: string;
  readonly labels: readonly string[];
}

/** A metric of single numbers. */
export interface NumberMetric extends Named {
  readonly type: "counter" | "gauge";
  readonly read: (view: MetricsView) => readonly Sample[];
}

/** A metric of durations. */
export interface HistogramMetric extends Named {
  readonly type: "histogram";
  readonly read: (view: MetricsView) => readonly (readonly [labels: Labels, histogram: DurationHistogram])[];
}

export type Metric = NumberMetric | HistogramMetric;
