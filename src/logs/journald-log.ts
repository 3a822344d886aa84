import { type ChildProcess, spawn } from "node:child_process";
import { userInfo } from "node:os";
import { LineSplitter } from "./line-splitter.ts";
import { SourceError } from "./log-file.ts";
import { terminalSafe } from "./terminal-text.ts";
import type { LogSink } from "./view.ts";

/** The log that journald keeps, read through journalctl: only that may read journald's files. */

export interface JournaldLogOptions {
  readonly unit: string;
  readonly sinceMs: number | undefined;
  readonly follow: boolean;
  /** Only so many of the last lines of what is there; all when undefined. */
  readonly last: number | undefined;
  /** Whether no line is filtered out, so that journalctl may count them. */
  readonly unfiltered: boolean;
  readonly err: (text: string) => void;
}

/** journalctl's own words between the log's lines; which of them depends on its version. */
const banner = /^-- (?:No entries|Journal begins|Logs begin|Boot|Reboot)\b.*--$/;
const cursorLine = /^-- cursor: (s=[0-9a-f]{32};[\w;=]+)$/;

/** What it says on standard error to a user without permission for the system's journal. */
const refusal = /insufficient permissions|not seeing messages from other users/i;

export class JournaldLog {
  readonly #options: JournaldLogOptions;
  #cursor: string | undefined;
  #refused = false;

  constructor(options: JournaldLogOptions) {
    this.#options = options;
  }

  /** Whether a text is journalctl's and none of the log's. */
  skips(text: string): boolean {
    const cursor = cursorLine.exec(text)?.[1];
    this.#cursor = cursor ?? this.#cursor;
    return cursor !== undefined || banner.test(text);
  }

  /**
   * Shows what is there, and with `follow` what comes until `stop` aborts.
   * @throws SourceError
   */
  async read(sink: LogSink, stop: AbortSignal): Promise<void> {
    const { follow, last, unfiltered } = this.#options;
    // With a filter journalctl can't count the lines that are wanted: it gives all, then goes on where that ended.
    const counts = last !== undefined && unfiltered;
    if (!follow || (last !== undefined && !counts)) {
      const startedS = Math.floor(Date.now() / 1_000);
      await this.#run(
        [...this.#since(), ...(counts ? ["-n", String(last)] : []), ...(follow ? ["--show-cursor"] : [])],
        sink,
        stop,
      );
      sink.endLine();
      sink.caughtUp();
      if (!follow || stop.aborted) return;
      const from = this.#cursor === undefined ? `--since=@${startedS}` : `--after-cursor=${this.#cursor}`;
      return this.#run(["-f", "--no-tail", from], sink, stop);
    }
    sink.caughtUp();
    await this.#run(["-f", ...(counts ? ["-n", String(last)] : ["--no-tail"]), ...this.#since()], sink, stop);
  }

  #since(): string[] {
    const { sinceMs } = this.#options;
    return sinceMs === undefined ? [] : [`--since=@${Math.floor(sinceMs / 1_000)}`];
  }

  async #run(args: readonly string[], sink: LogSink, stop: AbortSignal): Promise<void> {
    if (stop.aborted) return;
    const journalctl = spawn("journalctl", ["-o", "cat", "-u", this.#options.unit, "--no-pager", ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, SYSTEMD_COLORS: "0" },
    });
    const end = () => journalctl.kill();
    stop.addEventListener("abort", end);
    const complaints = new LineSplitter();
    const complain = ({ bytes }: { readonly bytes: Buffer }) => {
      this.#complaint(bytes.toString());
      // Nothing of a service is in what such a user sees, so there is nothing to wait for.
      if (this.#refused) end();
    };
    journalctl.stdout.on("data", (chunk: Buffer) => sink.push(chunk));
    journalctl.stderr.on("data", (chunk: Buffer) => complaints.push(chunk, complain));
    const code = await exitOf(journalctl);
    stop.removeEventListener("abort", end);
    complaints.end(complain);
    // Ctrl-C reaches both, in any order.
    if (stop.aborted || code === "SIGINT") return;
    if (this.#refused) throw new SourceError(forbiddenText(this.#options.unit));
    if (code !== 0) throw new SourceError(`Cannot read the journal: journalctl ended with ${code}: what it said stands above`);
  }

  #complaint(text: string): void {
    if (refusal.test(text)) this.#refused = true;
    else if (text !== "" && !this.#refused) this.#options.err(`journalctl: ${terminalSafe(text)}\n`);
  }
}

/** How it ended: a code, or the signal's name. */
function exitOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve, reject) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "ENOENT" ? "there is no journalctl on this box" : error.message;
      reject(
        new SourceError(`Cannot read the journal: ${why}: name the file the log goes to: posline logs FILE, or use --live`),
      );
    });
    child.on("close", (code, signal) => resolve(code ?? signal ?? "nothing"));
  });
}

function forbiddenText(unit: string): string {
  const user = userName();
  return `Cannot read the journal of ${unit}: ${user} may not: sudo usermod -aG systemd-journal ${user}, and log in again; or sudo posline logs`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without a name, as in a container.
    return `user ${process.getuid?.() ?? ""}`;
  }
}
