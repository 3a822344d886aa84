import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServiceName } from "../../src/core/call.ts";
import type { LineState } from "../../src/line/states.ts";

/** The real bundle as a process of its own, asked over HTTP, as a till would. */

export const bundle = fileURLToPath(new URL("../../dist/posline.cjs", import.meta.url));

/**
 * The descriptors of ptys are inherited by children: a bridge that holds its own pty's other end would never see it hang up.
 * The process id stays the same.
 */
const closeAndRun = 'for n in $(ls /proc/$$/fd); do [ "$n" -gt 2 ] && eval "exec $n>&-"; done; exec "$@"';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Milliseconds from the request to the whole answer. */
  readonly ms: number;
}

/** A folder that is gone after the test. */
export function scratchFolder(prefix = "posline-"): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), prefix));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export interface LogLine {
  readonly [field: string]: unknown;
}

export interface BridgeOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Without a file and without a device. */
  readonly emulated?: boolean;
  /** The state in which `startedBridge` waits for its lines to be, in place of idle. */
  readonly lineState?: LineState;
}

export class BridgeProcess {
  readonly child: ChildProcess;
  readonly ports = new Map<ServiceName, number>();
  readonly log: LogLine[] = [];
  #text = "";
  stderr = "";
  readonly #folder = scratchFolder();
  #watchers: (() => void)[] = [];

  constructor(config: object, options: BridgeOptions = {}) {
    const file = join(this.#folder.path, "posline.json");
    writeFileSync(file, JSON.stringify(config));
    const anyPort = { POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0" };
    const wanted = Object.entries(anyPort).filter(([name]) => options.emulated || serviceOf(name) in servicesOf(config));
    const command = [process.execPath, bundle, "serve", ...(options.emulated ? ["--emulated"] : ["--config", file])];
    this.child = spawn("bash", ["-c", closeAndRun, "bash", ...command], {
      env: { PATH: process.env["PATH"] ?? "", ...Object.fromEntries(wanted), ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => this.#logged(text));
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
  }

  /** Everything logged so far, as text. */
  get logText(): string {
    return this.#text;
  }

  /** Waits until a log line fits. */
  async logged(fits: (line: LogLine) => boolean, what: string, timeoutMs = 10_000): Promise<LogLine> {
    const due = performance.now() + timeoutMs;
    for (let from = 0; ; ) {
      for (; from < this.log.length; from++) {
        const line = this.log[from];
        if (line !== undefined && fits(line)) return line;
      }
      const left = due - performance.now();
      if (left <= 0 || this.child.exitCode !== null) {
        throw new Error(`Waited for ${what}, and this was logged:\n${this.#text}\n${this.stderr}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(left, 250));
        this.#watchers.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Waits until a line is in a state, after what was logged up to now. */
  state(line: string, state: string, after = 0, timeoutMs = 10_000): Promise<LogLine> {
    return this.logged(
      (entry) => entry["line"] === line && entry["state"] === state && this.log.indexOf(entry) >= after,
      `line ${line} to be ${state}`,
      timeoutMs,
    );
  }

  async post(
    service: ServiceName,
    path: string,
    body: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<HttpAnswer> {
    return ask(this.port(service), "POST", path, body, headers);
  }

  async get(service: ServiceName, path: string, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    return ask(this.port(service), "GET", path, "", headers);
  }

  port(service: ServiceName): number {
    const port = this.ports.get(service);
    if (port === undefined) throw new Error(`${service} doesn't listen yet:\n${this.#text}\n${this.stderr}`);
    return port;
  }

  /** Stops it as systemd does, and gives its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exited = once(this.child, "exit");
      this.child.kill(signal);
      const timer = setTimeout(() => this.child.kill("SIGKILL"), 20_000);
      await exited;
      clearTimeout(timer);
    }
    this.#folder.remove();
    return this.child.exitCode;
  }

  #logged(text: string): void {
    this.#text += text;
    const whole = this.#text.split("\n").slice(0, -1);
    for (const line of whole.slice(this.log.length)) {
      const entry: LogLine = JSON.parse(line);
      this.log.push(entry);
      if (entry["msg"] === "listening") this.ports.set(entry["service"] as ServiceName, Number(entry["port"]));
    }
    for (const wake of this.#watchers.splice(0)) wake();
  }
}

function serviceOf(variable: string): string {
  return variable.replace(/^POSLINE_|_PORT$/g, "").toLowerCase();
}

function servicesOf(config: object): object {
  return "services" in config && typeof config.services === "object" && config.services !== null ? config.services : {};
}

/** One HTTP request, on a connection of its own. */
export function ask(
  port: number,
  method: string,
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
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
    asking.end(body);
  });
}

/** Starts a bridge and waits until its services listen and its lines are clean; one that doesn't get there is ended. */
export async function startedBridge(
  config: { readonly lines: Readonly<Record<string, unknown>>; readonly services: Readonly<Record<string, unknown>> },
  options: BridgeOptions = {},
): Promise<BridgeProcess> {
  const bridge = new BridgeProcess(config, options);
  try {
    for (const service of Object.keys(config.services)) {
      await bridge.logged((line) => line["msg"] === "listening" && line["service"] === service, `${service} to listen`);
    }
    for (const line of Object.keys(config.lines)) await bridge.state(line, options.lineState ?? "idle");
    return bridge;
  } catch (error) {
    await bridge.stop("SIGKILL");
    throw error;
  }
}
