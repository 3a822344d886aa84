import type { Config } from "../config/config.ts";
import { contracts } from "../contract/contracts.ts";
import { nowMs } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { ValidateBody } from "../envelope/request.ts";
import type { AdminRoute } from "../http/admin-listener.ts";
import type { HttpListenerOptions } from "../http/listener.ts";
import { lineCaller } from "../line/caller.ts";
import type { Line } from "../line/line.ts";
import type { LineReport } from "../line/report.ts";
import type { ListeningSocket } from "../systemd/descriptors.ts";
import type { Admin } from "./admin.ts";
import { type BridgeLine, bridgeLine, type Conduit } from "./bridge-line.ts";
import { BridgePorts, type Wanted } from "./bridge-ports.ts";
import type { Emulation, EmulationFlags } from "./emulation.ts";
import { setEngine } from "./engine.ts";
import { lineReport } from "./line-report.ts";
import { LineSet, type PreparedLines } from "./line-set.ts";
import { type Listening, type Served, type SharedLine, servedBy, sharedLines } from "./served.ts";
import { summaryOf } from "./summary.ts";
import type { Supervised } from "./supervision.ts";

/**
 * The bridge: `http/listener` → `line/caller`. Here parts are joined and started and stopped in order; nothing is decided.
 */

/** Milliseconds something may be overdue before a line's engine is thought to stand still: a busy box runs late, but not by this. */
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
   * Takes another configuration: what it doesn't change goes on as it is, exchanges in flight end under the old one.
   * @throws Error when it can't be taken; then all is as before.
   */
  reload(config: Config): Promise<void>;
  /** Stops accepting, refuses what waits, lets the exchanges in flight end, and gives the devices back. */
  stop(): Promise<void>;
}

/**
 * Starts a bridge: its services listen, its lines open for ever.
 * @throws Error when a port can't be had, or when the emulator can't begin; nothing is left running.
 */
export async function startBridge(options: BridgeOptions): Promise<Bridge> {
  const { config, log, emulated, sockets } = options;
  const emulation = emulated === undefined ? undefined : await emulationOf(emulated, config, log);
  const conduitOf = emulation === undefined ? await devices() : await emulatedLines(emulation, log);
  const bridge = new RunningBridge({ log, conduitOf, sockets: sockets.filter(({ port }) => port !== config.admin?.port) });
  try {
    await bridge.reload(config);
    // Last, so that the usual admin port is never taken from a service that is to have it.
    if (emulation !== undefined) bridge.admin = await adminOf(config, emulation.routes, log);
  } catch (error) {
    await bridge.stop();
    throw error;
  }
  setEngine();
  return bridge;
}

interface RunningOptions {
  readonly log: Log;
  readonly conduitOf: (shared: SharedLine) => Conduit;
  readonly sockets: readonly ListeningSocket[];
}

class RunningBridge implements Bridge {
  readonly #lines: LineSet<BridgeLine>;
  readonly #ports: BridgePorts;
  readonly #report: HttpListenerOptions["report"];
  admin: Admin | undefined;
  #changed = () => {};

  constructor({ log, conduitOf, sockets }: RunningOptions) {
    this.#report = {
      exchange: log.exchange,
      error: (error) => log.process("error", "posline failed within: please report it", { error: String(error) }),
    };
    this.#lines = new LineSet({
      make: (shared, place) => bridgeLine(shared, place, conduitOf(shared), this.#told(lineReport(shared.name, log))),
      // Its own requests are signed by it.
      lasting: ({ config: { merchantId } }) => merchantId,
    });
    this.#ports = new BridgePorts(sockets, this.#report);
  }

  get lines(): readonly Line[] {
    return this.#lines.all.map(({ line }) => line);
  }

  get listening(): readonly Listening[] {
    return this.#ports.listening;
  }

  summary(): string {
    return summaryOf(this.lines);
  }

  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  /** An engine stands still when something was due long ago; a device that is away is none. */
  stalled(): string | undefined {
    const now = nowMs();
    const line = this.lines.find((each) => each.stalledMs(now) > stalledMsMax);
    if (line === undefined) return undefined;
    return `line ${line.name} does nothing though something has been due for ${Math.round(line.stalledMs(now))} ms`;
  }

  async reload(config: Config): Promise<void> {
    const served = servedBy(config);
    const validate = await validatorFor(served);
    const lines = this.#lines.prepare(sharedLines(config));
    const ports = await this.#ports.prepare(served.map((each) => this.#wanted(each, lines, validate)));
    this.#ports.take(ports);
    this.#lines.take(lines);
  }

  async stop(): Promise<void> {
    const closed = this.#ports.close();
    await this.#lines.stop();
    await closed;
    await this.admin?.close();
  }

  #told(report: LineReport): LineReport {
    return {
      ...report,
      state: (state, reason) => {
        report.state(state, reason);
        this.#changed();
      },
    };
  }

  #wanted({ service, config }: Served, lines: PreparedLines<BridgeLine>, validate: ValidateBody | undefined): Wanted {
    const line = lines.get(config.line)?.onLine.line;
    // The configuration refuses a service whose line isn't there.
    if (line === undefined) throw new Error(`Cannot serve ${service}: there is no line ${config.line}`);
    const contract = contracts[service];
    const { merchantId, replyTimeoutMs } = config;
    return {
      line: config.line,
      options: {
        contract,
        config,
        rules: { check: config.check, merchantId, validate },
        handler: lineCaller({ contract, line, replyTimeoutMs, merchantId }),
        report: this.#report,
      },
    };
  }
}

async function emulationOf(flags: EmulationFlags, { services }: Config, log: Log): Promise<Emulation> {
  const { openEmulation } = await import("./emulation.ts");
  return openEmulation({ flags, merchantId: services.fiscal?.merchantId, log });
}

async function adminOf({ admin }: Config, routes: Readonly<Record<string, AdminRoute>>, log: Log): Promise<Admin | undefined> {
  const { openAdmin } = await import("./admin.ts");
  return openAdmin(admin, routes, log);
}

/** The schema library is loaded only where a service asks for whole schemas. */
async function validatorFor(served: readonly Served[]): Promise<ValidateBody | undefined> {
  if (!served.some(({ config }) => config.check === "contract")) return undefined;
  return (await import("../contract/schema.ts")).validateRequest;
}

async function devices(): Promise<(shared: SharedLine) => Conduit> {
  const { serialPort } = await import("../line/serial-port.ts");
  return ({ config }) => ({ open: serialPort(config) });
}

/** The emulator on the far end of each line, in memory. */
async function emulatedLines(emulation: Emulation, log: Log): Promise<(shared: SharedLine) => Conduit> {
  const { emulatedLine } = await import("./emulated-line.ts");
  return ({ name, config, served }) => {
    const services = served.map(({ service }) => service);
    const { near, far } = emulatedLine({ name, config, services, emulation, log });
    return { open: near, end: () => far.stop() };
  };
}
