import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { adminDefaults } from "../config/limits.ts";
import { loadConfig } from "../config/load.ts";
import { serviceEnvironment } from "../config/service-environment.ts";
import {
  type ArgumentsOf,
  type CommandIo,
  defineCommand,
  type FlagTable,
  type PositionalTable,
  processIo,
} from "../core/command.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { localDay, localTime } from "../core/local-time.ts";
import { inQuotes, printable, printableJson, printableLines } from "../core/shell-text.ts";
import { tableLines } from "../core/table.ts";
import { JournalError } from "../journal/errors.ts";
import { JournalFollower, type JournalSnapshot, readJournal } from "../journal/reader.ts";
import { isKeyOf, type JournalOperation, joinOperations, storedKey } from "../journal/record.ts";
import { sourceFlags } from "./config.ts";
import { type AskAdmin, askAboutJournal, askAdmin, type JournalSettleTarget, settleByOperator } from "./journal-settle.ts";

/**
 * `posline journal`: what moved money, printed or changed state, and how it ended, as the journal has it: also while the service
 * writes it, and after a crash.
 */

export type JournalArguments = ArgumentsOf<typeof flags, typeof positionals>;

/** Where the command writes to, and what it reads. */
export interface JournalSurroundings extends CommandIo {
  /** Settles when it is time to look for new records; false ends the following. */
  readonly again: () => Promise<boolean>;
  readonly ask: AskAdmin;
}

/** Where the package's service keeps it. */
const usualFolder = "/var/lib/posline";

/** An operation as it is shown, with what a running posline tried to learn how it ended. */
type Shown = ReturnType<typeof shownOf> & { readonly tried?: string };

/**
 * Runs the command.
 * @returns the exit code: 0, 69 when the journal can't be read or nothing was settled, 75 when `--unknown` found any, 78 for the
 * configuration.
 * @throws UsageError for a `settle` that lacks something.
 */
export async function runJournal(args: JournalArguments, surroundings: JournalSurroundings): Promise<number> {
  const { out } = surroundings;
  const settle = settleOf(args);
  return journalRun(surroundings, async () => {
    const target = await targetOf(args, surroundings);
    if (settle !== undefined) {
      out(`${await settleByOperator(target, settle, surroundings.ask)}\n`);
      return exitCodes.ok;
    }
    const { folder } = target;
    const snapshot = await readJournal(folder);
    const { records, bad, isWritten } = snapshot;
    const all = joinOperations(records).map((operation) => shownOf(operation, isWritten));
    const wanted = all.filter((operation) => isWanted(operation, args));
    const operations = args.unknown === true && isWritten ? await withTried(wanted, target, surroundings.ask) : wanted;
    const above = operations.length === 0 ? [] : [titles];
    out(args.json === true ? jsonOf(operations) : rowsOf(operations, ...above) + summary(operations, args, bad));
    if (args.follow === true) await follow(args, folder, snapshot, surroundings);
    return args.unknown === true && operations.length > 0 ? exitCodes.unknown : exitCodes.ok;
  });
}

/** Runs what reads a journal. @returns its exit code; that of the error if there is no such journal, which is said. */
export async function journalRun({ err }: CommandIo, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof JournalError)) throw error;
    err(`${printableLines(error.message)}\n`);
    return error instanceof ConfigError ? error.exitCode : exitCodes.unavailable;
  }
}

/** What `settle` is given; undefined for the list. */
function settleOf({ action, operation: key, as, note, service, route }: JournalArguments) {
  if (action === undefined) {
    const only = Object.entries({ as, note, service, route }).find(([, value]) => value !== undefined);
    if (only !== undefined)
      throw new UsageError(`--${only[0]} is for posline journal settle: add settle and the operation's key`);
    return undefined;
  }
  if (key === undefined) throw new UsageError("posline journal settle: name the operation by its pay_id or documentExtID");
  if (as === undefined) throw new UsageError(`posline journal settle ${inQuotes(key)}: add --as done or --as not-done`);
  if (note === undefined || note === "")
    throw new UsageError(
      `posline journal settle ${inQuotes(key)}: add --note with how you know, such as "receipt 17 is there"`,
    );
  return { key, as, note, service, route };
}

/** The journal that the configuration names; the package's where there is no configuration, or none that may be read. */
export async function targetOf(
  args: Pick<JournalArguments, "config" | "folder">,
  { env, file }: CommandIo,
): Promise<JournalSettleTarget> {
  let config: Config | undefined;
  try {
    const own = args.config === undefined ? serviceEnvironment(env) : env;
    config = (await loadConfig({ file, env: own, flags: { config: args.config } })).config;
  } catch (error) {
    const isNeeded = args.config !== undefined && args.folder === undefined;
    if (!(error instanceof ConfigError) || isNeeded) throw error;
  }
  const { admin = adminDefaults, services, journal } = config ?? {};
  if (args.folder !== undefined) return { folder: resolve(args.folder), admin, services };
  if (journal === false)
    throw new JournalError("Cannot read the journal: the configuration keeps none (journal is false): name one by --folder");
  return { folder: journal?.folder ?? (env["STATE_DIRECTORY"]?.split(":")[0] || usualFolder), admin, services };
}

/** What was read of a box's journal, or why it can't be. This box has no name. */
export type OfBox<T> = Readonly<Partial<Record<"box" | "failure", string>>> & { readonly found?: T };

/**
 * Reads the journal in `folder`, or those of several boxes, copied to `directory` as `BOX/journal`: one that can't be read stops no other.
 * @throws JournalError if there is none.
 */
export async function ofBoxes<T>(directory: string | undefined, folder: string, read: (folder: string) => Promise<T>) {
  if (directory === undefined) return [{ found: await read(folder) }];
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  // What rsync has not finished begins with a dot.
  const names = entries.filter((each) => !each.isFile() && !each.name.startsWith(".")).map(({ name }) => name);
  if (names.length === 0) throw new JournalError(`Cannot read journals in ${directory}: it has no folder with a box's journal`);
  const all: OfBox<T>[] = [];
  for (const box of names.sort()) {
    try {
      all.push({ box, found: await read(join(directory, box)) });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      all.push({ box, failure: error.message });
    }
  }
  return all;
}

/** What the running posline tried about them, where it can be asked and keeps this journal. */
async function withTried(operations: readonly Shown[], target: JournalSettleTarget, ask: AskAdmin): Promise<readonly Shown[]> {
  if (operations.length === 0) return operations;
  const unknown = (await askAboutJournal(target, ask))?.["unknown"];
  if (!isObject(unknown)) return operations;
  const newest = unknown["newest"];
  const listed = (Array.isArray(newest) ? newest : []).filter(isObject);
  return operations.map((operation) => {
    const tried = listed.find(({ requestId, time }) => requestId === operation.requestId && time === operation.time);
    return tried === undefined ? operation : { ...operation, tried: triedText(tried) };
  });
}

function triedText({ asked, lastAsked, lastAnswer, cannotAsk }: JsonObject): string {
  const times = asked === 1 ? "once" : `${String(asked)} times`;
  const parts = [
    ...(typeof asked === "number" && asked > 0 ? [`asked ${times}, last at ${dateAndTime(String(lastAsked))}`] : []),
    ...(typeof lastAnswer === "string" ? [`last answer: ${lastAnswer}`] : []),
    ...(typeof cannotAsk === "string" ? [`posline does not ask: ${cannotAsk}`] : []),
  ];
  return parts.length === 0 ? "not asked yet" : parts.join("; ");
}

function shownOf({ sent, ending, lost, settled }: JournalOperation, isWritten: boolean) {
  const { service, route, key, amount, requestId, digest } = sent;
  const inDoubt = ending?.outcome ?? (isWritten && !lost ? "in flight" : "unknown");
  const outcome = settled !== undefined && inDoubt !== "answered" ? "settled" : inDoubt;
  const { learned: trans, status, code, left } = ending ?? {};
  return {
    ...{ time: new Date(sent.timeMs).toISOString(), service, route, key, trans, amount },
    ...{ outcome, status, code, requestId, digest },
    // posline ended before there was an outcome; the caller had gone before it, and may not know it.
    ...{ lost: outcome === "unknown" && !ending, left: left === true },
    ...{ result: settled?.result, by: settled?.by, note: settled?.note },
  };
}

function isWanted({ outcome, key }: Shown, args: JournalArguments): boolean {
  if (args.unknown === true && outcome !== "unknown") return false;
  return args.key === undefined || isKeyOf(key, args.key);
}

/** Each operation that begins and each that ends, from now on. */
async function follow(
  args: JournalArguments,
  folder: string,
  before: JournalSnapshot,
  { out, again }: JournalSurroundings,
): Promise<void> {
  const follower = new JournalFollower(folder, before);
  let records = [...before.records];
  while (await again()) {
    const news = await follower.next();
    if (news.length === 0) continue;
    const isOther = (news[0]?.sequence ?? 0) <= (records.at(-1)?.sequence ?? 0);
    records = isOther ? [...news] : [...records, ...news];
    const touched = new Set(news.map(({ sequence, record }) => ("sent" in record ? record.sent : sequence)));
    const operations = joinOperations(records)
      .filter(({ sequence }) => touched.has(sequence))
      .map((operation) => shownOf(operation, true))
      .filter((operation) => isWanted(operation, args));
    if (operations.length > 0) out(args.json === true ? jsonOf(operations) : rowsOf(operations));
    // What is older can't end any more; an endless following must not take endless memory.
    records = records.slice(-recordsKept);
  }
}

/** Records that a following remembers, to tell what an outcome belongs to. */
const recordsKept = 4_096;

const jsonOf = (operations: readonly Shown[]) =>
  operations.map((operation) => `${printableJson(JSON.stringify(operation))}\n`).join("");

const titles = ["TIME", "SERVICE", "ROUTE", "KEY", "TRANS", "AMOUNT", "OUTCOME", "CODE", "REQUEST"];
/** Characters that each column has at least, so that rows that follow stand below the others. */
const widthsMin = [19, 7, 10, 12, 5, 8, 9, 4, 0];
/** Amounts stand below each other by their last digit. */
const amountColumns = [titles.indexOf("AMOUNT")];

const rowsOf = (operations: readonly Shown[], ...above: (readonly string[])[]) =>
  tableLines([...above, ...operations.map(cellsOf)], { least: widthsMin, right: amountColumns })
    .map((line) => `${line}\n`)
    .join("");

function cellsOf({ time, service, route, key, trans, amount, ...shown }: Shown): readonly string[] {
  const { outcome, left, code, requestId, result } = shown;
  const ended = [outcome, ...(result === undefined ? [] : [result]), ...(left ? ["left"] : [])].join(", ");
  const named = [dateAndTime(time), service, route, key ?? "-", trans ?? "-"];
  return [...named, amount ?? "-", ended, code?.toString() ?? "-", requestId].map(printable);
}

export function dateAndTime(iso: string | number): string {
  const ms = new Date(iso).getTime();
  return `${localDay(ms)} ${localTime(ms, 0)}`;
}

function summary(operations: readonly Shown[], args: JournalArguments, bad: number): string {
  const count = (outcome: Shown["outcome"]) => operations.filter((operation) => operation.outcome === outcome).length;
  const parts = (["answered", "settled", "unknown", "not-sent", "in flight"] as const)
    .filter((outcome) => count(outcome) > 0)
    .map((outcome) => `${count(outcome)} ${outcome}`);
  const which = args.key === undefined ? "" : ` of ${printable(storedKey(args.key))}`;
  const number = `${operations.length} operation${operations.length === 1 ? "" : "s"}${which}`;
  const tried = operations.flatMap(({ key, requestId, tried: what }) =>
    what === undefined ? [] : [printable(`${key ?? requestId}: ${what}`)],
  );
  const lines = [...tried, parts.length === 0 ? number : `${number}: ${parts.join(", ")}`];
  if (count("unknown") > 0)
    lines.push("unknown: it may have been carried out; ask the terminal for it by its key, and compare its report");
  if (operations.some(({ left }) => left)) lines.push("left: the caller had gone before the outcome, and may not know it");
  if (bad > 0) lines.push(`${bad} torn or spoiled slots were left out`);
  return `${lines.join("\n")}\n`;
}

/** Milliseconds between two looks for new records. */
const followMs = 500;

const positionals = {
  action: { describe: "settle: record how an operation ended, after a look at the terminal", choices: ["settle"] },
  operation: { describe: "Its pay_id or documentExtID; the id of its request where it has neither" },
} as const satisfies PositionalTable;

/** Where the journal is. */
export const journalFlags = {
  folder: {
    type: "string",
    example: usualFolder,
    describe: `Folder of the journal (default: the configured one, else ${usualFolder})`,
  },
  config: sourceFlags.config,
} as const satisfies FlagTable;

/** Where journals of several boxes are. */
const boxesText = "Read the journals of several boxes, copied to this folder: a folder for each box, named for it";
export const boxesFlags = {
  ...journalFlags,
  directory: { type: "string", example: "journals", conflicts: "folder", describe: boxesText },
} as const satisfies FlagTable;

const flags = {
  unknown: { type: "boolean", describe: "Only operations with an unknown outcome; exits with 75 when there are any" },
  key: { type: "string", example: "SALE-1", describe: "Only the operation with this pay_id or documentExtID" },
  follow: { type: "boolean", alias: "f", describe: "Keep showing operations as they are sent and as they end" },
  json: { type: "boolean", describe: "Print NDJSON: one JSON object per operation and line" },
  ...journalFlags,
  as: { type: "string", choices: ["done", "not-done"], example: "done", describe: "settle: what the terminal shows" },
  note: { type: "string", example: "receipt 17 is there", describe: "settle: how you know; it is recorded" },
  service: { type: "string", example: "bank", describe: "settle: the service, where several operations have the key" },
  route: { type: "string", example: "/sale", describe: "settle: the route, where several operations have the key" },
} as const satisfies FlagTable;

export const journalCommand = defineCommand({
  name: "journal",
  describe: "List the operations that were sent (money, print, state) and their outcomes, or settle an unknown one",
  positionals,
  flags,
  examples: [["journal settle A-77 --as done --note 'receipt 17 is there'", "record that the sale A-77 was carried out"]],
  run: async (args: JournalArguments) => {
    let stopped = false;
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => (stopped = true));
    return runJournal(args, {
      ...processIo,
      again: async () => {
        await new Promise((resolve) => setTimeout(resolve, followMs));
        return !stopped;
      },
      ask: askAdmin,
    });
  },
});
