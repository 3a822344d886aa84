import { Events } from "../../src/admin/events.ts";
import { Status } from "../../src/admin/status.ts";
import { RunningBridge } from "../../src/bridge/bridge.ts";
import { Ways } from "../../src/bridge/ways.ts";
import { loadLab } from "../../src/cli/lab.ts";
import type { Config } from "../../src/config/config.ts";
import { journalDefaults, logDefaults, serviceDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName, ServiceName } from "../../src/core/call.ts";
import type { Log } from "../../src/core/log.ts";
import type { OpenTransport } from "../../src/device/transport.ts";
import type { Line } from "../../src/line/line.ts";
import { Operations } from "../../src/operations/operations.ts";
import { folder, bytes as journalBytes, Told } from "../../test/journal/records.ts";
import type { SimDisk } from "../../test/journal/sim-disk.ts";
import { configOf } from "../../test/line/lines.ts";
import { merchantId } from "./request-body.ts";

/** One process of a full world: the bridge itself, from its ports to its devices, on a disk and a network of the world's own. */

export interface BoxService {
  readonly name: ServiceName;
  readonly contract: ContractName;
  /** The name of its line, which another may share. */
  readonly line: string;
  readonly open: OpenTransport;
}

/** What a new configuration may change of a service. */
export interface BoxSettings {
  readonly replyTimeoutMs: number;
  /** Of its line, which is another one where this is; where two share it, the first one's counts. */
  readonly queueCallsMax: number;
  /** Its port is the other one. */
  readonly isMoved: boolean;
}

export interface FullBoxOptions {
  readonly services: readonly BoxService[];
  readonly onFailure: "refuse" | "relay";
  readonly disk: SimDisk;
  /** Takes a bug. */
  readonly fail: (error: unknown) => void;
}

export class FullBox {
  readonly operations: Operations;
  readonly #services: readonly BoxService[];
  readonly #onFailure: "refuse" | "relay";
  readonly #ways: Ways;
  readonly #bridge: RunningBridge;
  /** Also those whose place was taken. */
  readonly #lines = new Set<Line>();

  constructor({ services, onFailure, disk, fail }: FullBoxOptions) {
    this.#services = services;
    this.#onFailure = onFailure;
    this.operations = new Operations({ folder, bytes: journalBytes, onFailure, report: new Told(), disk });
    void this.operations.start();
    this.#ways = new Ways({ operations: this.operations, folder, resolve: "ask", error: fail });
    const status = new Status("0.0.0");
    this.#bridge = new RunningBridge({
      ...{ log: bugsOnly(fail), status, operations: this.operations, ways: this.#ways },
      events: new Events({ version: "0.0.0", notReady: () => status.notReady(), error: fail }),
      transportOf: ({ name }) => {
        const open = services.find(({ line }) => line === name)?.open;
        if (open === undefined) throw new Error(`no device for ${name}`);
        return { open };
      },
      ...{ sockets: [], control: {}, isWatched: false, lab: loadLab },
    });
  }

  /** Applies a configuration, at the start too; settles once its services listen. */
  async reload(settings: readonly BoxSettings[]): Promise<void> {
    await this.#bridge.reload(this.#config(settings));
    for (const line of this.#bridge.lines) this.#lines.add(line);
  }

  /** As on SIGTERM; settles when all has ended. */
  stop(): Promise<void> {
    return this.#bridge.stop();
  }

  /** Nothing of it does anything any more. */
  kill(): void {
    this.#ways.stop();
    for (const line of this.#lines) void line.stop(0, "killed");
  }

  #config(settings: readonly BoxSettings[]): Config {
    const services = this.#services.map(({ name, contract, line }, index) => {
      const { replyTimeoutMs = 0, isMoved = false } = settings[index] ?? {};
      const { routes } = contracts[contract];
      const service = {
        ...{ ...serviceDefaults, contract, line, port: portOf(index, isMoved), allowOrigins: [], allowHosts: [], merchantId },
        replyTimeoutMs: Object.fromEntries(routes.map(({ path }) => [path, replyTimeoutMs])),
      };
      return [name, service] as const;
    });
    const lines = this.#services.map(({ line }, index) => {
      const { queueCallsMax } = settings[index] ?? {};
      return [line, configOf({ path: `/dev/${line}`, ...(queueCallsMax !== undefined && { queueCallsMax }) })] as const;
    });
    return {
      lines: Object.fromEntries(lines.toReversed()),
      services: Object.fromEntries(services),
      journal: { ...journalDefaults, folder, onFailure: this.#onFailure },
      log: logDefaults,
    };
  }
}

/** Two for each service. */
export const portOf = (service: number, isMoved: boolean) => 20_000 + 2 * service + (isMoved ? 1 : 0);

/** What is logged as an error is a bug: of its disk a world's journal tells nobody. */
const bugsOnly = (fail: (error: unknown) => void): Log => ({
  exchange: () => {},
  line: () => {},
  process: (level, message, { error } = {}) => {
    if (level === "error") fail(new Error(`${message}: ${error}`));
  },
  state: "ok",
  dropped: { budget: 0, reader: 0 },
  setLevel: () => {},
  flush: () => {},
});
