import type { ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { ExchangeRecord } from "../core/log-fields.ts";
import { logged, loggedSentence } from "../core/log-text.ts";
import { printableJson } from "../core/shell-text.ts";
import { readCapabilities } from "./capabilities.ts";
import { LineMetrics, type LineObserver } from "./line-metrics.ts";
import type { MetricsView } from "./metric.ts";
import { type NotReady, notesOf, notReady } from "./readiness.ts";
import { ServiceMetrics } from "./service-metrics.ts";
import type { JournalSource, LineSource, LiveService, ServiceSource, StatusSources } from "./status-sources.ts";

/**
 * Health, readiness, status and metrics for operators: whether posline runs, whether a till's next request would be sent, and the state of
 * each line and service. The status keeps counters, observes lines and exchanges as the log does, and reads the rest from its sources at
 * each request. It decides nothing, opens nothing, and imports no class of a line, port or journal, only `status-sources`.
 *
 * Times are as the box's clock had them, so that they agree with the log's; fields that end in `Ms` or `S` are monotonic. Text that comes
 * from a terminal or a till is bounded and masked as in the log.
 */

/** Operations of unknown outcome that are shown: the newest. `posline journal` has them all. */
const unknownMax = 100;

export interface StatusAnswer {
  readonly status: 200 | 503;
  /** JSON, unless a media type says otherwise. */
  readonly text: string;
  readonly contentType?: string;
}

/** The admin port's routes, by method and path. */
type StatusRoutes = Readonly<Record<"GET /healthz" | "GET /readyz" | "GET /status", () => StatusAnswer>> &
  Readonly<Record<"GET /metrics", () => Promise<StatusAnswer>>>;

export class Status {
  readonly #version: string;
  readonly #started = new Date().toISOString();
  readonly #startedMs = nowMs();
  readonly #lines = new Map<string, LineMetrics>();
  readonly #services = new Map<string, ServiceMetrics>();
  /** Each service's line. */
  #lineOf: ReadonlyMap<string, LineMetrics> = new Map();
  #sources: StatusSources = { lines: [], services: [] };
  #stopping = false;

  constructor(version: string) {
    this.#version = version;
  }

  /** The admin port's routes, by method and path. */
  get routes(): StatusRoutes {
    return {
      "GET /healthz": () => this.healthz(),
      "GET /readyz": () => this.readyz(),
      "GET /status": () => this.status(),
      "GET /metrics": () => this.metrics(),
    };
  }

  /**
   * Observes a line of this name from now on. The counters go on if a new configuration brings another line of the name: each line has an
   * observer of its own.
   */
  line(name: string): LineObserver {
    return this.#metricsOf(name).observer((service, answer) => {
      const capabilities = readCapabilities(answer);
      if (capabilities === undefined) return;
      this.#service(service).capabilities = { ...capabilities, toldAt: new Date().toISOString() };
    });
  }

  /**
   * Counts a request that has ended, with any outcome.
   * @param line The line that the request was for, if its service may have moved to another since.
   */
  exchange(record: ExchangeRecord, line?: string): void {
    this.#service(record.service).exchange(record);
    const metrics = line === undefined ? this.#lineOf.get(record.service) : this.#lines.get(line);
    metrics?.exchange(record);
  }

  /**
   * Sets the sources of the status: at the start and with each new configuration. Drops the counters of lines and services that it doesn't
   * have any more.
   */
  setSources(sources: StatusSources): void {
    this.#sources = sources;
    const names = new Set(sources.lines.map(({ name }) => name));
    for (const name of this.#lines.keys()) if (!names.has(name)) this.#lines.delete(name);
    const services = new Set<string>(sources.services.map(({ service }) => service));
    for (const name of this.#services.keys()) if (!services.has(name)) this.#services.delete(name);
    this.#lineOf = new Map(
      sources.services.flatMap(({ service, line }) => (names.has(line) ? [[service, this.#metricsOf(line)] as const] : [])),
    );
  }

  /** posline is stopping. */
  stopping(): void {
    this.#stopping = true;
  }

  /** Answers that the process runs: an answer proves that its event loop does. */
  healthz(): StatusAnswer {
    return { status: 200, text: indentedJson({ status: this.#stopping ? "stopping" : "ok" }) };
  }

  /** Each reason why the next request would wait for more than its turn, or be refused. */
  notReady(): readonly NotReady[] {
    const now = nowMs();
    return notReady(this.#sources, this.#stopping, ({ name, live }) => this.#metricsOf(name).sinceMs(live.state, now));
  }

  /** Whether the next request would be sent, at once or in its turn, to a terminal that is there. */
  readyz(): StatusAnswer {
    const reasons = this.notReady();
    const notes = notesOf(this.#sources);
    const noted = notes.length === 0 ? {} : { notes };
    if (reasons.length === 0) return { status: 200, text: indentedJson({ status: "ready", ...noted }) };
    return { status: 503, text: indentedJson({ status: "not ready", reasons }) };
  }

  /** The status of the process, each line, each service and the journal. */
  status(): StatusAnswer {
    const now = nowMs();
    const { lines, services, journal, log } = this.#sources;
    const reasons = this.notReady();
    const all = {
      version: this.#version,
      pid: process.pid,
      /** When this process began, by the clock as it was then. */
      started: this.#started,
      uptimeS: Math.floor((now - this.#startedMs) / 1_000),
      state: this.#stopping ? "stopping" : "running",
      /** As in /readyz. */
      ready: reasons.length === 0,
      reasons,
      notes: notesOf(this.#sources),
      lines: Object.fromEntries(lines.map((line) => [line.name, this.#lineStatus(line, now)])),
      services: Object.fromEntries(services.map((service) => [service.service, this.#serviceStatus(service, now)])),
      journal: journalStatus(journal),
      log: log && { state: log.state, dropped: log.dropped },
    };
    return { status: 200, text: indentedJson(all) };
  }

  /** The counters as Prometheus scrapes them. Their writer is loaded by the first scrape: most boxes have none. */
  async metrics(): Promise<StatusAnswer> {
    const { metricsText } = await import("./metrics-text.ts");
    return { status: 200, ...(await metricsText(this.metricsView())) };
  }

  /** The present values of all that is measured. */
  metricsView(): MetricsView {
    const { lines, services, journal, log } = this.#sources;
    return {
      version: this.#version,
      now: nowMs(),
      ready: this.notReady().length === 0,
      lines: lines.map((source) => ({ source, metrics: this.#metricsOf(source.name) })),
      services: services.map((source) => ({ source, metrics: this.#service(source.service) })),
      journal,
      log,
    };
  }

  #lineStatus({ name, path, queueCallsMax, live }: LineSource, now: number) {
    const metrics = this.#metricsOf(name);
    return {
      state: live.state,
      sinceMs: Math.round(metrics.sinceMs(live.state, now)),
      reason: loggedSentence(live.reason),
      device: { path, node: live.device },
      queue: live.waiting === undefined ? undefined : { waiting: live.waiting, max: queueCallsMax },
      stalledMs: Math.round(live.stalledMs?.(now) ?? 0),
      counters: metrics.counters(),
      lastExchange: metrics.lastExchange,
      lastLate: metrics.lastLate,
    };
  }

  #serviceStatus({ service, contract, line, host, port, upstream }: ServiceSource, now: number) {
    const { counts, capabilities } = this.#service(service);
    const live = this.#sources.lines.find(({ name }) => name === line)?.live;
    const heard = live?.liveness?.(now).find((each) => each.service === service);
    return {
      contract,
      line,
      host,
      port,
      upstream,
      heard: heard && heardStatus(live?.state === "down" ? { ...heard, cause: undefined } : heard, now),
      counters: counts,
      offer: capabilities,
    };
  }

  #metricsOf(name: string): LineMetrics {
    const metrics = this.#lines.get(name) ?? new LineMetrics();
    this.#lines.set(name, metrics);
    return metrics;
  }

  #service(service: ServiceName | string): ServiceMetrics {
    const metrics = this.#services.get(service) ?? new ServiceMetrics();
    this.#services.set(service, metrics);
    return metrics;
  }
}

/** Whether a service was heard, and when last, since its line opened. If a line is down only the line says why. */
function heardStatus({ state, heardMs, cause }: LiveService, now: number) {
  return {
    state,
    agoMs: heardMs === undefined ? undefined : Math.round(now - heardMs),
    reason: cause && loggedSentence(cause.cause),
    cure: cause && loggedSentence(cause.cure),
  };
}

function journalStatus(journal: JournalSource | undefined) {
  if (journal === undefined) return { state: "off" };
  const { folder, onFailure, live } = journal;
  const all = live.unknown();
  const newest = all
    .slice(-unknownMax)
    .reverse()
    .map(({ time, requestId, service, route, key, amount, currency, cause, tried }) => ({
      time,
      requestId: logged(requestId),
      service,
      route,
      key: key === undefined ? undefined : logged(key),
      amount: amount === undefined ? undefined : logged(amount),
      currency,
      cause,
      asked: tried?.asked,
      lastAsked: tried?.lastAsked,
      lastAnswer: tried?.lastAnswer,
      cannotAsk: tried?.cannotAsk,
    }));
  return {
    state: loggedSentence(live.state),
    folder,
    onFailure,
    /** False if older unknown operations may be missing in the list. */
    readable: live.isReadable !== false,
    unknown: { total: Math.max(live.unknownTotal ?? 0, all.length), newest },
  };
}

/** Indented, since people read it as often as programs do. */
function indentedJson(value: unknown): string {
  return `${printableJson(JSON.stringify(value, null, 2))}\n`;
}
