import type { ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { ExchangeRecord } from "../core/log-fields.ts";
import { logged, loggedSentence } from "../core/log-text.ts";
import { printableJson } from "../core/shell-text.ts";
import { count, type LineObserver, LineRecord, noOutcomes, type OutcomeCounts } from "./line-record.ts";
import { type Offer, offerOf } from "./offer.ts";
import { notReady, unprovenOf } from "./readiness.ts";
import type { LiveService, Shown, ShownJournal, ShownLine, ShownService } from "./shown.ts";

/**
 * What whoever looks after posline may ask of it: whether it runs, whether a till's next request would be sent, and how each line
 * and service does. It keeps counters, hears lines and exchanges as the log does, and reads what is so at the moment when it is
 * asked. It decides nothing, opens nothing, and knows no line, port or journal by name of its class: the shapes in `shown` are all.
 *
 * Times are as the box's clock had them, so that they agree with the log's; whatever ends in `Ms` or `S` is monotonic. Whatever comes
 * from a terminal or a till is bounded and masked as in the log.
 */

/** Operations of unknown outcome that are shown: the newest. `posline journal` has them all. */
const unknownMax = 100;

export interface StatusAnswer {
  readonly status: 200 | 503;
  /** JSON. */
  readonly text: string;
}

interface ServiceRecord {
  readonly counts: OutcomeCounts;
  /** What it offers, as its last probe told it. */
  offer: (Offer & { readonly toldAt: string }) | undefined;
}

export class Status {
  readonly #version: string;
  readonly #started = new Date().toISOString();
  readonly #startedMs = nowMs();
  readonly #lines = new Map<string, LineRecord>();
  readonly #services = new Map<string, ServiceRecord>();
  /** Which line's requests a service's are. */
  #lineOf: ReadonlyMap<string, LineRecord> = new Map();
  #shown: Shown = { lines: [], services: [] };
  #stopping = false;

  constructor(version: string) {
    this.#version = version;
  }

  /** What the admin port answers by method and path. */
  get routes(): Readonly<Record<"GET /healthz" | "GET /readyz" | "GET /status", () => StatusAnswer>> {
    return { "GET /healthz": () => this.healthz(), "GET /readyz": () => this.readyz(), "GET /status": () => this.status() };
  }

  /**
   * Hears a line of this name from now on. Its counters go on when a new configuration brings another line of the name: each line
   * has an observer of its own.
   */
  line(name: string): LineObserver {
    return this.#recordOf(name).observer((service, answer) => {
      const offer = offerOf(answer);
      if (offer !== undefined) this.#service(service).offer = { ...offer, toldAt: new Date().toISOString() };
    });
  }

  /** A request has ended, in whatever way. */
  exchange(record: ExchangeRecord): void {
    count(this.#service(record.service).counts, record.outcome);
    this.#lineOf.get(record.service)?.exchange(record);
  }

  /** Says what there is: at the start, and again with each new configuration. What isn't there any more is forgotten. */
  show(shown: Shown): void {
    this.#shown = shown;
    const names = new Set(shown.lines.map(({ name }) => name));
    for (const name of this.#lines.keys()) if (!names.has(name)) this.#lines.delete(name);
    const services = new Set<string>(shown.services.map(({ service }) => service));
    for (const name of this.#services.keys()) if (!services.has(name)) this.#services.delete(name);
    this.#lineOf = new Map(
      shown.services.flatMap(({ service, line }) => (names.has(line) ? [[service, this.#recordOf(line)] as const] : [])),
    );
  }

  /** posline was told to stop. */
  stopping(): void {
    this.#stopping = true;
  }

  /** Whether the process runs: it answers, so its event loop does. */
  healthz(): StatusAnswer {
    return { status: 200, text: jsonOf({ status: this.#stopping ? "stopping" : "ok" }) };
  }

  /** Whether the next request would be sent at once to a terminal that is there. */
  readyz(): StatusAnswer {
    const reasons = notReady(this.#shown, this.#stopping);
    const unproven = unprovenOf(this.#shown);
    const notes = unproven.length === 0 ? {} : { notes: unproven };
    if (reasons.length === 0) return { status: 200, text: jsonOf({ status: "ready", ...notes }) };
    return { status: 503, text: jsonOf({ status: "not ready", reasons }) };
  }

  /** How everything does. */
  status(): StatusAnswer {
    const now = nowMs();
    const { lines, services, journal } = this.#shown;
    const shown = {
      version: this.#version,
      pid: process.pid,
      /** When this process began, as its clock had it then. */
      started: this.#started,
      uptimeS: Math.floor((now - this.#startedMs) / 1_000),
      state: this.#stopping ? "stopping" : "running",
      /** As /readyz has it. */
      ready: notReady(this.#shown, this.#stopping).length === 0,
      lines: Object.fromEntries(lines.map((line) => [line.name, this.#lineShown(line, now)])),
      services: Object.fromEntries(services.map((service) => [service.service, this.#serviceShown(service, now)])),
      journal: journalShown(journal),
    };
    return { status: 200, text: jsonOf(shown) };
  }

  #lineShown({ name, path, queueCallsMax, live }: ShownLine, now: number) {
    const record = this.#recordOf(name);
    return {
      state: live.state,
      sinceMs: Math.round(record.sinceMs(live.state, now)),
      reason: loggedSentence(live.reason),
      device: { path, node: live.device },
      queue: live.waiting === undefined ? undefined : { waiting: live.waiting, max: queueCallsMax },
      stalledMs: Math.round(live.stalledMs?.(now) ?? 0),
      counters: record.counters(),
      lastExchange: record.lastExchange,
      lastLate: record.lastLate,
    };
  }

  #serviceShown({ service, line, host, port, upstream }: ShownService, now: number) {
    const { counts, offer } = this.#service(service);
    const live = this.#shown.lines.find(({ name }) => name === line)?.live.liveness?.(now);
    const heard = live?.find((each) => each.service === service);
    return { line, host, port, upstream, heard: heard && heardShown(heard, now), counters: counts, offer };
  }

  #recordOf(name: string): LineRecord {
    const record = this.#lines.get(name) ?? new LineRecord();
    this.#lines.set(name, record);
    return record;
  }

  #service(service: ServiceName | string): ServiceRecord {
    const record = this.#services.get(service) ?? { counts: noOutcomes(), offer: undefined };
    this.#services.set(service, record);
    return record;
  }
}

/** Whether a service was heard, and when last, since its line opened. */
function heardShown({ state, heardMs, cause }: LiveService, now: number) {
  return {
    state,
    agoMs: heardMs === undefined ? undefined : Math.round(now - heardMs),
    reason: cause && loggedSentence(cause.cause),
    cure: cause && loggedSentence(cause.cure),
  };
}

function journalShown(journal: ShownJournal | undefined) {
  if (journal === undefined) return { state: "off" };
  const { folder, onFailure, live } = journal;
  const all = live.unknown();
  const newest = all
    .slice(-unknownMax)
    .reverse()
    .map(({ time, requestId, service, route, key, amount, cause }) => ({
      time,
      requestId: logged(requestId),
      service,
      route,
      key: key === undefined ? undefined : logged(key),
      amount: amount === undefined ? undefined : logged(amount),
      cause,
    }));
  return {
    state: loggedSentence(live.state),
    folder,
    onFailure,
    unknown: { total: Math.max(live.unknownTotal ?? 0, all.length), newest },
  };
}

/** Indented, for it is read by people as often as by programs. */
function jsonOf(shown: unknown): string {
  return `${printableJson(JSON.stringify(shown, null, 2))}\n`;
}
