import { contracts } from "../contract/contracts.ts";
import { type FaultReason, faultReasons, isFaultReason } from "../core/fault.ts";
import type { OutcomeTotals } from "./line-metrics.ts";
import type { Metric, MetricsView, Sample } from "./metric.ts";
import { processMetrics } from "./process-metrics.ts";
import type { StatusLineState } from "./status-sources.ts";

/**
 * The metrics of /metrics, as one table: each with its type, its labels, its words and the place of its numbers. The documentation's table
 * is printed from it. The table counts nothing, since all numbers are there already, and writes no text.
 *
 * Labels are names of the configuration and words of closed lists, so that there are as many series as a box has lines, services and
 * routes. A series that may come begins at 0: Prometheus sees no growth in one that appears with its first event.
 */

type ViewedLine = MetricsView["lines"][number];
type ViewedService = MetricsView["services"][number];

const lineStates: readonly StatusLineState[] = ["down", "recovering", "idle", "awaiting", "open", "closed"];

const reasons: readonly FaultReason[] = Object.keys(faultReasons).filter(isFaultReason);

/** The log has `?` for a path that isn't a route of the contract. */
const routeLabel = (route: string) => (route === "?" ? "other" : route);

/** Seconds since 1970 of a moment on `nowMs`'s scale, by the clock as it is now: right even if it was set since. */
const unixSeconds = (ms: number, now: number) => Math.round(Date.now() - (now - ms)) / 1_000;

/** Reads a metric of one number for each line. */
const perLine = (read: (line: ViewedLine, view: MetricsView) => number | undefined) => (view: MetricsView) =>
  view.lines.flatMap((line): Sample[] => {
    const value = read(line, view);
    return value === undefined ? [] : [[{ line: line.source.name }, value]];
  });

/** Reads a metric of several series for each service; each is given its further labels. */
const perService = (read: (service: ViewedService, view: MetricsView) => readonly Sample[]) => (view: MetricsView) =>
  view.services.flatMap((service) =>
    read(service, view).map(([labels, value]): Sample => [{ service: service.source.service, ...labels }, value]),
  );

const perDiscard = (read: (counted: { readonly count: number; readonly bytes: number }) => number) => (view: MetricsView) =>
  view.lines.flatMap(({ source, metrics }) =>
    Object.entries(metrics.counters().discards).map(
      ([reason, counted]): Sample => [{ line: source.name, reason }, read(counted)],
    ),
  );

function exchanges({ source: { contract }, metrics: { routes } }: ViewedService): readonly Sample[] {
  const known = contract === undefined ? [] : contracts[contract].routes.map(({ path }) => path);
  const none: OutcomeTotals = { answered: 0, notSent: 0, unknown: 0 };
  return [...new Set([...known, "?", ...routes.keys()])].flatMap((path): Sample[] => {
    const { answered, notSent, unknown } = routes.get(path) ?? none;
    const route = routeLabel(path);
    return [
      [{ route, outcome: "answered" }, answered],
      [{ route, outcome: "not-sent" }, notSent],
      [{ route, outcome: "unknown" }, unknown],
    ];
  });
}

/** When a service was heard last; nothing if no terminal is at the line's other end, as in a gateway. */
function heard({ source: { service, line } }: ViewedService, { lines, now }: MetricsView): readonly Sample[] {
  const live = lines.find(({ source }) => source.name === line)?.source.live.liveness?.(now);
  const heardMs = live?.find((each) => each.service === service)?.heardMs;
  if (live === undefined) return [];
  return [[{}, heardMs === undefined ? 0 : unixSeconds(heardMs, now)]];
}

/** Counts of a service's probes; nothing in a gateway, where posline is asked and asks nobody. */
function probes({ source: { service, line } }: ViewedService, { lines }: MetricsView): readonly Sample[] {
  const counts = lines.find(({ source }) => source.name === line)?.source.traffic?.probes.get(service);
  if (counts === undefined) return [];
  const { answered, refused, unanswered } = counts;
  return [
    [{ result: "answered" }, answered],
    [{ result: "refused" }, refused],
    [{ result: "unanswered" }, unanswered],
  ];
}

const isOk = (state: string) => (state === "ok" ? 1 : 0);

/** All metrics, in the order in which they are shown. */
export const metrics: readonly Metric[] = [
  {
    name: "posline_build_info",
    type: "gauge",
    help: "1, with the versions of posline and Node as labels",
    labels: ["version", "node"],
    read: ({ version }) => [[{ version, node: process.versions.node }, 1]],
  },
  {
    name: "posline_ready",
    type: "gauge",
    help: "1 when /readyz answers 200, otherwise 0",
    labels: [],
    read: ({ ready }) => [[{}, ready ? 1 : 0]],
  },
  {
    name: "posline_exchanges_total",
    type: "counter",
    help: "Requests by outcome (answered, not-sent, unknown); route other: the contract has no such route",
    labels: ["service", "route", "outcome"],
    read: perService(exchanges),
  },
  {
    name: "posline_faults_total",
    type: "counter",
    help: "Requests that were not answered, by X-Posline-Reason",
    labels: ["service", "reason"],
    read: perService(({ metrics: { counts } }) => reasons.map((reason) => [{ reason }, counts.reasons[reason] ?? 0])),
  },
  {
    name: "posline_exchange_queue_seconds",
    type: "histogram",
    help: "Time in the send queue, of requests that were sent and of those that were refused after waiting",
    labels: ["service"],
    read: ({ services }) => services.map(({ source: { service }, metrics: { queued } }) => [{ service }, queued]),
  },
  {
    name: "posline_exchange_line_seconds",
    type: "histogram",
    help: "Time on the line, of requests that were sent; in a gateway the time that the upstream took",
    labels: ["service"],
    read: ({ services }) => services.map(({ source: { service }, metrics: { onLine } }) => [{ service }, onLine]),
  },
  {
    name: "posline_line_state",
    type: "gauge",
    help: "1 for the state in which a line is, 0 for the others",
    labels: ["line", "state"],
    read: ({ lines }) =>
      lines.flatMap(({ source: { name, live } }) =>
        lineStates.map((state): Sample => [{ line: name, state }, live.state === state ? 1 : 0]),
      ),
  },
  {
    name: "posline_line_state_changed_timestamp_seconds",
    type: "gauge",
    help: "When the line came into its state, idle and awaiting taken as one",
    labels: ["line"],
    read: perLine(({ metrics: { stateMs } }, { now }) => unixSeconds(stateMs, now)),
  },
  {
    name: "posline_line_heard_timestamp_seconds",
    type: "gauge",
    help: "When the terminal last replied for this service; 0: not since the line opened",
    labels: ["service"],
    read: perService(heard),
  },
  {
    name: "posline_line_queue_calls",
    type: "gauge",
    help: "Calls that wait for the line",
    labels: ["line"],
    read: perLine(({ source }) => source.live.waiting),
  },
  {
    name: "posline_line_queue_calls_max",
    type: "gauge",
    help: "Calls that may wait for the line (queueCallsMax)",
    labels: ["line"],
    read: perLine(({ source: { live, queueCallsMax } }) => (live.waiting === undefined ? undefined : queueCallsMax)),
  },
  {
    name: "posline_line_sent_bytes_total",
    type: "counter",
    help: "Bytes written to the line",
    labels: ["line"],
    read: perLine(({ source }) => source.traffic?.sentBytes),
  },
  {
    name: "posline_line_received_bytes_total",
    type: "counter",
    help: "Bytes that came from the line, in frames and in discards",
    labels: ["line"],
    read: perLine(({ source }) => source.traffic?.receivedBytes),
  },
  {
    name: "posline_line_sent_frames_total",
    type: "counter",
    help: "Frames written to the line, probes included",
    labels: ["line"],
    read: perLine(({ source }) => source.traffic?.sentFrames),
  },
  {
    name: "posline_line_received_frames_total",
    type: "counter",
    help: "Whole, correct frames that came from the line",
    labels: ["line"],
    read: perLine(({ source }) => source.traffic?.receivedFrames),
  },
  {
    name: "posline_line_discards_total",
    type: "counter",
    help: "Times that bytes became no frame, by reason",
    labels: ["line", "reason"],
    read: perDiscard(({ count }) => count),
  },
  {
    name: "posline_line_discarded_bytes_total",
    type: "counter",
    help: "Bytes that became no frame, by reason",
    labels: ["line", "reason"],
    read: perDiscard(({ bytes }) => bytes),
  },
  {
    name: "posline_line_late_frames_total",
    type: "counter",
    help: "Frames that came late or unasked, and were discarded",
    labels: ["line"],
    read: perLine(({ metrics: line }) => line.counters().late),
  },
  {
    name: "posline_line_openings_total",
    type: "counter",
    help: "Times that the device was opened",
    labels: ["line"],
    read: perLine(({ metrics: line }) => line.counters().openings),
  },
  {
    name: "posline_line_losses_total",
    type: "counter",
    help: "Times that the open device was lost",
    labels: ["line"],
    read: perLine(({ metrics: line }) => line.counters().losses),
  },
  {
    name: "posline_line_recoveries_total",
    type: "counter",
    help: "Times that the open line had to be proven clean again",
    labels: ["line"],
    read: perLine(({ metrics: line }) => line.counters().recoveries),
  },
  {
    name: "posline_probes_total",
    type: "counter",
    help: "Probes by result (answered, refused, unanswered)",
    labels: ["service", "result"],
    read: perService(probes),
  },
  {
    name: "posline_journal_unknown_operations",
    type: "gauge",
    help:
      "Operations with an unknown outcome, as posline journal --unknown lists them; absent where no journal is kept, and while it has " +
      "not been read since the start and none is known",
    labels: [],
    read: ({ journal }) => {
      if (journal === undefined) return [];
      const { live } = journal;
      const known = Math.max(live.unknownTotal ?? 0, live.unknown().length);
      // 0 would say that there are none, which nobody knows.
      return live.isReadable === false && known === 0 ? [] : [[{}, known]];
    },
  },
  {
    name: "posline_journal_oldest_unknown_timestamp_seconds",
    type: "gauge",
    help: "When the oldest of the newest 100 unknown operations was sent; 0 if none, absent if not known",
    labels: [],
    read: ({ journal }) => {
      if (journal === undefined) return [];
      const { live } = journal;
      const [oldest] = live.unknown();
      if (oldest !== undefined) return [[{}, Date.parse(oldest.time) / 1_000]];
      return live.isReadable === false || live.unknownTotal ? [] : [[{}, 0]];
    },
  },
  {
    name: "posline_journal_writable",
    type: "gauge",
    help: "1 when the journal of money can be written, otherwise 0; absent where no journal is kept",
    labels: [],
    read: ({ journal }) => (journal === undefined ? [] : [[{}, isOk(journal.live.state)]]),
  },
  {
    name: "posline_log_lines_dropped_total",
    type: "counter",
    help: "Log lines left out by a budget, or dropped since the log's reader took none or went away, or its disk was full (reader)",
    labels: ["cause"],
    read: ({ log }) =>
      log === undefined
        ? []
        : [
            [{ cause: "budget" }, log.dropped.budget],
            [{ cause: "reader" }, log.dropped.reader],
          ],
  },
  {
    name: "posline_log_writable",
    type: "gauge",
    help: "1 when log lines reach their reader, otherwise 0",
    labels: [],
    read: ({ log }) => (log === undefined ? [] : [[{}, isOk(log.state)]]),
  },
  ...processMetrics,
];

/** The metrics as a Markdown table, for docs/monitoring.md. */
export function metricTable(): string {
  const rows = metrics.map(({ name, type, labels, help }) => {
    const named = labels.length === 0 ? "" : `{${labels.join(",")}}`;
    return `| \`${name}${named}\` | ${type} | ${help} |`;
  });
  return ["| metric | type | |", "|---|---|---|", ...rows].join("\n");
}
