import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { bundle, type LogLine } from "./bridge-process.ts";

/** The real bundle as a process of its own, with any command and flags. Only three descriptors are handed on to it. */
const closeAndRun = 'for n in $(ls /proc/$$/fd); do [ "$n" -gt 2 ] && eval "exec $n>&-"; done; exec "$@"';

export interface PoslineOptions {
  /** Beside any free port for each of its ports; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The file to run, where not the one in dist. */
  readonly file?: string;
}

export class PoslineProcess {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";
  readonly #closed: Promise<void>;
  #wake = () => {};

  constructor(args: readonly string[], { env = {}, file = bundle }: PoslineOptions = {}) {
    const anyPort = { POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0", POSLINE_ADMIN_PORT: "0" };
    this.child = spawn("bash", ["-c", closeAndRun, "bash", process.execPath, file, ...args], {
      env: { PATH: process.env["PATH"] ?? "", ...anyPort, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#closed = once(this.child, "close").then(() => this.#wake());
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.#wake();
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#wake();
    });
  }

  get log(): readonly LogLine[] {
    return this.stdout
      .split("\n")
      .slice(0, -1)
      .map((line): LogLine => JSON.parse(line));
  }

  /** Waits until something holds of what was written. */
  async until<T>(found: () => T | undefined, what: string): Promise<T> {
    const limit = setTimeout(() => this.child.kill("SIGKILL"), 15_000);
    try {
      for (;;) {
        const value = found();
        if (value !== undefined) return value;
        if (this.child.exitCode !== null || this.child.signalCode !== null) {
          throw new Error(`Waited for ${what}, and this was written:\n${this.stdout}\n${this.stderr}`);
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(limit);
    }
  }

  logged(fits: (line: LogLine) => boolean, what: string): Promise<LogLine> {
    return this.until(() => this.log.find(fits), what);
  }

  /** The port of a service, or of the control API. */
  async port(of: "fiscal" | "bank" | "qr" | "admin"): Promise<number> {
    const fits = (line: LogLine) =>
      of === "admin" ? line["msg"] === "admin listens" : line["msg"] === "listening" && line["service"] === of;
    return Number((await this.logged(fits, `${of} to listen`))["port"]);
  }

  /** Its exit code, once it has ended by itself or by this signal. */
  async ended(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal !== undefined) this.child.kill(signal);
    const limit = setTimeout(() => this.child.kill("SIGKILL"), 20_000);
    await this.#closed;
    clearTimeout(limit);
    return this.child.exitCode;
  }
}
