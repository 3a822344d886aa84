import Counter from "@prometheus-io/client/lib/counter.js";
import Gauge from "@prometheus-io/client/lib/gauge.js";
import Registry from "@prometheus-io/client/lib/registry.js";
import { type DurationHistogram, durationBoundsMs } from "./duration-histogram.ts";
import type { HistogramMetric, Labels, MetricsView, NumberMetric } from "./metric.ts";
import { metrics } from "./metrics.ts";

/**
 * Writes metrics in Prometheus' text format. The only importer of the client library, of which registry, counter and gauge are used: the
 * rest of it measures by itself, with timers. Each scrape fills a registry of its own, so nothing is kept in between.
 */

/** The text, and its media type. */
export async function metricsText(view: MetricsView): Promise<{ readonly text: string; readonly contentType: string }> {
  const registry = new Registry();
  for (const metric of metrics) {
    if (metric.type === "histogram") addHistogram(registry, metric, view);
    else addNumbers(registry, metric, view);
  }
  return { text: await registry.metrics(), contentType: registry.contentType };
}

function addNumbers(registry: Registry, { name, type, help, labels, read }: NumberMetric, view: MetricsView): void {
  const options = { name, help, labelNames: [...labels], registers: [registry] };
  const samples = read(view);
  if (type === "counter") {
    const counter = new Counter(options);
    for (const [of, value] of samples) counter.inc(of, value);
    return;
  }
  const gauge = new Gauge(options);
  // A gauge without labels begins at 0, which would be wrong here.
  if (samples.length === 0) gauge.remove({});
  for (const [of, value] of samples) gauge.set(of, value);
}

/**
 * The library's histogram counts by itself, at each event. Ours are counted already; the registry asks a metric for its name and `get`
 * alone, as it does with those that it has added up from several processes.
 */
function addHistogram(registry: Registry, { name, help, read }: HistogramMetric, view: MetricsView): void {
  const values = read(view).flatMap(([labels, histogram]) => series(name, labels, histogram));
  const metric = { name, get: async () => ({ name, help, type: "histogram", values }) };
  // The library's types know only its own classes.
  registry.registerMetric(metric as unknown as Parameters<Registry["registerMetric"]>[0]);
}

/** The series of one histogram: its buckets, the sum and the number of all. */
function series(name: string, labels: Labels, histogram: DurationHistogram) {
  const counts = histogram.cumulative();
  const count = counts.at(-1) ?? 0;
  return [
    ...durationBoundsMs.map((boundMs, n) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: String(boundMs / 1_000) },
      value: counts[n] ?? 0,
    })),
    { metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: count },
    { metricName: `${name}_sum`, labels, value: histogram.sumMs / 1_000 },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
