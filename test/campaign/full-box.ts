import { type BridgeLine, bridgeLine } from "../../src/app/bridge-line.ts";
import { Followers } from "../../src/app/followers.ts";
import { JournalSettling } from "../../src/app/journal-settling.ts";
import { LineSet } from "../../src/app/line-set.ts";
import { servedBy, sharedLines } from "../../src/app/served.ts";
import type { Config } from "../../src/config/config.ts";
import { logDefaults, serviceDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, ContractName, Handler, Reply, ServiceName } from "../../src/core/call.ts";
import { deviceMark } from "../../src/core/device-mark.ts";
import type { OpenTransport } from "../../src/device/transport.ts";
import { Journal } from "../../src/journal/journal.ts";
import { lineCaller } from "../../src/line/caller.ts";
import { folder, bytes as journalBytes, Told } from "../journal/records.ts";
import type { SimDisk } from "../journal/sim-disk.ts";
import { configOf, silentReport } from "../line/lines.ts";
import { merchantId } from "./request-body.ts";

/** One process of a full world: what src/app/bridge.ts joins between its ports and its devices, joined as there. */

/** A service on a line of its own. */
export interface BoxService {
  readonly name: ServiceName;
  readonly contract: ContractName;
  readonly open: OpenTransport;
}

/** What a new configuration may change of a service. */
export interface BoxSettings {
  readonly replyTimeoutMs: number;
  /** Its line is another one where this is. */
  readonly queueCallsMax: number;
}

export interface FullBoxOptions {
  readonly services: readonly BoxService[];
  readonly settings: readonly BoxSettings[];
  readonly onFailure: "refuse" | "relay";
  readonly disk: SimDisk;
  /** Takes a bug. */
  readonly fail: (error: unknown) => void;
}

export class FullBox {
  readonly journal: Journal;
  readonly #services: readonly BoxService[];
  readonly #followers: Followers;
  readonly #settling: JournalSettling;
  readonly #lines: LineSet<BridgeLine>;
  /** Also those whose place was taken. */
  readonly #made: BridgeLine[] = [];
  #handlers: readonly Handler[] = [];
  /** Calls that are not answered yet. */
  readonly #calls = new Set<Promise<unknown>>();

  constructor({ services, settings, onFailure, disk, fail }: FullBoxOptions) {
    this.#services = services;
    this.journal = new Journal({ folder, bytes: journalBytes, onFailure, report: new Told(), disk });
    void this.journal.start();
    this.#followers = new Followers(this.journal);
    this.#settling = new JournalSettling({
      ...{ journal: this.journal, folder, resolve: "ask", error: fail },
      isFollowed: (...asked) => this.#followers.isFollowed(...asked),
    });
    this.#lines = new LineSet<BridgeLine>({
      make: (shared, place) => {
        const open = services.find(({ name }) => shared.name === lineOf(name))?.open;
        if (open === undefined) throw new Error(`no device for ${shared.name}`);
        const line = bridgeLine(shared, place, { open }, silentReport, []);
        this.#made.push(line);
        return line;
      },
      lasting: ({ config: { contract } }) => contract,
    });
    this.reload(settings);
  }

  /** A till's call, by the configuration that is in force. */
  async call(index: number, call: Call): Promise<Reply> {
    const handler = this.#handlers[index];
    if (handler === undefined) throw new Error("there is no such service");
    const answered = handler(call);
    this.#calls.add(answered);
    return answered.finally(() => this.#calls.delete(answered));
  }

  /** Applies another configuration, as `reload` of src/app/bridge.ts does. */
  reload(settings: readonly BoxSettings[]): void {
    const config = this.#config(settings);
    const lines = this.#lines.prepare(sharedLines(config));
    const seen = new Map<ServiceName, Handler>();
    const handlers = servedBy(config).map((served) => {
      const { service, config: wanted } = served;
      const running = lines.get(wanted.line);
      if (running === undefined) throw new Error(`no line ${wanted.line}`);
      const contract = contracts[wanted.contract];
      const device = deviceMark(running.shared.config.path, wanted.contract);
      const { line } = running.onLine;
      const { replyTimeoutMs } = wanted;
      const caller = lineCaller({ contract, service, line, replyTimeoutMs, merchantId, ledger: this.journal, device });
      const handler = this.#settling.observed(caller, { contract, device });
      seen.set(service, handler);
      return this.#followers.prepare(served, handler, device);
    });
    this.#lines.take(lines);
    this.#followers.take();
    this.#handlers = handlers;
    const asked = this.#lines.all.map(({ line }) => ({
      line,
      turn: <T>(work: () => Promise<T>) => this.#followers.turnsOf(line.name).take(work),
    }));
    this.#settling.use(config, asked, seen);
  }

  /** As on SIGTERM; settles when all has ended. */
  async stop(): Promise<void> {
    this.#followers.stop();
    this.#settling.stop();
    await this.#lines.stop();
    await Promise.allSettled(this.#calls);
    await this.journal.close();
  }

  /** Nothing of it does anything any more. */
  kill(): void {
    this.#followers.stop();
    this.#settling.stop();
    for (const each of this.#made) void each.stop("killed", 0);
  }

  #config(settings: readonly BoxSettings[]): Config {
    const each = this.#services.map(({ name, contract }, index) => {
      const { replyTimeoutMs = 0, queueCallsMax } = settings[index] ?? {};
      const { routes } = contracts[contract];
      const service = {
        ...{ ...serviceDefaults, contract, line: lineOf(name), port: 0, allowOrigins: [], allowHosts: [], merchantId },
        replyTimeoutMs: Object.fromEntries(routes.map(({ path }) => [path, replyTimeoutMs])),
      };
      return { name, service, line: configOf({ path: `/dev/${name}`, ...(queueCallsMax !== undefined && { queueCallsMax }) }) };
    });
    return {
      lines: Object.fromEntries(each.map(({ name, line }) => [lineOf(name), line])),
      services: Object.fromEntries(each.map(({ name, service }) => [name, service])),
      journal: false,
      log: logDefaults,
    };
  }
}

const lineOf = (service: ServiceName) => `line of ${service}`;
