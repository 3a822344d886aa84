import { Events } from "../admin/events.ts";
import { Status } from "../admin/status.ts";
import { ExchangePhases } from "../capture/exchange-phases.ts";
import { LineTraffic } from "../capture/line-traffic.ts";
import { FlightRecorder } from "../capture/recorder.ts";
import { type Config, secretsIn } from "../config/config.ts";
import { refuseUnrecorded } from "../config/rules.ts";
import { contractOnLine, contracts } from "../contract/contracts.ts";
import { contractNames } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { deviceMark } from "../core/device-mark.ts";
import type { Log } from "../core/log.ts";
import { version } from "../core/version.ts";
import type { ValidateBody } from "../envelope/request.ts";
import type { AdminAnswer, AdminRoute } from "../http/admin-listener.ts";
import { LazyPart } from "../http/lazy-part.ts";
import type { HttpListenerOptions } from "../http/listener.ts";
import { lineCaller } from "../line/caller.ts";
import { leavingBeatMs, leavingsFirst } from "../line/leavings-first.ts";
import type { Line, LineReport } from "../line/line.ts";
import { Standstill } from "../line/standstill.ts";
import { Operations } from "../operations/operations.ts";
import { type Admin, openAdmin } from "../process/admin.ts";
import { reportBug } from "../process/bug.ts";
import { setHeapFlagsOnce } from "../process/heap.ts";
import { type EmulationFlags, type LoadLab, openApiDocuments } from "../process/lab.ts";
import { lineReport, publishedLine, settingsReport, tee } from "../process/line-report.ts";
import { LineSet, type PreparedLines, type TransportOf } from "../process/line-set.ts";
import { listeningServices, openApiRoutes } from "../process/openapi.ts";
import { refuseForgotten, refuseRestarts } from "../process/restarts.ts";
import { type Listening, type Served, servedBy, sharedLines } from "../process/served.ts";
import { type LineView, summaryOf } from "../process/summary.ts";
import type { Supervised } from "../process/supervision.ts";
import { owedForMs } from "../recovery/limits.ts";
import type { ListeningSocket } from "../systemd/descriptors.ts";
import { type BridgeLine, bridgeLine, type LineWatcher } from "./bridge-line.ts";
import { BridgePorts, type PreparedPorts, socketsForAdmin, type WantedPort } from "./bridge-ports.ts";
import { openMoneyJournal } from "./money-journal.ts";
import { Taps } from "./taps.ts";
import { Ways } from "./ways.ts";

/**
 * The bridge: `http/listener` → `line/caller`. Here parts are joined and started and stopped in order; nothing is decided.
 */

/** Milliseconds something may be overdue before a line's engine counts as stalled: a busy box runs late, but not by this. */
const stalledMsMax = 10_000;

export interface BridgeOptions {
  readonly config: Config;
  readonly log: Log;
  /** There when the emulator answers on every line, in place of its device. */
  readonly emulated: EmulationFlags | undefined;
  readonly lab: LoadLab;
  /** What systemd listens on for posline; none where posline listens by itself. */
  readonly sockets: readonly ListeningSocket[];
  /** The descriptor of systemd's Unix socket for unmasked taps, where there is one. */
  readonly tap?: number | undefined;
  /** The path of the socket at which a setup is begun, if there is one. */
  readonly setupSocket?: string | undefined;
}

export interface Bridge extends Supervised {
  readonly lines: readonly Line[];
  readonly listening: readonly Listening[];
  /** Health and status, and the emulator's control API where there is one. */
  readonly admin: Admin | undefined;
  /**
   * Applies another configuration: what it doesn't change goes on as it is, exchanges in flight end under the old one.
   * @throws Error when it can't be applied; then nothing has changed.
   */
  reload(config: Config): Promise<void>;
  /** Stops accepting, refuses what waits, lets the exchanges in flight end, and gives the devices back. */
  stop(): Promise<void>;
}

/**
 * Starts a bridge: its services listen, its lines open for ever.
 * @throws Error when a port can't be opened, or when the emulator can't start; nothing is left running.
 */
export async function startBridge({ config, log, emulated, lab, sockets, tap, setupSocket }: BridgeOptions): Promise<Bridge> {
  const emulation = emulated && (await (await lab("the emulator")).emulatedLines(emulated, config, log));
  const transportOf = emulation?.transportOf ?? (await devices(log));
  const adminSockets = socketsForAdmin(config, sockets);
  const status = new Status(version);
  const error = (reason: unknown) => reportBug(log, reason);
  const events = new Events({ version, notReady: () => status.notReady(), error });
  const operations = await operationsOf(
    config,
    log,
    events,
    emulated === undefined ? process.env["CACHE_DIRECTORY"] : undefined,
  );
  const ways = waysOf(operations, config, events, error);
  const forServices = sockets.filter((each) => !adminSockets.includes(each));
  const control = emulation?.routes ?? {};
  const hasAdmin = config.admin !== undefined || adminSockets.length > 0 || emulation !== undefined;
  const isPlay = emulation !== undefined;
  const parts = { log, status, events, transportOf, operations, ways, control, lab, ...(!isPlay && { setupSocket }) };
  const bridge = new RunningBridge({ ...parts, sockets: forServices, isWatched: hasAdmin || tap !== undefined });
  try {
    await bridge.reload(config);
    if (tap !== undefined) bridge.openTap(tap);
    // Last, so that the usual admin port is never taken from a service that is to have it.
    if (hasAdmin) {
      const on = adminSockets.length > 0 ? { holders: adminSockets.map(({ holder }) => holder) } : undefined;
      bridge.admin = await openAdmin(config.admin, bridge.routes, log, { on, isPlay });
    }
  } catch (error) {
    await bridge.stop();
    throw error;
  }
  return bridge;
}

interface RunningOptions {
  readonly log: Log;
  readonly status: Status;
  readonly events: Events;
  readonly transportOf: TransportOf;
  /** For the services. */
  readonly sockets: readonly ListeningSocket[];
  readonly operations: Operations;
  /** The emulator's routes on the admin port. */
  readonly control: Readonly<Record<string, AdminRoute>>;
  readonly ways: Ways;
  readonly lab: LoadLab;
  readonly setupSocket?: string | undefined;
  /** What is seen on the lines can be had: without an admin port and a tap's socket nobody would ever look. */
  readonly isWatched: boolean;
}

/** Its parts are given, so that whole worlds can run it on a disk and a network of their own. */
export class RunningBridge implements Bridge {
  readonly #log: Log;
  readonly #status: Status;
  readonly #events: Events;
  readonly #phases: ExchangePhases;
  readonly #taps: Taps;
  readonly #operations: Operations;
  readonly #standstill = new Standstill(leavingBeatMs);
  readonly #control: Readonly<Record<string, AdminRoute>>;
  readonly #ways: Ways;
  readonly #lines: LineSet<BridgeLine>;
  readonly #ports: BridgePorts;
  readonly #isWatched: boolean;
  readonly #recorder = new FlightRecorder();
  /** Who sees what happens on the lines, beside log and status. */
  readonly #watchers: readonly LineWatcher[];
  readonly #traffic = new LineTraffic();
  readonly #lab: LoadLab;
  readonly #tests: LazyPart;
  /** None without the socket of a helper that may write the configuration. */
  readonly #setup: LazyPart | undefined;
  admin: Admin | undefined;
  #config: Config | undefined;
  #changed = () => {};

  constructor(options: RunningOptions) {
    const { log, status, events, transportOf, sockets, operations, ways, control, isWatched } = options;
    this.#log = log;
    this.#lab = options.lab;
    this.#control = control;
    this.#status = status;
    this.#events = events;
    this.#phases = new ExchangePhases({
      phase: (exchange, phase) => events.publish({ event: "exchange", exchange, phase }),
      // For those who watch alone: log and counters are of what tills ask.
      questionEnded: (end) => events.publish({ event: "exchange", phase: "ended", background: true, ...end }),
    });
    this.#taps = new Taps(log);
    this.#operations = operations;
    this.#ways = ways;
    this.#standstill.start();
    this.#watchers = isWatched ? [this.#traffic, this.#phases, this.#taps, this.#recorder] : [];
    this.#isWatched = isWatched;
    this.#tests = new LazyPart("/test", '{"sales":{}}', async () => {
      const { TerminalTests } = await import("../trial/terminal-tests.ts");
      return new TerminalTests(
        () => (this.#config === undefined ? [] : servedBy(this.#config)),
        (service) => this.#ports.connect(service),
      );
    });
    const socket = options.setupSocket;
    this.#setup =
      socket === undefined
        ? undefined
        : new LazyPart("/setup", '{"isRunning":false,"messages":[]}', async () => {
            const { SetupRelay } = await import("../setup/setup-relay.ts");
            return new SetupRelay({ socket, log });
          });
    this.#lines = new LineSet({
      make: (shared, place) => bridgeLine(shared, place, transportOf(shared), this.#reportOf(shared.name), this.#watchers),
      owing: ({ path }) => {
        const marks = this.#operations.owing(owedForMs);
        return contractNames.filter((contract) => marks.has(deviceMark(path, contract)));
      },
      // A line proves itself clean by its contracts' probes, signs its own requests, and has a decoder made for the largest reply.
      lasting: ({ config: { contract, linePort, merchantId, replyBytesMax } }) => [
        contract,
        linePort,
        merchantId,
        replyBytesMax,
      ],
    });
    this.#ports = new BridgePorts(sockets, { exchange: log.exchange, error: (error) => reportBug(log, error) });
  }

  get lines(): readonly Line[] {
    return this.#lines.all.map(({ line }) => line);
  }

  get listening(): readonly Listening[] {
    return this.#ports.listening;
  }

  /** What the admin port answers. */
  get routes(): Readonly<Record<string, AdminRoute>> {
    const others: Readonly<Record<string, AdminRoute>> = {
      ...this.#status.routes,
      ...this.#events.routes,
      ...this.#taps.routes,
      "GET /recording": () => this.#recording(),
      ...this.#ways.routes,
      ...this.#tests.routes,
      ...this.#setup?.routes,
      ...this.#control,
    };
    if (this.#config === undefined) return others;
    const services = listeningServices(this.#config, this.listening);
    return {
      ...others,
      ...openApiRoutes({
        admin: this.#config.admin,
        services,
        others: Object.keys(others),
        lab: () => this.#lab(openApiDocuments),
      }),
    };
  }

  /** Serves unmasked taps on a Unix socket that listens already. */
  openTap(fd: number): void {
    this.#taps.open(fd);
  }

  /** What the lines' engines were given last, masked, for `posline replay`. */
  #recording(): AdminAnswer {
    return { status: 200, text: this.#recorder.text(secretsIn(this.#config?.services)), contentType: "application/x-ndjson" };
  }

  summary(): string {
    return summaryOf(this.lines.map(viewOf));
  }

  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  /** An engine is stalled when something was due long ago; a missing device doesn't count. */
  stalled(): string | undefined {
    const now = nowMs();
    const line = this.lines.find((each) => each.stalledMs(now) > stalledMsMax);
    if (line === undefined) return undefined;
    return `the engine of line ${line.name} makes no progress: it has been overdue for ${Math.round(line.stalledMs(now))} ms`;
  }

  /** At the start too: everything that can fail does so before anything changes. */
  async reload(config: Config): Promise<void> {
    if (this.#config !== undefined) refuseRestarts(this.#config, config, ["journal", "admin"]);
    const served = servedBy(config);
    const validate = await validatorFor(served);
    const lines = this.#lines.prepare(sharedLines(config));
    let ports: PreparedPorts = new Map();
    try {
      ports = await this.#ports.prepare(served.map((each) => this.#wanted(each, lines, validate)));
      // At the last moment: a sale may have come while the ports were opened.
      const before = Object.keys(this.#config?.services ?? {});
      refuseForgotten(before, Object.keys(config.services), config.journal === false ? [] : this.#operations.unended());
    } catch (error) {
      this.#ways.drop();
      const why = this.#config === undefined ? "start failed" : "the new configuration was refused";
      await Promise.all([this.#ports.discard(ports), this.#lines.discard(lines, why)]);
      throw error;
    }
    this.#ports.take(ports);
    this.#lines.take(lines);
    this.#ways.take(config, this.lines);
    this.#log.setLevel(config.log.level);
    for (const warning of this.#ports.warnings) this.#log.process("warn", warning);
    this.#config = config;
    this.#show(config);
    this.admin?.replace(this.routes);
    // Who is told that it is over finds no port any more that was taken away.
    await this.#ports.closed;
  }

  async stop(): Promise<void> {
    this.#status.stopping();
    void this.#tests.stop();
    this.#standstill.stop();
    this.#ways.stop();
    const answered = this.#ports.close();
    // Only then are waiting calls refused: their answers end their connections, and nobody can connect any more.
    await this.#ports.closed;
    await this.#lines.stop();
    await answered;
    this.#events.close();
    this.#taps.close();
    await this.admin?.close();
    // Only now nobody can begin another one, which would keep the process alive.
    await this.#setup?.stop();
    await this.#operations.close();
  }

  /** What becomes of calls for a line: a call that a reload finds under way ends on the line where it began. */
  #callReport(line: string): HttpListenerOptions["report"] {
    return {
      exchange: (record) => {
        setHeapFlagsOnce();
        this.#log.exchange(record);
        this.#status.exchange(record, line);
        if (!this.#isWatched) return;
        this.#events.publish({ event: "exchange", phase: "ended", line, record, parts: this.#phases.partsOf(record) });
      },
      error: (error) => reportBug(this.#log, error),
    };
  }

  #reportOf(line: string): LineReport {
    const report = tee(tee(lineReport(line, this.#log), this.#status.line(line)), publishedLine(line, this.#events));
    return {
      ...report,
      state: (state, reason) => {
        report.state(state, reason);
        this.#changed();
      },
      unheard: (service, cause) => {
        report.unheard(service, cause);
        this.#changed();
      },
      heardAgain: (service) => {
        report.heardAgain(service);
        this.#changed();
      },
    };
  }

  #show({ lines, services, journal }: Config): void {
    this.#status.setSources({
      lines: this.lines.map((live) => {
        const { path, queueCallsMax } = lines[live.name] ?? {};
        return { name: live.name, path: path ?? "", queueCallsMax, traffic: this.#traffic.of(live.name), live };
      }),
      services: this.listening.map(({ line = "", ...each }) => ({ ...each, line, contract: services[each.service]?.contract })),
      journal:
        journal === false || journal.folder === undefined
          ? undefined
          : { folder: journal.folder, onFailure: journal.onFailure, live: this.#ways.live },
      log: this.#log,
    });
  }

  #wanted(served: Served, lines: PreparedLines<BridgeLine>, validate: ValidateBody | undefined): WantedPort {
    const { service, config } = served;
    const running = lines.get(config.line);
    // The configuration refuses a service whose line isn't there.
    if (running === undefined) throw new Error(`Cannot serve ${service}: there is no line ${config.line}`);
    const { line } = running.onLine;
    const device = deviceMark(running.shared.config.path, config.contract);
    const contract = contracts[config.contract];
    const { merchantId, replyTimeoutMs } = config;
    const caller = lineCaller({
      contract: contractOnLine(config),
      service,
      line,
      replyTimeoutMs,
      merchantId,
      ledger: leavingsFirst(this.#operations, this.#standstill),
      device,
    });
    return {
      line: config.line,
      options: {
        contract,
        service,
        config,
        rules: { check: config.check, merchantId, validate },
        handler: this.#ways.handlerOf(served, caller, device),
        isFollowed: true,
        refusal: (route, bodyBytes) => {
          const { refusal } = line;
          return refusal !== undefined && this.#ways.mayJoin(service, route, bodyBytes) ? undefined : refusal;
        },
        report: this.#callReport(config.line),
      },
    };
  }
}

async function devices(log: Log): Promise<TransportOf> {
  const { openerOf } = await import("../device/opener.ts");
  return ({ name, config }) => ({ open: openerOf(config, { settingsChanged: settingsReport(name, log) }) });
}

/** A line as the summary shows it: a clean one may have a silent terminal. */
function viewOf(line: Line): LineView {
  const unheard = line.liveness().find(({ state }) => state === "unheard");
  const { name, state, reason } = line;
  return { name, state, reason, unheard: unheard?.cause?.cause };
}

/** Without a journal what this process sent is known as long as it runs. */
async function operationsOf({ journal }: Config, log: Log, events: Events, cache: string | undefined): Promise<Operations> {
  refuseUnrecorded({ journal });
  if (journal === false || journal.folder === undefined) return new Operations();
  // A folder in /var/cache, which backups leave out.
  const lastRecord = cache === undefined ? undefined : `${cache}/last-record`;
  const publish: Parameters<typeof openMoneyJournal>[3] = (operation) => events.publish({ event: "operation", operation });
  return openMoneyJournal(journal, journal.folder, log, publish, lastRecord);
}

function waysOf(operations: Operations, { journal }: Config, events: Events, error: (reason: unknown) => void): Ways {
  const { folder, resolve } = journal === false ? { folder: undefined, resolve: "observe" as const } : journal;
  return new Ways({ operations, folder, resolve: folder === undefined ? "observe" : resolve, events, error });
}

/** The schema library is loaded only where a service asks for whole schemas. */
async function validatorFor(served: readonly Served[]): Promise<ValidateBody | undefined> {
  if (!served.some(({ config }) => config.check === "contract")) return undefined;
  return (await import("../contract/schema.ts")).validateRequest;
}
