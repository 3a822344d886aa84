import { fstatSync } from "node:fs";
import { adminTarget } from "../config/admin-target.ts";
import { type ArgumentsOf, defineCommand, type FlagTable, type PositionalTable } from "../core/command.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { hasColours, inQuotes } from "../core/shell-text.ts";
import { matchesAll } from "../logs/filter.ts";
import { type LogPlace, showLog } from "../logs/show-log.ts";
import { readSince, sinceExamples } from "../logs/since.ts";

/** `posline logs`: the log as a technician reads it, from journald, a file, standard input or a running posline. */

export type LogsArguments = ArgumentsOf<typeof flags, typeof positionals>;

/** Lines that are shown of what is there when the log is followed, as `tail` has it. */
const followLines = 10;

/** Lines that may be asked for: they are held until the last of them is known. */
const linesMax = 100_000;

const defaultUnit = "posline";

/** @returns the exit code: 0 also after Ctrl-C, 64 usage, 69 when the log can't be read. */
async function runLogs(args: LogsArguments): Promise<number> {
  const stop = new AbortController();
  const leave = () => {
    // A second one doesn't wait for what can't be cancelled, such as the opening of a pipe.
    if (stop.signal.aborted) process.exit(exitCodes.ok);
    stop.abort();
  };
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, leave);
  // The reader of standard output has seen enough (posline logs | head).
  process.stdout.on("error", () => stop.abort());
  try {
    await show(args, stop.signal);
    return exitCodes.ok;
  } finally {
    for (const signal of signals) process.off(signal, leave);
  }
}

async function show(args: LogsArguments, stop: AbortSignal): Promise<void> {
  const { service, key, outcome, grep } = args;
  const follow = args.follow === true || args.live === true;
  const sinceMs = args.since === undefined ? undefined : momentOf(args.since, "Cannot show the log: --since");
  const criteria = { sinceMs, service, key, outcome, grep };
  const last = linesOf(args.lines) ?? (follow && sinceMs === undefined ? followLines : undefined);
  const place = await placeOfLog(args);
  const terminal = process.stdout.isTTY === true;
  const json = args.json === true;
  const shown = {
    ...{ criteria, follow, last, terminal, json },
    colour: args.color ?? hasColours(process.env, terminal),
    err: (text: string) => void process.stderr.write(text),
    out: (bytes: Buffer) => {
      if (!stop.aborted) process.stdout.write(bytes);
    },
  };
  const hasAny = await showLog(place, shown, stop);
  if (!("unit" in place) || hasAny || stop.aborted) return;
  const what = matchesAll(criteria) && !json ? "has nothing" : "has nothing that fits";
  process.stderr.write(`The journal of ${place.unit} ${what}\n`);
}

/** The moment that a flag means. @param cannot What can't be done without it, and the flag. */
export function momentOf(text: string, cannot: string): number {
  const ms = readSince(text, Date.now());
  if (ms !== undefined) return ms;
  throw new UsageError(`${cannot} ${inQuotes(text)} is not a time: write ${sinceExamples}`);
}

function linesOf(lines: number | undefined): number | undefined {
  if (lines === undefined || (Number.isInteger(lines) && lines >= 0 && lines <= linesMax)) return lines;
  throw new UsageError(`Cannot show the log: --lines ${lines} must be a whole number from 0 to ${linesMax}`);
}

/** A running posline; a file that is named; what is piped in, or standard input by its name; the journal. */
async function placeOfLog(args: LogsArguments): Promise<LogPlace> {
  const { file, unit } = args;
  const cannot = "Cannot show the log:";
  if (args.live === true) {
    const other = file !== undefined ? "a file was named" : unit !== undefined ? "--unit reads the system journal" : undefined;
    if (other === undefined) return { live: await adminTarget(args, "show the log") };
    throw new UsageError(`${cannot} --live follows a running posline, and ${other}: leave one of them out`);
  }
  const stray = Object.entries({ url: args.url, "token-file": args.tokenFile, config: args.config }).find(
    ([, value]) => value !== undefined,
  );
  if (stray !== undefined) throw new UsageError(`${cannot} --${stray[0]} says where a running posline is: add --live`);
  if (file !== undefined && unit !== undefined)
    throw new UsageError(`${cannot} --unit reads the system journal, and a file was named: leave one of them out`);
  if (file === "-" || (file === undefined && unit === undefined && isPipedIn())) return { input: process.stdin };
  return file === undefined ? { unit: unit ?? defaultUnit } : { file };
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

const positionals = {
  file: { describe: "A log file, or - for standard input (default: the system journal)" },
} as const satisfies PositionalTable;

const flags = {
  follow: { alias: "f", type: "boolean", describe: "Keep showing new lines" },
  since: { type: "string", example: "10m", describe: `Only lines newer than this: ${sinceExamples}` },
  service: { type: "string", example: "bank", describe: "Only lines of this service" },
  key: { type: "string", example: "SALE-1", describe: "Only the operation with this pay_id or documentExtID" },
  outcome: {
    type: "string",
    example: "unknown",
    choices: ["unknown", "not-sent", "answered"],
    describe: "Only calls with this outcome",
  },
  grep: { type: "string", example: "timeout", describe: "Only lines that contain this text, in any case" },
  lines: { alias: "n", type: "whole", example: "50", describe: "Only the last N lines (default: all, with --follow 10)" },
  json: { type: "boolean", describe: "Print the lines of posline as they were written, as NDJSON" },
  color: {
    type: "boolean",
    describe: "Use colours; --no-color turns them off (default: on a terminal, unless NO_COLOR is set)",
  },
  live: { type: "boolean", describe: "Follow a running posline over its admin port, where there is no journal" },
  url: {
    type: "string",
    example: "http://localhost:8880",
    describe: "With --live: the admin port (default: the configuration's)",
  },
  "token-file": {
    type: "string",
    example: "/etc/posline/admin-token",
    describe: "With --live: the file that holds its token",
  },
  config: { type: "string", example: "posline.json", describe: "With --live: the configuration file that names the port" },
  unit: { type: "string", example: "posline", describe: "systemd unit whose journal is read (default posline)" },
} as const satisfies FlagTable;

export const logsCommand = defineCommand({
  name: "logs",
  describe: "Print the log in readable form: from the system journal, a file or standard input",
  positionals,
  flags,
  run: runLogs,
});
