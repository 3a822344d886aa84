import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { patienceMs } from "./until.ts";

/** The real bundle as a process of its own, with any command and flags. */

export const bundle = fileURLToPath(new URL("../../dist/posline.cjs", import.meta.url));

/**
 * Only three descriptors are handed on: those of ptys are inherited by children, and a process that holds its own pty's other
 * end would never see it hang up. The process id stays the same.
 */
export const closeAndRun = 'for n in $(cd /proc/$$/fd; echo *); do [ "$n" -gt 2 ] && eval "exec $n>&-"; done; exec "$@"';

/** Those that run: a test or campaign that ends by an error leaves none behind, which would hold ports and ptys. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export type LogLine = { readonly [field: string]: unknown };

export interface PoslineOptions {
  /** Beside any free port for each of its ports; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The file to run, where not the one in dist. */
  readonly file?: string;
  /** The folder that it runs in. */
  readonly folder?: string;
}

export class PoslineProcess {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";
  readonly #lines: LogLine[] = [];
  #readTo = 0;
  readonly #closed: Promise<void>;
  #hasClosed = false;
  #waiting: (() => void)[] = [];

  constructor(args: readonly string[], { env = {}, file = bundle, folder }: PoslineOptions = {}) {
    const anyPort = { POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0", POSLINE_ADMIN_PORT: "0" };
    this.child = spawn("bash", ["-c", closeAndRun, "bash", process.execPath, file, ...args], {
      env: { PATH: process.env["PATH"] ?? "", ...anyPort, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      cwd: folder,
    });
    running.add(this.child);
    this.#closed = once(this.child, "close").then(() => {
      running.delete(this.child);
      this.#hasClosed = true;
      this.#wake();
    });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.#wake();
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#wake();
    });
  }

  /** What it logged so far, of a command that logs to standard output. */
  get log(): readonly LogLine[] {
    for (let end = this.#lineEnd(); end !== -1; end = this.#lineEnd()) {
      this.#lines.push(JSON.parse(this.stdout.slice(this.#readTo, end)));
      this.#readTo = end + 1;
    }
    return this.#lines;
  }

  #lineEnd(): number {
    return this.stdout.indexOf("\n", this.#readTo);
  }

  /**
   * Waits until something holds of what was written.
   * @throws Error when it has ended by then, or was ended because it never came to hold.
   */
  async until<T>(found: () => T | undefined, what: string): Promise<T> {
    const limit = setTimeout(() => this.child.kill("SIGKILL"), patienceMs);
    try {
      for (;;) {
        const value = found();
        if (value !== undefined) return value;
        if (this.#hasClosed) throw new Error(`Waited for ${what}, and this was written:\n${this.stdout}\n${this.stderr}`);
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    } finally {
      clearTimeout(limit);
    }
  }

  /** The first line that fits, of those after the first `after`. */
  logged(fits: (line: LogLine) => boolean, what: string, after = 0): Promise<LogLine> {
    return this.until(() => this.log.find((line, index) => index >= after && fits(line)), what);
  }

  /** @param of A service by its name, or `admin`. */
  async port(of: string): Promise<number> {
    const fits = (line: LogLine) =>
      of === "admin" ? line["msg"] === "admin listens" : line["msg"] === "listening" && line["service"] === of;
    return Number((await this.logged(fits, `${of} to listen`))["port"]);
  }

  /** Its exit code, once it has ended by itself or by this signal, within so many milliseconds. */
  async ended(signal?: NodeJS.Signals, withinMs = 20_000): Promise<number | null> {
    if (signal !== undefined) this.child.kill(signal);
    const limit = setTimeout(() => this.child.kill("SIGKILL"), withinMs);
    await this.#closed;
    clearTimeout(limit);
    return this.child.exitCode;
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
