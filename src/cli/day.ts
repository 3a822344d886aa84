import { type ArgumentsOf, type CommandIo, defineCommand, type FlagTable, processIo } from "../core/command.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { readJournal } from "../journal/reader.ts";
import { sinceExamples } from "../logs/since.ts";
import { type Day, type DayOpen, type DaySum, dayColumns, dayOf } from "../operations/day.ts";
import { dateAndTime, journalFlags, journalRun, layOut, targetOf } from "./journal.ts";
import { momentOf } from "./logs.ts";

/** `posline day`: what is asked every evening before the till and the terminal's report are compared, as far as the journal has it. */

export type DayArguments = ArgumentsOf<typeof flags>;

/**
 * Runs the command.
 * @returns the exit code: 0, 69 when the journal can't be read, 75 when something is open or missing, 78 for the configuration.
 * @throws UsageError for a time that is none, or comes before its beginning.
 */
export async function runDay(args: DayArguments, io: CommandIo): Promise<number> {
  const sinceMs = momentOf(args.since ?? "today", "Cannot show the day: --since");
  const untilMs = momentOf(args.until ?? "now", "Cannot show the day: --until");
  if (untilMs < sinceMs) throw new UsageError("Cannot show the day: --until is before --since: write a later time");
  return journalRun(io, async () => {
    const { folder, services } = await targetOf(args, io);
    const day = dayOf(await readJournal(folder), { sinceMs, untilMs, service: args.service, services });
    const heading = `${dateAndTime(sinceMs)} to ${dateAndTime(untilMs)}\n`;
    io.out(args.json === true ? jsonOf(day, sinceMs, untilMs) : heading + textOf(day));
    const isWhole = day.uncounted.length === 0 && day.lackingUntilMs === undefined;
    return isWhole && day.open.length === 0 ? exitCodes.ok : exitCodes.unknown;
  });
}

const titles = ["SERVICE", "CURRENCY", ...dayColumns.flatMap((column) => [column.toUpperCase(), "SUM"])];
const unrecorded = "not recorded";

function textOf(day: Day): string {
  const rows = day.rows.map((row) => [
    ...[printable(row.service), printable(row.currency ?? unrecorded)],
    ...dayColumns.flatMap((column) => sumWords(row[column])),
  ]);
  const least = titles.map(() => 0);
  const right = titles.map((_, column) => column).slice(2);
  const table = rows.length === 0 ? "nothing was sold, refunded or declined\n" : layOut([titles, ...rows], least, right);
  return `${table}${[...day.open.flatMap(openWords), ...notesOf(day)].join("\n")}\n`;
}

function sumWords({ count, sum, unrecorded: missing }: DaySum): readonly [string, string] {
  if (missing === 0) return [String(count), String(sum)];
  return [String(count), missing === count ? unrecorded : `${sum} (${missing} ${unrecorded})`];
}

function openWords({ is, sent, why, todo }: DayOpen): readonly string[] {
  const { timeMs, service, route, key = "-", amount = "", currency = "" } = sent;
  const money = amount === "" ? `amount ${unrecorded}` : `${amount} ${currency}`.trimEnd();
  return [`${dateAndTime(timeMs)}  ${service} ${route} ${key}  ${money}  ${is}: ${why}`, `  ${todo}`].map(printable);
}

/** What isn't in the table, and what nobody here can know. */
function notesOf({ open, inFlight, uncounted, paired, unpairable, heldSinceMs, lackingUntilMs }: Day): readonly string[] {
  const notes = [open.length === 0 ? "nothing is open" : `${open.length} open`];
  if (inFlight > 0) notes.push(`${inFlight} in flight, and in no sum`);
  if (uncounted.length > 0) notes.push(`not in the configuration, and in no sum: ${printable(uncounted.join(", "))}`);
  if (paired !== undefined)
    notes.push(
      `payments with their receipt: ${paired.byRrn} by number, ${paired.byAmount} by amount and time within 10 minutes`,
    );
  if (unpairable > 0) notes.push(`payments and receipts aren't compared: ${unpairable} of them have no amount recorded`);
  if (lackingUntilMs !== undefined)
    notes.push(`records until ${dateAndTime(lackingUntilMs)} are overwritten or missing: the sums may lack operations`);
  if (heldSinceMs !== undefined) notes.push(`the journal holds records from ${dateAndTime(heldSinceMs)} on`);
  return [...notes, "what was sold at the terminal itself isn't in the journal: compare the terminal's own report"];
}

function jsonOf({ rows, open, heldSinceMs, lackingUntilMs, ...day }: Day, sinceMs: number, untilMs: number): string {
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  const told = {
    ...{ since: time(sinceMs), until: time(untilMs), services: rows, ...day },
    ...{ heldSince: time(heldSinceMs), lackingUntil: time(lackingUntilMs) },
    open: open.map(({ is, sent: { timeMs, service, route, key, amount, currency, requestId }, why, todo }) => ({
      ...{ is, time: time(timeMs), service, route, key, amount, currency, requestId, why, todo },
    })),
  };
  return `${printableJson(JSON.stringify(told, (_, value) => (typeof value === "bigint" ? String(value) : value)))}\n`;
}

const flags = {
  since: { type: "string", example: "yesterday", describe: `From this time on (default today): ${sinceExamples}` },
  until: { type: "string", example: "18:00", describe: "Before this time (default now)" },
  service: { type: "string", example: "bank", describe: "Only this service" },
  json: { type: "boolean", describe: "Print one JSON object in place of a table" },
  ...journalFlags,
} as const satisfies FlagTable;

export const dayCommand = defineCommand({
  name: "day",
  describe: "Say what was sold, refunded and declined in a day by the journal, and what is open",
  flags,
  epilogue: "Exit codes: 0 nothing is open, 69 the journal can't be read, 75 something is open or records are missing.",
  examples: [["day --since yesterday --until today", "The day before"]],
  run: (args: DayArguments) => runDay(args, processIo),
});
