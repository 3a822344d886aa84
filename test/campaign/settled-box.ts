import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { ask, BridgeProcess, type HttpAnswer } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { merchantId } from "./request-body.ts";
import { servicesOf } from "./settled-terminal.ts";

/** posline on its box: the real bundle, killed and started again, with a journal that outlives it. */

/** The least that a reply may be given: an answer that is lost costs the line so long. */
const replyTimeoutMs = 3_001;

/** More slots than a campaign has records: nothing is overwritten. */
const journalBytes = 8 * 1024 * 1024;

/**
 * In memory: kill -9 takes nothing of it away, as little as of a disk's cache, and a disk that a busy machine keeps waiting for 5 s would
 * let operations go out unrecorded.
 */
const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** How often posline is started at most: a busy machine may need longer for it than a process is waited for. */
const startsMax = 5;

export class SettledBox {
  readonly #folder = mkdtempSync(join(memory, "posline-settled-"));
  readonly #config: object;
  #bridge: BridgeProcess | undefined;
  /** By service; empty while posline is away. */
  #ports: ReadonlyMap<string, number> = new Map();

  private constructor(lines: number, ports: readonly number[]) {
    const free = [...ports];
    const all = Array.from({ length: lines }, (_, index) => index + 1);
    const services = all.flatMap((line) =>
      Object.entries(servicesOf(line)).map(([name, contract]) => {
        const own = name === contract ? {} : { contract, port: free.pop() };
        const signed = contract === "fiscal" ? { merchantId } : {};
        return [name, { line: `line-${line}`, replyTimeoutMs, ...own, ...signed }] as const;
      }),
    );
    this.#config = {
      lines: Object.fromEntries(all.map((line) => [`line-${line}`, { path: this.link(line), baudRate: 115_200 }])),
      services: Object.fromEntries(services),
      journal: { bytes: journalBytes },
      admin: { host: "127.0.0.1" },
    };
    mkdirSync(this.#journal);
  }

  static async create(lines: number): Promise<SettledBox> {
    return new SettledBox(lines, await freePorts(3 * lines));
  }

  /** Where a line's device is looked for. */
  link(line: number): string {
    return join(this.#folder, `tty-${line}`);
  }

  get #journal(): string {
    return join(this.#folder, "state");
  }

  get isUp(): boolean {
    return this.#ports.size > 0;
  }

  async start(): Promise<void> {
    for (let starts = 1; !this.isUp; starts++) {
      try {
        await this.#start();
      } catch (error) {
        await this.kill();
        if (starts >= startsMax) throw error;
      }
    }
  }

  async #start(): Promise<void> {
    const bridge = new BridgeProcess(this.#config, { env: { STATE_DIRECTORY: this.#journal, POSLINE_ADMIN_PORT: "0" } });
    this.#bridge = bridge;
    const names = [...Object.keys(servicesIn(this.#config)), "admin"];
    this.#ports = new Map(await Promise.all(names.map(async (name) => [name, await bridge.port(name)] as const)));
  }

  /** As the kernel does when memory runs out: whatever it was doing, nothing more is done. */
  async kill(): Promise<void> {
    this.#ports = new Map();
    await this.#bridge?.stop("SIGKILL");
    this.#bridge = undefined;
  }

  /**
   * Sends a till's call.
   * @param leaveMs After so many milliseconds the till is gone.
   * @returns undefined where no answer came.
   */
  async post(service: string, route: string, body: string, waitS: number | undefined, leaveMs: number | undefined) {
    const port = this.#ports.get(service);
    if (port === undefined) return undefined;
    const headers = waitS === undefined ? {} : { Prefer: `wait=${waitS}` };
    const answered = ask(port, "POST", route, body, headers, leaveMs).catch(() => undefined);
    return answered satisfies Promise<HttpAnswer | undefined>;
  }

  /** What `/status` lists as unknown. */
  async unknown(): Promise<readonly JsonObject[]> {
    const { text } = await ask(this.#ports.get("admin") ?? 0, "GET", "/status", "");
    const status: unknown = JSON.parse(text);
    const journal = isObject(status) ? status["journal"] : undefined;
    const unknown = isObject(journal) ? journal["unknown"] : undefined;
    if (!isObject(unknown) || !Array.isArray(unknown["newest"])) throw new Error(`Cannot read the status: ${text}`);
    return unknown["newest"].filter(isObject);
  }

  /** The journal's operations, in order. */
  async operations(): Promise<readonly JsonObject[]> {
    const unset = { POSLINE_FISCAL_PORT: undefined, POSLINE_BANK_PORT: undefined, POSLINE_QR_PORT: undefined };
    const command = new PoslineProcess(["journal", "--json", "--folder", this.#journal], { env: unset });
    const code = await command.ended();
    if (code !== 0) throw new Error(`Cannot read the journal: exit code ${code}: ${command.stderr}`);
    return command.stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line): unknown => JSON.parse(line))
      .filter(isObject);
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function servicesIn(config: object): object {
  return "services" in config && isObject(config.services) ? config.services : {};
}
