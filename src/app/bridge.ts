import { Status } from "../admin/status.ts";
import type { Config } from "../config/config.ts";
import { refuseUnrecorded } from "../config/rules.ts";
import { contracts } from "../contract/contracts.ts";
import type { Handler, ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { version } from "../core/version.ts";
import type { ValidateBody } from "../envelope/request.ts";
import type { AdminRoute } from "../http/admin-listener.ts";
import type { HttpListenerOptions } from "../http/listener.ts";
import type { Journal } from "../journal/journal.ts";
import { lineCaller } from "../line/caller.ts";
import type { Line, LineReport } from "../line/line.ts";
import type { ListeningSocket } from "../systemd/descriptors.ts";
import { type Admin, openAdmin } from "./admin.ts";
import { type BridgeLine, bridgeLine, type LineWatcher } from "./bridge-line.ts";
import { BridgePorts, type PreparedPorts, socketForAdmin, type WantedPort } from "./bridge-ports.ts";
import type { EmulationFlags } from "./emulation.ts";
import { growHeapOnce } from "./heap.ts";
import { openMoneyJournal } from "./journal.ts";
import { JournalSettling } from "./journal-settling.ts";
import { lineReport, tee } from "./line-report.ts";
import { LineSet, type PreparedLines } from "./line-set.ts";
import { refuseRestarts } from "./restarts.ts";
import { type Listening, type Served, servedBy, sharedLines } from "./served.ts";
import { type LineView, summaryOf } from "./summary.ts";
import type { Supervised } from "./supervision.ts";
import { devices, emulatedLines, emulationOf, type TransportOf } from "./transports.ts";

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
  /** What systemd listens on for posline; none where posline listens by itself. */
  readonly sockets: readonly ListeningSocket[];
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
export async function startBridge({ config, log, emulated, sockets }: BridgeOptions): Promise<Bridge> {
  const emulation = emulated === undefined ? undefined : await emulationOf(emulated, config, log);
  const transportOf = emulation === undefined ? await devices() : await emulatedLines(emulation, log);
  const adminSocket = socketForAdmin(config, sockets);
  const journal = await journalOf(config, log);
  const settling = settlingOf(journal, config, log);
  const bridge = new RunningBridge({
    log,
    transportOf,
    journal,
    settling,
    sockets: sockets.filter((each) => each !== adminSocket),
  });
  try {
    await bridge.reload(config);
    // Last, so that the usual admin port is never taken from a service that is to have it.
    if (config.admin !== undefined || adminSocket !== undefined || emulation !== undefined) {
      bridge.admin = await openAdmin(config.admin, { ...bridge.routes, ...emulation?.routes }, log, adminSocket);
    }
  } catch (error) {
    await bridge.stop();
    throw error;
  }
  return bridge;
}

interface RunningOptions {
  readonly log: Log;
  readonly transportOf: TransportOf;
  /** For the services. */
  readonly sockets: readonly ListeningSocket[];
  readonly journal: Journal | undefined;
  readonly settling: JournalSettling | undefined;
}

class RunningBridge implements Bridge {
  readonly #log: Log;
  readonly #status = new Status(version);
  readonly #journal: Journal | undefined;
  readonly #settling: JournalSettling | undefined;
  readonly #lines: LineSet<BridgeLine>;
  readonly #ports: BridgePorts;
  readonly #report: HttpListenerOptions["report"];
  /** Who sees what happens on the lines, beside log and status. */
  readonly #watchers: readonly LineWatcher[] = [];
  admin: Admin | undefined;
  #config: Config | undefined;
  #changed = () => {};

  constructor({ log, transportOf, sockets, journal, settling }: RunningOptions) {
    this.#log = log;
    this.#journal = journal;
    this.#settling = settling;
    this.#report = {
      exchange: (record) => {
        growHeapOnce();
        log.exchange(record);
        this.#status.exchange(record);
      },
      error: (error) => log.process("error", "internal error in posline: please report it", { error: String(error) }),
    };
    this.#lines = new LineSet({
      make: (shared, place) => bridgeLine(shared, place, transportOf(shared), this.#reportOf(shared.name), this.#watchers),
      // A line signs its own requests with the one, and its decoder is made for the other.
      lasting: ({ config: { merchantId, replyBytesMax } }) => [merchantId, replyBytesMax],
    });
    this.#ports = new BridgePorts(sockets, { exchange: log.exchange, error: this.#report.error });
  }

  get lines(): readonly Line[] {
    return this.#lines.all.map(({ line }) => line);
  }

  get listening(): readonly Listening[] {
    return this.#ports.listening;
  }

  /** What the admin port answers. */
  get routes(): Readonly<Record<string, AdminRoute>> {
    return { ...this.#status.routes, ...this.#settling?.routes };
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
    const handlers = new Map<ServiceName, Handler>();
    let ports: PreparedPorts;
    try {
      ports = await this.#ports.prepare(served.map((each) => this.#wanted(each, lines, validate, handlers)));
    } catch (error) {
      await this.#lines.discard(lines, this.#config === undefined ? "start failed" : "the new configuration was refused");
      throw error;
    }
    this.#ports.take(ports);
    this.#lines.take(lines);
    this.#log.setLevel(config.log.level);
    this.#config = config;
    this.#settling?.use(
      config,
      this.lines.map((line) => ({ line, turn: (work) => work() })),
      handlers,
    );
    this.#show(config);
  }

  async stop(): Promise<void> {
    this.#status.stopping();
    this.#settling?.stop();
    const closed = this.#ports.close();
    await this.#lines.stop();
    await closed;
    await this.admin?.close();
    await this.#journal?.close();
  }

  #reportOf(line: string): LineReport {
    const report = tee(lineReport(line, this.#log), this.#status.line(line));
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

  #show({ lines, journal }: Config): void {
    this.#status.setSources({
      lines: this.lines.map((live) => {
        const { path, queueCallsMax } = lines[live.name] ?? {};
        return { name: live.name, path: path ?? "", queueCallsMax, live };
      }),
      services: this.listening.map(({ line = "", ...each }) => ({ ...each, line })),
      journal:
        this.#settling === undefined || journal === false || journal.folder === undefined
          ? undefined
          : { folder: journal.folder, onFailure: journal.onFailure, live: this.#settling.live },
    });
  }

  /** @param handlers Where the service's handler is noted. */
  #wanted(
    { service, config }: Served,
    lines: PreparedLines<BridgeLine>,
    validate: ValidateBody | undefined,
    handlers: Map<ServiceName, Handler>,
  ): WantedPort {
    const line = lines.get(config.line)?.onLine.line;
    // The configuration refuses a service whose line isn't there.
    if (line === undefined) throw new Error(`Cannot serve ${service}: there is no line ${config.line}`);
    const contract = contracts[config.contract];
    const { merchantId, replyTimeoutMs } = config;
    const caller = lineCaller({ contract, service, line, replyTimeoutMs, merchantId, ledger: this.#journal });
    const handler = this.#settling?.observed(caller, { contract }) ?? caller;
    handlers.set(service, handler);
    return {
      line: config.line,
      options: {
        contract,
        service,
        config,
        rules: { check: config.check, merchantId, validate },
        handler,
        refusal: () => line.refusal,
        report: this.#report,
      },
    };
  }
}

/** A line as the summary shows it: a clean one may have a silent terminal. */
function viewOf(line: Line): LineView {
  const unheard = line.liveness(nowMs()).find(({ state }) => state === "unheard");
  const { name, state, reason } = line;
  return { name, state, reason, unheard: unheard?.cause?.cause };
}

async function journalOf({ journal }: Config, log: Log): Promise<Journal | undefined> {
  refuseUnrecorded({ journal });
  if (journal === false || journal.folder === undefined) return undefined;
  return openMoneyJournal(journal, journal.folder, log);
}

function settlingOf(journal: Journal | undefined, { journal: settings }: Config, log: Log): JournalSettling | undefined {
  if (journal === undefined || settings === false || settings.folder === undefined) return undefined;
  return new JournalSettling({
    journal,
    folder: settings.folder,
    resolve: settings.resolve,
    isFollowed: () => false,
    error: (error) => log.process("error", "internal error in posline: please report it", { error: String(error) }),
  });
}

/** The schema library is loaded only where a service asks for whole schemas. */
async function validatorFor(served: readonly Served[]): Promise<ValidateBody | undefined> {
  if (!served.some(({ config }) => config.check === "contract")) return undefined;
  return (await import("../contract/schema.ts")).validateRequest;
}
