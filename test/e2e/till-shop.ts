import { join } from "node:path";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { TillProxy } from "./till-proxy.ts";
import type { Mishap, PlannedSale } from "./till-schedule.ts";
import { TillTerminal } from "./till-terminal.ts";

/** One till's shop: terminal, bridge with a journal, and the way between till and bridge. Bridge and till die in the midst. */

/** A till's process, with one sale. */
export interface RunningTill {
  /** Resolves when it has ended by itself, with what it printed and its exit code; never when it was killed. */
  readonly ended: Promise<TillEnd>;
  /** kill -9. */
  kill(): unknown;
}

export interface TillEnd {
  readonly printed: string;
  /** Its standard error. */
  readonly complaint: string;
  readonly code: number | null;
}

/** A sale that came to its end, as the till and as the terminal have it. */
export interface SoldTill extends TillEnd {
  readonly sale: PlannedSale;
  /** How the terminal's operations under the key ended: at most one may be there. */
  readonly ledger: readonly string[];
}

/** Milliseconds that the slowest sale may take: two time-outs, two restarts, and the pauses between calls. */
const saleMsMax = 120_000;

/** Milliseconds from a bridge's death to its next start, as by systemd, and the same of a till. */
const restartMs = 200;

/** Milliseconds until a line is clean after the worst: a late answer, and a device that comes back. */
const idleMsMax = 60_000;

/** The shortest that may be set. */
const replyTimeoutMs = 3_001;

export class TillShop {
  readonly proxy: TillProxy;
  readonly terminal: TillTerminal;
  readonly #folder = scratchFolder();
  readonly #config: object;
  readonly #bridgePort: number;
  #bridge: BridgeProcess;
  #restarting: Promise<void> | undefined;
  /** Bridges and tills that were killed. */
  kills = 0;

  /**
   * @param way The port that its till calls.
   * @param allowOrigins Whose pages may call.
   */
  static async open(way: number, allowOrigins: readonly string[]): Promise<TillShop> {
    const [bridge = 0] = await freePorts(1);
    const shop = new TillShop(way, bridge, allowOrigins);
    await shop.proxy.listen();
    await shop.#bridge.port("bank");
    return shop;
  }

  private constructor(way: number, bridge: number, allowOrigins: readonly string[]) {
    const tty = join(this.#folder.path, "tty");
    this.proxy = new TillProxy(way, bridge);
    this.terminal = new TillTerminal(tty);
    this.#bridgePort = bridge;
    this.#config = {
      lines: { till: { path: tty } },
      services: { bank: { line: "till", replyTimeoutMs, allowOrigins } },
      journal: { folder: this.#folder.path },
    };
    this.#bridge = this.#started();
  }

  /** Sells once, while everything happens that is planned for it. */
  async sell(sale: PlannedSale, start: (sale: PlannedSale) => RunningTill): Promise<SoldTill> {
    // What was planned for the sale before, and never came to happen, is not this one's.
    this.terminal.emulator.plan.reset();
    this.terminal.onSale = () => {};
    this.proxy.reset();
    await until(() => this.#isIdle, "the line to be idle", idleMsMax);
    const over = new AbortController();
    let resolve: (end: TillEnd) => void = () => {};
    const ended = new Promise<TillEnd>((found) => {
      resolve = found;
    });
    let till: RunningTill;
    const run = () => {
      till = start(sale);
      till.ended.then(resolve, (error: unknown) => resolve({ printed: "", complaint: String(error), code: null }));
    };
    const killTill = () => {
      if (over.signal.aborted) return;
      this.kills++;
      till.kill();
      setTimeout(run, restartMs);
    };
    for (const mishap of sale.mishaps) this.#prepare(mishap, killTill);
    run();
    const limit = setTimeout(
      () => resolve({ printed: "", complaint: `nothing within ${saleMsMax} ms`, code: null }),
      saleMsMax,
    );
    const end = await ended;
    clearTimeout(limit);
    over.abort();
    await this.#restarting;
    return { sale, ...end, ledger: this.terminal.endsOf(sale.key) };
  }

  async close(): Promise<void> {
    this.proxy.close();
    await this.#restarting;
    await this.#bridge.stop();
    await this.terminal.stop();
    this.#folder.remove();
  }

  get #isIdle(): boolean {
    return this.#bridge.log.findLast((entry) => entry["line"] === "till" && "state" in entry)?.["state"] === "idle";
  }

  #prepare(mishap: Mishap, killTill: () => void): void {
    switch (mishap.kind) {
      case "answer":
        this.terminal.emulator.plan.force({ service: "bank", route: "/sale", effect: { fault: mishap.fault } });
        return;
      case "line-down":
        this.terminal.unplug(mishap.ms);
        return;
      case "bridge-killed":
        this.#atCall(mishap.ms, () => this.#killBridge());
        return;
      case "bridge-killed-at-terminal":
        this.terminal.onSale = () => {
          this.terminal.onSale = () => {};
          this.#killBridge();
        };
        return;
      case "till-killed":
        this.#atCall(mishap.ms, killTill);
        return;
      default:
        this.proxy.plan(mishap);
    }
  }

  /** Does it so many milliseconds after the next call came by. */
  #atCall(ms: number, what: () => void): void {
    const before = this.proxy.onCall;
    this.proxy.onCall = () => {
      this.proxy.onCall = before;
      before();
      setTimeout(what, ms);
    };
  }

  #killBridge(): void {
    if (this.#restarting !== undefined) return;
    this.kills++;
    const killed = this.#bridge;
    this.#restarting = killed.stop("SIGKILL").then(async () => {
      await new Promise((resolve) => setTimeout(resolve, restartMs));
      this.#bridge = this.#started();
      await this.#bridge.port("bank");
      this.#restarting = undefined;
    });
  }

  #started(): BridgeProcess {
    return new BridgeProcess(this.#config, { env: { POSLINE_BANK_PORT: String(this.#bridgePort) } });
  }
}
