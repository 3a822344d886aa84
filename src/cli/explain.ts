import { contractOf } from "../contract/contracts.ts";
import {
  type ArgumentsOf,
  type CommandIo,
  defineCommand,
  type FlagTable,
  type PositionalTable,
  processIo,
} from "../core/command.ts";
import { messageOf } from "../core/error-code.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { localDay, localTime } from "../core/local-time.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { readJournal } from "../journal/reader.ts";
import { joinOperations, type StoredRecord, storedKey } from "../journal/record.ts";
import { type ExchangeLogEvent, readEvent } from "../logs/event.ts";
import { JournaldLog } from "../logs/journald-log.ts";
import { readLogFile } from "../logs/log-file.ts";
import { LogView } from "../logs/view.ts";
import { type Explanation, explain } from "../operations/explanation.ts";
import { journalFlags, journalRun, targetOf } from "./journal.ts";

/** `posline explain`: what happened to one operation, in whole sentences, from the journal and the log. */

export type ExplainArguments = ArgumentsOf<typeof flags, typeof positionals>;

/** Bytes of the log about one key: more than a till can ask in a day. */
const logBytesMax = 16 * 1024 * 1024;

/** @returns the exit code: 0 if it is proven how each ended, 75 if not or if there is none, 69 when the journal can't be read. */
export function runExplain(args: ExplainArguments, io: CommandIo): Promise<number> {
  const { key: asked } = args;
  if (asked === undefined) throw new UsageError("posline explain: name the operation by its pay_id or documentExtID");
  return journalRun(io, async () => {
    const key = storedKey(asked);
    const { folder, services } = await targetOf(args, io);
    const { records, bad, isWritten } = await readJournal(folder);
    const all = joinOperations(records);
    const operations = all.filter(({ sent }) => sent.key === key || sent.requestId === asked);
    const sinceMs = operations[0]?.sent.timeMs;
    const log = sinceMs === undefined ? { events: [], why: undefined } : await readLog(args, key, sinceMs);
    const contract = (service: string) => contractOf(service, services);
    const explained = explain({ records, operations, isWritten, exchanges: log.events, contractOf: contract });
    if (args.json === true) io.out(explained.map((each) => `${printableJson(JSON.stringify(each))}\n`).join(""));
    else {
      io.out(explained.length === 0 ? nothingText(asked, records, bad) : explained.map(textOf).join("\n"));
      if (log.why !== undefined)
        io.out(`What tills were told isn't shown, since the log can't be read: ${printable(log.why)}\n`);
      if (bad > 0 && explained.length > 0) io.out(`${bad} torn or spoiled records were left out.\n`);
    }
    const isClear = explained.length > 0 && explained.every(({ result }) => result !== "unknown" && result !== "in flight");
    return isClear ? exitCodes.ok : exitCodes.unknown;
  });
}

interface LogLines {
  readonly events: readonly ExchangeLogEvent[];
  /** Why it can't be read. */
  readonly why: string | undefined;
}

/** The log's lines about a key: of a file, or of the service's journal. */
async function readLog({ log, unit = "posline" }: ExplainArguments, key: string, sentMs: number): Promise<LogLines> {
  const found: Buffer[] = [];
  let bytes = 0;
  // A call waits in the queue before it is sent.
  const sinceMs = sentMs - 60_000;
  const view = new LogView({
    criteria: { key, sinceMs },
    ...{ last: undefined, json: true, colour: false, terminal: false, timeMs: sinceMs },
    out: (chunk) => {
      bytes += chunk.length;
      if (bytes <= logBytesMax) found.push(Buffer.from(chunk));
    },
  });
  const complaints: string[] = [];
  try {
    const stop = new AbortController().signal;
    const err = (text: string) => complaints.push(text.trim());
    if (log !== undefined) await readLogFile(log, false, view, stop);
    else await new JournaldLog({ unit, sinceMs, follow: false, last: undefined, unfiltered: false, err }).read(view, stop);
  } catch (error) {
    return { events: [], why: complaints.at(-1) ?? messageOf(error) };
  }
  const lines = Buffer.concat(found).toString("utf8").split("\n");
  const events = lines.map((line) => readEvent(line)).filter((event) => event.kind === "exchange");
  return { events, why: undefined };
}

function textOf({ service, route, key, amount, moments, result, proof, todo }: Explanation): string {
  const of = amount === undefined ? "" : ` of ${amount} minor units`;
  const lines = moments.map(({ timeMs, text }) => `  ${localDay(timeMs)} ${localTime(timeMs)}  ${text}`);
  const title = `${service} ${route}${of}, key ${key ?? "none"}`;
  const end = [`  It is ${result === "in flight" ? "in flight" : result}. ${proof}`, `  To do: ${todo}`];
  return `${[title, ...lines, ...end].map(printable).join("\n")}\n`;
}

/** What the lack of a record proves, and what it doesn't. */
function nothingText(key: string, records: readonly StoredRecord[], bad: number): string {
  const [oldest] = records;
  const since =
    oldest === undefined ? "with nothing" : `at ${localDay(oldest.record.timeMs)} ${localTime(oldest.record.timeMs, 0)}`;
  const damaged = bad > 0 || records.some(({ record }) => record.kind === "lacking");
  const but = damaged ? `, unless its record is among those that are missing (${bad} are torn or spoiled)` : "";
  return (
    `Nothing of ${printable(key)} is in the journal, which begins ${since}: since then this box has sent nothing under this key that ` +
    `moves money, prints or changes state${but}.\n` +
    "It doesn't prove that nothing was sent by another box or program, before that, at the terminal itself, or while the journal " +
    "could not be written.\n"
  );
}

const positionals = {
  key: { describe: "Its pay_id or documentExtID; the id of its request where it has neither" },
} as const satisfies PositionalTable;

const flags = {
  log: {
    type: "string",
    example: "posline.log",
    describe: "Take what tills were told from this log file (default: the system journal)",
  },
  unit: { type: "string", example: "posline", describe: "systemd unit whose journal is read (default posline)" },
  json: { type: "boolean", describe: "Print NDJSON: one JSON object per operation and line" },
  ...journalFlags,
} as const satisfies FlagTable;

export const explainCommand = defineCommand({
  name: "explain",
  describe:
    "Say what happened to a payment or receipt, by its key: when it was sent, what answered, what is proven, what to do",
  positionals,
  flags,
  examples: [["explain pay-4711", "what happened to the payment pay-4711"]],
  run: (args: ExplainArguments) => runExplain(args, processIo),
});
