import { Events } from "../admin/events.ts";
import { Status } from "../admin/status.ts";
import { LineTraffic } from "../capture/line-traffic.ts";
import type { Config } from "../config/config.ts";
import type { ServiceName } from "../core/call.ts";
import type { Log } from "../core/log.ts";
import { version } from "../core/version.ts";
import type { AdminRoute } from "../http/admin-listener.ts";
import { type Admin, openAdmin } from "../process/admin.ts";
import { reportBug } from "../process/bug.ts";
import { setHeapFlagsOnce } from "../process/heap.ts";
import { type LoadLab, openApiDocuments } from "../process/lab.ts";
import { lineReport, publishedLine, settingsReport, unaddressedReport } from "../process/line-report.ts";
import { LineSet } from "../process/line-set.ts";
import { openApiRoutes } from "../process/openapi.ts";
import { refuseRestarts } from "../process/restarts.ts";
import { servedBy, sharedLines } from "../process/served.ts";
import { summaryOf } from "../process/summary.ts";
import type { Supervised } from "../process/supervision.ts";
import { echoes } from "../trouble/causes.ts";
import { type GatewayLine, type GatewayLineReport, gatewayLine, upstreamOf } from "./gateway-line.ts";

/**
 * The gateway: `line/listener` → `http/caller`, for tills that have a serial port alone. Here parts are joined and started and
 * stopped in order; nothing is decided.
 */

export interface GatewayOptions {
  readonly config: Config;
  readonly log: Log;
  readonly lab: LoadLab;
}

/** A service and its upstream. */
export interface UpstreamService {
  readonly service: ServiceName;
  readonly line: string;
  readonly upstream: string;
}

export interface Gateway extends Supervised {
  readonly asking: readonly UpstreamService[];
  /** Health and status, where they are configured. */
  readonly admin: Admin | undefined;
  /**
   * Applies another configuration; a line that it doesn't change goes on as it is.
   * @throws Error when it can't be applied; then nothing has changed.
   */
  reload(config: Config): Promise<void>;
  /** Takes no more requests, lets those in flight end and their answers go out, and gives the devices back. */
  stop(): Promise<void>;
}

/**
 * Starts a gateway: its lines open for ever, and no upstream need be there yet.
 * @throws Error when the admin port can't be opened; nothing is left running.
 */
export async function startGateway({ config, log, lab }: GatewayOptions): Promise<Gateway> {
  const gateway = new RunningGateway(log);
  if (config.admin !== undefined) {
    const { routes } = gateway;
    // Its services are asked over lines.
    const openApi = openApiRoutes({
      admin: config.admin,
      services: [],
      others: Object.keys(routes),
      lab: () => lab(openApiDocuments),
    });
    gateway.admin = await openAdmin(config.admin, { ...routes, ...openApi }, log);
  }
  gateway.take(config);
  return gateway;
}

class RunningGateway implements Gateway {
  readonly #status = new Status(version);
  readonly #events = new Events({
    version,
    notReady: () => this.#status.notReady(),
    error: (error) => reportBug(this.#log, error),
  });
  readonly #log: Log;
  readonly #lines: LineSet<GatewayLine>;
  readonly #traffic = new LineTraffic();
  admin: Admin | undefined;
  asking: readonly UpstreamService[] = [];
  #config: Config | undefined;
  #changed = () => {};

  constructor(log: Log) {
    this.#log = log;
    this.#lines = new LineSet({
      make: (shared, place) => gatewayLine(shared, place, this.#reportOf(shared.name)),
      lasting: ({ config }) => {
        const { contract, linePort, apiKey, replyTimeoutMs, replyBytesMax } = config;
        return [contract, linePort, upstreamOf(config), apiKey, replyTimeoutMs, replyBytesMax];
      },
    });
  }

  /** What the admin port answers. */
  get routes(): Readonly<Record<string, AdminRoute>> {
    return { ...this.#status.routes, ...this.#events.routes };
  }

  summary(): string {
    return summaryOf(this.#lines.all.map(({ view }) => view));
  }

  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  async reload(config: Config): Promise<void> {
    if (this.#config !== undefined) refuseRestarts(this.#config, config, ["admin"]);
    this.take(config);
  }

  take(config: Config): void {
    this.#lines.take(this.#lines.prepare(sharedLines(config)));
    this.asking = servedBy(config).map(({ service, config: each }) => ({
      service,
      line: each.line,
      upstream: upstreamOf(each),
    }));
    this.#log.setLevel(config.log.level);
    this.#config = config;
    this.#status.setSources({
      lines: this.#lines.all.map((onLine) => ({
        name: onLine.view.name,
        path: config.lines[onLine.view.name]?.path ?? "",
        traffic: this.#traffic.of(onLine.view.name),
        get live() {
          return onLine.view;
        },
      })),
      services: this.asking.map((each) => ({ ...each, contract: config.services[each.service]?.contract })),
      log: this.#log,
    });
  }

  async stop(): Promise<void> {
    this.#status.stopping();
    await this.#lines.stop();
    this.#events.close();
    await this.admin?.close();
  }

  #reportOf(line: string): GatewayLineReport {
    const log = this.#log;
    const observer = this.#status.line(line);
    const published = publishedLine(line, this.#events);
    return {
      ...this.#traffic.listening(line),
      state: (state, reason) => {
        log.line(state === "open" ? "info" : "warn", "line", { line, state, reason });
        observer.state(state, reason);
        this.#events.publish({ event: "line", fields: { line, state, reason } });
        this.#changed();
      },
      discard: (discard) => {
        lineReport(line, log).discard(discard);
        observer.discard(discard);
        published.discard(discard);
      },
      exchange: (record) => {
        setHeapFlagsOnce();
        log.exchange(record);
        this.#status.exchange(record);
        this.#events.publish({ event: "exchange", phase: "ended", line, record, parts: undefined });
      },
      unaddressed: unaddressedReport(line, log),
      echoes: () => lineReport(line, log).echoes?.(echoes()),
      error: (error) => reportBug(log, error, { line }),
      settingsChanged: settingsReport(line, log),
    };
  }
}
