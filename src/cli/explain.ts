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
import { moneyText } from "../core/money.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { readJournal } from "../journal/reader.ts";
import { showLog } from "../logs/show-log.ts";
import { type Explanation, explainKey, type ToldLines } from "../operations/explanation.ts";
import { boxesFlags, journalRun, ofBoxes, targetOf } from "./journal.ts";

/** `posline explain`: what happened to one operation, in whole sentences, from the journal and the log. */

export type ExplainArguments = ArgumentsOf<typeof flags, typeof positionals>;

/** Bytes of the log about one key: more than a till can ask in a day. */
const logBytesMax = 16 * 1024 * 1024;

/** @returns the exit code: 0 if it is proven how each ended, 75 if not or if there is none, 69 when the journal can't be read. */
export function runExplain(args: ExplainArguments, io: CommandIo): Promise<number> {
  const { key: asked } = args;
  if (asked === undefined) throw new UsageError("posline explain: name the operation by its pay_id or documentExtID");
  return journalRun(io, async () => {
    const { folder, services } = await targetOf(args, io);
    const contract = (service: string) => contractOf(service, services);
    const isThere = args.directory === undefined || args.log !== undefined;
    const told = async (key: string, sinceMs: number) => (isThere ? readLog(args, key, sinceMs) : otherLog);
    const read = async (from: string) => explainKey(asked, await readJournal(from), contract, told);
    const boxes = await ofBoxes(args.directory, folder, read);
    const lines = boxes.flatMap(({ box, found, failure = "" }) => {
      const { operations, notes } = found ?? { operations: [], notes: [failure] };
      const shown = operations.length > 0 ? operations : [{ key: asked, result: "nothing", notes }];
      if (args.json === true) return shown.map((each) => `${printableJson(JSON.stringify({ box, ...each }))}\n`);
      const named = box === undefined ? "" : `${printable(box)}: `;
      // Another box may have sold it: what to do is said only where the key is.
      const said = box !== undefined && operations.length === 0 ? notes.slice(0, 1) : notes;
      return [...operations.map(textOf), ...said.map((each) => `${printable(each)}\n`)].map((each) => `${named}${each}`);
    });
    io.out(lines.join(""));
    const ends = boxes.flatMap(({ found }) => found?.operations.map(({ result }) => result) ?? ["unknown"]);
    const isClear = ends.length > 0 && ends.every((result) => result !== "unknown" && result !== "in flight");
    return isClear ? exitCodes.ok : exitCodes.unknown;
  });
}

const otherLog: ToldLines = { lines: [], lack: "What tills were told is in that box's own log." };

/** The log's lines about a key: of a file, or of the service's journal. */
async function readLog({ log, unit = "posline" }: ExplainArguments, key: string, sentMs: number): Promise<ToldLines> {
  const found: Buffer[] = [];
  let bytes = 0;
  // A call waits in the queue before it is sent.
  const sinceMs = sentMs - 60_000;
  const out = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= logBytesMax) found.push(chunk);
  };
  const complaints: string[] = [];
  const err = (text: string) => complaints.push(text.trim());
  try {
    const place = log === undefined ? { unit } : { file: log };
    await showLog(place, { criteria: { key, sinceMs }, json: true, out, err }, new AbortController().signal);
  } catch (error) {
    const why = complaints.at(-1) ?? messageOf(error);
    return { lines: [], lack: `What tills were told isn't shown, since the log can't be read: ${why}` };
  }
  return { lines: Buffer.concat(found).toString("utf8").split("\n"), lack: undefined };
}

function textOf({ service, route, key, amount, currency, moments, result, proof, todo }: Explanation): string {
  const of = amount === undefined ? "" : ` of ${moneyText(amount, currency)}`;
  const lines = moments.map(({ timeMs, text }) => `  ${localDay(timeMs)} ${localTime(timeMs, 0)}  ${text}`);
  const title = `${service} ${route}${of}, key ${key ?? "none"}`;
  const end = [`  Result: ${result}. ${proof}`, `  To do: ${todo}`];
  return `${[title, ...lines, ...end].map(printable).join("\n")}\n`;
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
  ...boxesFlags,
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
