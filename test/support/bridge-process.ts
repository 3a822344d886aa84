import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { contractNames, type ServiceName } from "../../src/core/call.ts";
import type { LineState } from "../../src/line/states.ts";
import { type LogLine, PoslineProcess } from "./posline-process.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Milliseconds from the request to the whole answer. */
  readonly ms: number;
}

/** Those that are there: node ends a test file once nothing is waited for, and an `after` that has not come to its end removes none. */
const scratch = new Set<string>();
process.on("exit", () => {
  for (const path of scratch) rmSync(path, { recursive: true, force: true });
});

/** A folder that is gone after the test, or with this process. */
export function scratchFolder(prefix = "posline-"): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), prefix));
  scratch.add(path);
  const remove = () => {
    scratch.delete(path);
    rmSync(path, { recursive: true, force: true });
  };
  return { path, remove };
}

export interface BridgeOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Beside --config. */
  readonly flags?: readonly string[];
  /** The state in which `startedBridge` waits for its lines to be, in place of idle. */
  readonly lineState?: LineState;
}

/** `posline serve` with this configuration, asked over HTTP as a till would. */
export class BridgeProcess extends PoslineProcess {
  readonly #folder: ReturnType<typeof scratchFolder>;

  constructor(config: object, { env, flags = [] }: BridgeOptions = {}) {
    const folder = scratchFolder();
    const file = join(folder.path, "posline.json");
    writeFileSync(file, JSON.stringify(config));
    // The port of a service that isn't configured can't be set.
    const unset = contractNames
      .filter((name) => !(name in servicesOf(config)))
      .map((name) => `POSLINE_${name.toUpperCase()}_PORT`);
    const noPorts = Object.fromEntries([...unset, "POSLINE_ADMIN_PORT"].map((name) => [name, undefined]));
    super(["serve", "--config", file, ...flags], { env: { ...noPorts, ...env } });
    this.#folder = folder;
  }

  /** Puts another file in the place of its configuration, as an editor does, and sends SIGHUP. It says in its log what becomes of it. */
  reload(config: object | string): void {
    const fresh = join(this.#folder.path, "posline.json.new");
    writeFileSync(fresh, typeof config === "string" ? config : JSON.stringify(config));
    renameSync(fresh, join(this.#folder.path, "posline.json"));
    this.child.kill("SIGHUP");
  }

  /** Waits until a line is in a state, after what was logged up to now. */
  state(line: string, state: string, after = 0): Promise<LogLine> {
    return this.logged((entry) => entry["line"] === line && entry["state"] === state, `line ${line} to be ${state}`, after);
  }

  async post(
    service: ServiceName,
    path: string,
    body: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<HttpAnswer> {
    return ask(await this.port(service), "POST", path, body, headers);
  }

  async get(service: ServiceName, path: string, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    return ask(await this.port(service), "GET", path, "", headers);
  }

  /** Stops it as systemd does, and gives its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    const code = await this.ended(signal);
    this.#folder.remove();
    return code;
  }
}

function servicesOf(config: object): object {
  return "services" in config && typeof config.services === "object" && config.services !== null ? config.services : {};
}

/**
 * One HTTP request, on a connection of its own.
 * @param leaveMs After so many milliseconds its sender is gone, and it rejects.
 */
export function ask(
  port: number,
  method: string,
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  leaveMs?: number,
): Promise<HttpAnswer> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const asking = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => {
        const flat = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
        const text = Buffer.concat(pieces).toString();
        resolve({ status: response.statusCode ?? 0, headers: flat, text, ms: performance.now() - began });
      });
      response.on("error", reject);
    });
    asking.on("error", reject);
    if (leaveMs !== undefined) {
      const leaving = setTimeout(() => asking.destroy(new Error(`it left after ${leaveMs} ms`)), leaveMs);
      asking.on("close", () => clearTimeout(leaving));
    }
    asking.end(body);
  });
}

/** Starts a bridge and waits until its services listen and its lines are clean; one that doesn't get there is ended. */
export async function startedBridge(
  config: {
    readonly lines: Readonly<Record<string, unknown>>;
    readonly services: Readonly<Record<string, unknown>>;
    readonly journal?: unknown;
  },
  options: BridgeOptions = {},
): Promise<BridgeProcess> {
  const bridge = new BridgeProcess(config, options);
  try {
    for (const service of Object.keys(config.services)) await bridge.port(service);
    for (const line of Object.keys(config.lines)) await bridge.state(line, options.lineState ?? "idle");
    return bridge;
  } catch (error) {
    await bridge.stop("SIGKILL");
    throw error;
  }
}
