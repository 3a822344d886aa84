import { readdirSync, readFileSync } from "node:fs";
import type { NumberMetric, Sample } from "./metric.ts";

/**
 * The metrics that every process has, by Prometheus' own names for them. They are read at each scrape, and nothing runs in between: no
 * timer, no meter of the event loop. A value that /proc doesn't give is left out.
 */

/** Seconds by which the moment of the start may differ from the one given before without being another: clocks drift. */
const startDriftS = 2;

let startS = 0;

/** When the process started. The clock may have been set since, so it is counted back; rounding must not make it look like a restart. */
function startTime(): number {
  const now = Math.round(Date.now() / 1_000 - process.uptime());
  if (Math.abs(now - startS) >= startDriftS) startS = now;
  return startS;
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
}

/** Without the descriptor by which the folder itself is read. */
const openFds = () => readdirSync("/proc/self/fd").length - 1;

function maxFds(): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/** A single number without labels; none if it can't be read. */
const single = (read: () => number | undefined) => (): readonly Sample[] => {
  try {
    const value = read();
    return value === undefined ? [] : [[{}, value]];
  } catch {
    return [];
  }
};

export const processMetrics: readonly NumberMetric[] = [
  {
    name: "process_cpu_seconds_total",
    type: "counter",
    help: "CPU time of the process, user and system",
    labels: [],
    read: single(cpuSeconds),
  },
  {
    name: "process_resident_memory_bytes",
    type: "gauge",
    help: "Memory of the process that is in RAM",
    labels: [],
    read: single(() => process.memoryUsage.rss()),
  },
  {
    name: "process_start_time_seconds",
    type: "gauge",
    help: "When the process started",
    labels: [],
    read: single(startTime),
  },
  {
    name: "process_open_fds",
    type: "gauge",
    help: "File descriptors that are open",
    labels: [],
    read: single(openFds),
  },
  {
    name: "process_max_fds",
    type: "gauge",
    help: "File descriptors that may be open",
    labels: [],
    read: single(maxFds),
  },
];
