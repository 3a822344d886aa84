import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { ContractName, ServiceName } from "../../src/core/call.ts";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { ask, BridgeProcess, type HttpAnswer } from "../../test/support/bridge-process.ts";
import { freePorts } from "../../test/support/free-port.ts";
import { PoslineProcess } from "../../test/support/posline-process.ts";
import { type Change, changed, configOf, mistaken, type Places, usualSetup } from "./settled-setup.ts";

/** posline on its box: the real bundle, reloaded, killed and started again, with a journal that outlives it. */

/**
 * In memory: kill -9 takes nothing of it away, as little as of a disk's cache, and a disk that a busy machine keeps waiting for 5 s would
 * let operations go out unrecorded.
 */
const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** How often posline is started at most: a busy machine may need longer for it than a process is waited for. */
const startsMax = 5;

/** The services' ports are in the file, as a reload moves them. */
const unset = { POSLINE_FISCAL_PORT: undefined, POSLINE_BANK_PORT: undefined, POSLINE_QR_PORT: undefined };

/** Milliseconds without another word, after which two signals were one. */
const secondWordMs = 1_000;

const takenWord = "the configuration was reloaded";

/** Why a file without a mistake may be refused: what is unknown is known by its service's name. */
const forgetful = /^Cannot reload: services\.\S+ was taken away or renamed, and how .* of it ended is unknown/;

/** What became of a reload; `cut`: posline was killed before it said so. */
export type ReloadEnd = "taken" | "refused" | "cut";

export class SettledBox {
  readonly #folder = mkdtempSync(join(memory, "posline-settled-"));
  readonly #places: Places;
  #bridge: BridgeProcess | undefined;
  #adminPort = 0;
  /** What is in force. */
  #setup = usualSetup;
  /** What its file says, as far as it can be used: what the next start takes. */
  #filed = usualSetup;
  #isUp = false;

  private constructor(ports: readonly number[], paths: readonly string[]) {
    this.#places = { path: (line) => paths[line - 1] ?? this.tty(line), ports };
    mkdirSync(this.#journal);
  }

  /** @param paths Of its lines, where they are no ttys. */
  static async create(paths: readonly string[]): Promise<SettledBox> {
    return new SettledBox(await freePorts(2 * Object.keys(usualSetup.services).length), paths);
  }

  /** Where a terminal's tty is looked for. */
  tty(line: number): string {
    return join(this.#folder, `tty-${line}`);
  }

  get #journal(): string {
    return join(this.#folder, "state");
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Whether a service can be called. */
  has(service: ServiceName): boolean {
    return this.#isUp && this.#setup.gone !== service;
  }

  /** Whether a contract's services have each other's terminals, or will have at any moment. */
  isMoved(contract: ContractName): boolean {
    return this.#setup.moved.includes(contract) || this.#filed.moved.includes(contract);
  }

  async start(): Promise<void> {
    for (let starts = 1; !this.#isUp; starts++) {
      try {
        await this.#start();
      } catch (error) {
        await this.kill();
        if (starts >= startsMax) throw error;
      }
    }
  }

  async #start(): Promise<void> {
    // Also what a reload refused for the sake of what is unknown: a start isn't refused for that.
    this.#setup = this.#filed;
    const config = configOf(this.#setup, this.#places);
    const bridge = new BridgeProcess(config, { env: { ...unset, STATE_DIRECTORY: this.#journal, POSLINE_ADMIN_PORT: "0" } });
    this.#bridge = bridge;
    await Promise.all(Object.keys(config.services).map((name) => bridge.port(name)));
    this.#adminPort = await bridge.port("admin");
    this.#isUp = true;
  }

  /** As the kernel does when memory runs out: whatever it was doing, nothing more is done. */
  async kill(): Promise<void> {
    this.#isUp = false;
    const bridge = this.#bridge;
    this.#bridge = undefined;
    await bridge?.stop("SIGKILL");
  }

  /**
   * Changes the configuration: each change is a file of its own with a SIGHUP behind it, without a pause.
   * @throws Error where a file is refused that can be used, or one is taken that can't, or isn't in force then.
   */
  async reload(changes: readonly Change[]): Promise<ReloadEnd> {
    const bridge = this.#bridge;
    if (bridge === undefined || !this.#isUp) return "cut";
    const from = bridge.log.length;
    const before = this.#setup;
    // People undo what they see refused.
    this.#filed = before;
    const filed = changes.map((change) => this.#file(bridge, change));
    const words = () => bridge.log.slice(from).filter(({ msg }) => String(msg).startsWith("the configuration was "));
    try {
      await bridge.until(() => words()[0], "the reload to be told of");
      for (let told = 0; changes.length > 1 && told < words().length; await sleep(secondWordMs)) told = words().length;
      if (this.#bridge !== bridge) return "cut";
      const [last, earlier] = words().toReversed();
      const [isTaken, wasTaken] = [last, earlier].map((word) => word?.["msg"] === takenWord);
      const wanted = filed.at(-1);
      if (isTaken ? wanted === undefined : wanted !== undefined && !forgetful.test(String(last?.["error"]))) {
        throw new Error(`${JSON.stringify(changes)}: ${JSON.stringify(words())}`);
      }
      this.#setup = (isTaken ? wanted : wasTaken ? filed[0] : before) ?? before;
      await this.#judgeStatus();
      return isTaken ? "taken" : "refused";
    } catch (error) {
      if (this.#bridge !== bridge) return "cut";
      throw error;
    }
  }

  /** @returns what the file says; undefined where it can't be used. */
  #file(bridge: BridgeProcess, change: Change): typeof usualSetup | undefined {
    if (change.what === "mistake") {
      bridge.reload(mistaken(configOf(this.#filed, this.#places), change.mistake));
      return undefined;
    }
    this.#filed = changed(this.#filed, change);
    bridge.reload(configOf(this.#filed, this.#places));
    return this.#filed;
  }

  /** Lines and services are as their file says. */
  async #judgeStatus(): Promise<void> {
    const { lines, services } = configOf(this.#setup, this.#places);
    const status = await this.#status();
    const of = (part: string, read: (each: JsonObject) => unknown) =>
      Object.fromEntries(Object.entries(status[part] ?? {}).map(([name, each]) => [name, isObject(each) ? read(each) : each]));
    const shown = {
      lines: of("lines", ({ device, queue }) => [device, queue].map((each) => isObject(each) && (each["path"] ?? each["max"]))),
      services: of("services", ({ line, port }) => [line, port]),
    };
    const wanted = {
      lines: Object.fromEntries(Object.entries(lines).map(([name, { path, queueCallsMax }]) => [name, [path, queueCallsMax]])),
      services: Object.fromEntries(Object.entries(services).map(([name, { line, port }]) => [name, [line, port]])),
    };
    if (!isDeepStrictEqual(shown, wanted)) {
      throw new Error(`the status after a reload is ${JSON.stringify(shown)}, and its file says ${JSON.stringify(wanted)}`);
    }
  }

  /**
   * Sends a till's call.
   * @param leaveMs After so many milliseconds the till is gone.
   * @returns undefined where no answer came.
   */
  async post(service: ServiceName, route: string, body: string, waitS: number | undefined, leaveMs: number | undefined) {
    const port = this.has(service) ? configOf(this.#setup, this.#places).services[service]?.port : undefined;
    if (port === undefined) return undefined;
    const headers = waitS === undefined ? {} : { Prefer: `wait=${waitS}` };
    const answered = ask(port, "POST", route, body, headers, leaveMs).catch(() => undefined);
    return answered satisfies Promise<HttpAnswer | undefined>;
  }

  /** Why it isn't ready; undefined when it is. */
  async notReady(): Promise<string | undefined> {
    const { status, text } = await ask(this.#adminPort, "GET", "/readyz", "");
    return status === 200 ? undefined : text;
  }

  /** What `/status` lists as unknown. */
  async unknown(): Promise<readonly JsonObject[]> {
    const { journal } = await this.#status();
    const unknown = isObject(journal) ? journal["unknown"] : undefined;
    if (!isObject(unknown) || !Array.isArray(unknown["newest"])) throw new Error(`Cannot read the status: ${String(journal)}`);
    return unknown["newest"].filter(isObject);
  }

  async #status(): Promise<JsonObject> {
    const { text } = await ask(this.#adminPort, "GET", "/status", "");
    const status: unknown = JSON.parse(text);
    if (!isObject(status)) throw new Error(`Cannot read the status: ${text}`);
    return status;
  }

  /** The journal's operations, in order. */
  async operations(): Promise<readonly JsonObject[]> {
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
