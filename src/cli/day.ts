import { closeSync, existsSync, openSync, rmSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { CallError, NotSentError } from "../client/errors.ts";
import { createClient } from "../client/http-client.ts";
import type { ServiceConfig } from "../config/config.ts";
import { reachableAddress } from "../core/address.ts";
import { type ArgumentsOf, type CommandIo, defineCommand, type FlagTable, processIo } from "../core/command.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { asFile, replaceFile } from "../core/replace-file.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { tableLines } from "../core/table.ts";
import { urlHost } from "../core/url-host.ts";
import { version } from "../core/version.ts";
import { readJournal } from "../journal/reader.ts";
import { sinceExamples } from "../logs/since.ts";
import { type Day, type DayOpen, type DayRow, type DaySum, dayColumns, dayOf, rowsTogether } from "../operations/day.ts";
import { type DayPart, dayPage } from "./day-page.ts";
import { boxesFlags, dateAndTime, journalRun, type OfBox, ofBoxes, targetOf } from "./journal.ts";
import { momentOf } from "./logs.ts";

/** `posline day`: what is asked every evening before the till and the terminal's report are compared, as far as the journal has it. */

export type DayArguments = ArgumentsOf<typeof flags>;

/**
 * Runs the command.
 * @returns the exit code: 0, 69 when the journal can't be read, 75 when something is open, missing or differs, 78 for the configuration.
 * @throws UsageError for a time that is none, or comes before its beginning, and for a report that can't be written.
 */
export async function runDay(args: DayArguments, io: CommandIo): Promise<number> {
  const { ask, directory, report, service } = args;
  const sinceMs = momentOf(args.since ?? "today", "Cannot show the day: --since");
  const untilMs = momentOf(args.until ?? "now", "Cannot show the day: --until");
  if (untilMs < sinceMs) throw new UsageError("Cannot show the day: --until is before --since: write a later time");
  if (ask === true && (directory ?? args.folder ?? args.until) !== undefined)
    throw new UsageError(
      "Cannot ask: this box's terminal tells of its shift until now: leave --directory, --folder, --until out",
    );
  const isNew = report !== undefined && !existsSync(report);
  if (report !== undefined) asFile("--report", report, () => closeSync(openSync(report, "a")));
  const told = journalRun(io, async () => {
    const { folder, services } = await targetOf(args, io);
    const isShift = (name: string) => services?.[name]?.contract === "fiscal" && name === (service ?? name);
    const shifts = ask === true ? Object.entries(services ?? {}).filter(([name]) => isShift(name)) : [];
    if (ask === true && shifts.length === 0)
      throw new UsageError("Cannot ask: fiscal is in no configuration that can be read: use sudo, or name one with --config");
    const read = async (from: string) => dayOf(await readJournal(from), { sinceMs, untilMs, service, services });
    const boxes = await ofBoxes(directory, folder, read);
    const rows = rowsTogether(boxes.flatMap(({ found }) => found?.rows ?? []));
    const asked: Asked[] = [];
    for (const [name, config] of shifts) asked.push(await askShift(name, config, rows));
    const period = `${dateAndTime(sinceMs)} to ${dateAndTime(untilMs)}`;
    const parts = boxes.map((each) => partOf(each, period, asked));
    if (directory !== undefined) parts.push({ heading: `all boxes, ${period}`, rows: tableOf(rows), open: [], notes: [] });
    const json = directory === undefined ? boxes.map(jsonOfBox)[0] : { services: rows, boxes: boxes.map(jsonOfBox) };
    if (args.json !== true) io.out(`${parts.map(textOf).join("\n")}${elsewhere}\n`);
    else io.out(jsonOf({ since: isoOf(sinceMs), until: isoOf(untilMs), asked: ask && asked, ...json }));
    const made = `${dateAndTime(Date.now())}, by posline ${version}`;
    const facts = { "Read on": hostname(), Journal: directory ?? folder, Made: made, Note: elsewhere };
    if (report !== undefined) asFile("--report", report, () => replaceFile(report, dayPage(facts, parts), statSync(report)));
    const isClear = ({ found }: OfBox<Day>) => found?.open.length === 0 && !found.uncounted.length && !found.lackingUntilMs;
    return boxes.every(isClear) && asked.every(({ agrees }) => agrees) ? exitCodes.ok : exitCodes.unknown;
  });
  return told.finally(() => {
    // Only trying whether it can be written has made it.
    if (isNew && statSync(report).size === 0) rmSync(report);
  });
}

const compared = { sold: ["saleCount", "saleSum"], refunded: ["moneyBackCount", "moneyBackSum"] } as const;

type Asked = Awaited<ReturnType<typeof askShift>>;

/** Asks a fiscal terminal through the posline that runs for what neither changes nor prints anything. */
async function askShift(service: string, { host, port, merchantId = "" }: ServiceConfig, rows: readonly DayRow[]) {
  const unknown = (why: string) => ({ service, said: [`${service}: the terminal's sums aren't known: ${why}`], agrees: false });
  if (merchantId === "") return unknown("no merchantId can be read, which signs the question: use sudo");
  const client = createClient({ fiscal: { url: `http://${urlHost(reachableAddress(host))}:${port}`, merchantId } });
  try {
    // A report whose answer is lost would stand in the journal as unknown: so what isn't recorded goes first.
    await client.fiscal.checkShift();
    const report = await client.fiscal.xReport({ skipReceipt: true, skipReceiptPrint: true });
    const [own] = rowsTogether(rows.filter((row) => row.service === service).map((row) => ({ ...row, currency: undefined })));
    const of = (column: keyof typeof compared) => {
      const [count = "untold", sum = "untold"] = compared[column].map((field) => report[field]);
      const ours = own?.[column] ?? { count: 0, sum: 0n, unrecorded: 0 };
      const more = [difference(count, ours.count), difference(sum, ours.sum)];
      const agrees = more.every((each) => each === 0n) && ours.unrecorded === 0;
      const both = `${sumWords(ours).join(", sum ")} in the journal; ${count}, sum ${sum} at the terminal`;
      return { agrees, said: `${service} ${column}: ${both}: ${agrees ? "agree" : `differ by ${more.join(", sum ")}`}` };
    };
    const [sold, refunded] = [of("sold"), of("refunded")];
    const since = `${service}: its shift is open since ${report.shiftOpenAt ?? "a time that it doesn't tell"}: what lies between that and the day's beginning is in one sum alone`;
    return { service, said: [sold.said, refunded.said, since, cards], agrees: sold.agrees && refunded.agrees, report };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return unknown(
      `${error.message}: ${error instanceof NotSentError && error.unreachable ? "is posline running?" : error.advice}`,
    );
  } finally {
    await client.close();
  }
}

/** To the digit; "unknown" if the terminal's own is no whole number. */
const difference = (theirs: unknown, ours: bigint | number) =>
  /^-?\d+$/.test(String(theirs)) ? BigInt(String(theirs)) - BigInt(ours) : "unknown";

/** Of which the contract leaves open what it says, and terminals print it. */
const cards = `no card terminal is asked, since /xreport may print: curl -d '{"pay_id":"X-1"}' .../xreport has its totals (docs/day.md)`;

const titles = ["SERVICE", "CURRENCY", ...dayColumns.flatMap((column) => [column.replace("D", " d").toUpperCase(), "SUM"])];
const unrecorded = "not recorded";

const elsewhere =
  "sums are in minor units, such as cents; what was sold at the terminal itself isn't in the journal: compare the terminal's own report";

function partOf({ box, found, failure = "" }: OfBox<Day>, period: string, asked: readonly Asked[]): DayPart {
  const heading = printable(box === undefined ? period : `${box}, ${period}`);
  if (found === undefined) return { heading, rows: [], open: [printable(failure)], notes: [] };
  const said = asked.flatMap((each) => each.said.map(printable));
  return { heading, rows: tableOf(found.rows), open: found.open.map(openWords), notes: [...said, ...notesOf(found)] };
}

function tableOf(rows: readonly DayRow[]): DayPart["rows"] {
  if (rows.length === 0) return [["nothing was sold or refunded"]];
  const sums = (row: DayRow) => dayColumns.flatMap((column) => sumWords(row[column]));
  return [titles, ...rows.map((row) => [row.service, row.currency ?? unrecorded, ...sums(row)].map(printable))];
}

function textOf({ heading, rows, open, notes }: DayPart): string {
  const right = titles.map((_, column) => column).slice(2);
  return [heading, ...tableLines(rows, { right }), ...open, ...notes].map((line) => `${line}\n`).join("");
}

function sumWords({ count, sum, unrecorded: missing }: DaySum): readonly [string, string] {
  if (missing === 0) return [String(count), String(sum)];
  return [String(count), missing === count ? unrecorded : `${sum} (${missing} ${unrecorded})`];
}

function openWords({ is, sent, why, todo }: DayOpen): string {
  const { timeMs, service, route, key = "-", amount = "", currency = "" } = sent;
  const money = amount === "" ? `amount ${unrecorded}` : `${amount} ${currency}`.trimEnd();
  return [`${dateAndTime(timeMs)}  ${service} ${route} ${key}  ${money}  ${is}: ${why}`, `  ${todo}`].map(printable).join("\n");
}

/** What isn't in the table, and what nobody here can know. */
function notesOf({ open, inFlight, uncounted, paired, unpairable, held, lackingUntilMs }: Day): readonly string[] {
  const notes = [open.length === 0 ? "nothing is open" : `${open.length} open`];
  if (inFlight > 0) notes.push(`${inFlight} in flight, and in no sum`);
  if (uncounted.length > 0) notes.push(`not in the configuration, and in no sum: ${printable(uncounted.join(", "))}`);
  if (paired !== undefined)
    notes.push(`payments with their receipt: ${paired.byRrn} by number, ${paired.byAmount} by amount within 10 minutes`);
  if (unpairable > 0) notes.push(`payments and receipts aren't compared: ${unpairable} of them have no amount recorded`);
  if (lackingUntilMs !== undefined)
    notes.push(`records until ${dateAndTime(lackingUntilMs)} are overwritten or missing: the sums may lack operations`);
  if (held !== undefined) notes.push(`the journal holds records from ${held.map(dateAndTime).join(" to ")}`);
  return notes;
}

const isoOf = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());

function jsonOfBox({ found, ...box }: OfBox<Day>): object {
  const { rows: services, open, held = [], lackingUntilMs, ...day } = found ?? {};
  return {
    ...{ ...box, services, ...day, heldSince: isoOf(held[0]), heldUntil: isoOf(held[1]), lackingUntil: isoOf(lackingUntilMs) },
    open: open?.map(({ is, sent: { timeMs, service, route, key, amount, currency, requestId }, why, todo }) => ({
      ...{ is, time: isoOf(timeMs), service, route, key, amount, currency, requestId, why, todo },
    })),
  };
}

const jsonOf = (told: object) =>
  `${printableJson(JSON.stringify(told, (_, value) => (typeof value === "bigint" ? String(value) : value)))}\n`;

const flags = {
  since: { type: "string", example: "yesterday", describe: `From this time on (default today): ${sinceExamples}` },
  until: { type: "string", example: "18:00", describe: "Before this time (default now)" },
  service: { type: "string", example: "bank", describe: "Only this service" },
  ask: { type: "boolean", describe: "Compare with fiscal's own sums, by a report that prints and changes nothing" },
  report: { type: "string", example: "day.html", describe: "Write it to this file, too, as a page to print" },
  json: { type: "boolean", describe: "Print one JSON object in place of a table" },
  ...boxesFlags,
} as const satisfies FlagTable;

export const dayCommand = defineCommand({
  name: "day",
  describe: "Say what was sold and refunded in a day by the journal, and what is open",
  flags,
  epilogue: "Exit codes: 0 nothing is open, 69 the journal can't be read, 75 something is open, missing or differs.",
  examples: [["day --since yesterday --until today", "The day before"]],
  run: (args: DayArguments) => runDay(args, processIo),
});
