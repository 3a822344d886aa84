import { fstatSync } from "node:fs";
import { printableLines } from "../core/shell-text.ts";
import { wantsAll } from "../logs/filter.ts";
import { readSince, sinceExamples } from "../logs/since.ts";
import { View } from "../logs/view.ts";
import { exitCodeOf, exitCodes, UsageError } from "./exit.ts";
import { readLogFile, readStream } from "./log-file.ts";
import { Journal } from "./log-journal.ts";
import type { LogsArguments } from "./logs.ts";

/** What `posline logs` does: finds where the log is, and shows it. */

/** Lines that are shown of what is there when the log is followed, as `tail` has it. */
const followLines = 10;

/** Lines that may be asked for: they are held until the last of them is known. */
const linesMax = 100_000;

const defaultUnit = "posline";

/** @returns the exit code: 0 also after Ctrl-C, 64 usage, 69 when the log can't be read. */
export async function runLogs(args: LogsArguments): Promise<number> {
  const stop = new AbortController();
  const leave = () => {
    // A second one doesn't wait for what can't be told to stop, such as the opening of a pipe.
    if (stop.signal.aborted) process.exit(exitCodes.ok);
    stop.abort();
  };
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, leave);
  // Whoever read this has seen enough (posline logs | head).
  const broken = (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") process.stderr.write(`Cannot write the log: ${error.message}\n`);
    process.exitCode = error.code === "EPIPE" ? exitCodes.ok : exitCodes.unavailable;
    stop.abort();
  };
  process.stdout.on("error", broken);
  try {
    await show(args, stop.signal);
    return Number(process.exitCode ?? exitCodes.ok);
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === undefined) throw error;
    process.stderr.write(`${printableLines(error instanceof Error ? error.message : String(error))}\n`);
    return code;
  } finally {
    for (const signal of signals) process.off(signal, leave);
  }
}

async function show(args: LogsArguments, stop: AbortSignal): Promise<void> {
  const { follow = false, service, key, outcome, grep, unit } = args;
  const sinceMs = args.since === undefined ? undefined : sinceOf(args.since);
  const wanted = { sinceMs, service, key, outcome, grep };
  const last = linesOf(args.lines) ?? (follow && sinceMs === undefined ? followLines : undefined);
  const source = sourceOf(args);
  if (source !== "journal" && unit !== undefined) {
    throw new UsageError("Cannot show the log: --unit names a unit of the journal, and this is a file: leave one out");
  }
  const isAll = wantsAll(wanted) && args.json !== true;
  const journal = new Journal({
    unit: unit ?? defaultUnit,
    sinceMs,
    follow,
    last,
    wantsAll: isAll,
    err: (text) => process.stderr.write(text),
  });
  const terminal = process.stdout.isTTY === true;
  const view = new View({
    wanted,
    last,
    terminal,
    json: args.json === true,
    colour: args.color ?? (terminal && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb"),
    // journalctl has looked at the times of lines that carry none themselves.
    ...(source === "journal" ? { timeMs: sinceMs, skips: (text: string) => journal.skips(text) } : {}),
    out: (bytes) => {
      if (!stop.aborted) process.stdout.write(bytes);
    },
  });
  if (source === "journal") {
    await journal.read(view, stop);
    const what = isAll ? "has nothing" : "has nothing that fits";
    if (view.isEmpty && !stop.aborted) process.stderr.write(`The journal of ${unit ?? defaultUnit} ${what}\n`);
    return;
  }
  if (source === "input") return readStream(process.stdin, follow, view, stop);
  return readLogFile(source.file, follow, view, stop);
}

function sinceOf(text: string): number {
  const sinceMs = readSince(text, Date.now());
  if (sinceMs !== undefined) return sinceMs;
  throw new UsageError(`Cannot show the log: --since ${text} is no time: write ${sinceExamples}`);
}

function linesOf(lines: number | undefined): number | undefined {
  if (lines === undefined || (Number.isInteger(lines) && lines >= 0 && lines <= linesMax)) return lines;
  throw new UsageError(`Cannot show the log: --lines ${lines} is no number of lines: write one from 0 to ${linesMax}`);
}

/** A file that is named; what is piped in, or standard input by its name; the journal. */
function sourceOf({ file, unit }: LogsArguments): "journal" | "input" | { readonly file: string } {
  // yargs makes an empty text of a lone dash.
  if (file !== undefined) return file === "-" || file === "" ? "input" : { file };
  return unit === undefined && isPipedIn() ? "input" : "journal";
}

/** Only what a shell pipes or redirects: ssh and cron give sockets and /dev/null, from which nothing would ever come. */
function isPipedIn(): boolean {
  try {
    const input = fstatSync(0);
    return input.isFIFO() || input.isFile();
  } catch {
    return false;
  }
}
