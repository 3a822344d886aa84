import { createHash } from "node:crypto";
import { closeSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { FlagTable } from "../../core/command.ts";
import { exitCodes, UsageError } from "../../core/exit.ts";
import { nearest } from "../../core/nearest.ts";
import { asFile } from "../../core/replace-file.ts";
import { inQuotes, printable, quoted } from "../../core/shell-text.ts";
import { version } from "../../core/version.ts";
import { type Case, countOf, countsText, type Judged, type Judgement } from "../report/judgement.ts";
import { junitOf } from "../report/junit.ts";
import { reportOf } from "../report/report.ts";
import { Table } from "../report/table.ts";

/** What the commands that judge share: cases by name, progress, reports and the exit code. */

/** Where the verdicts are written, too, and what is said of them there. */
export interface ReportFiles {
  readonly junit?: string | undefined;
  readonly report?: string | undefined;
  readonly subject?: string | undefined;
  readonly by?: string | undefined;
}

export const reportFlags = {
  junit: { type: "string", example: "verdicts.xml", describe: "Write the verdicts to this file as JUnit XML" },
  report: {
    type: "string",
    example: "verdicts.html",
    describe: "Write the verdicts and time lines to this file as one HTML page",
  },
  subject: { type: "string", example: "'Till 4.2'", describe: "Name and version of what is judged, for the report" },
  by: { type: "string", example: "'A. Smith, shop 7'", describe: "Who judges, and where, for the report" },
} as const satisfies FlagTable;

/** Tries before a run of minutes whether its reports can be written. @throws UsageError if one can't. */
export function tryReports({ junit, report }: ReportFiles): void {
  for (const [flag, file] of [
    ["--junit", junit],
    ["--report", report],
  ] as const) {
    if (file !== undefined) asFile(flag, file, () => closeSync(openSync(file, "a")));
  }
}

/** A run of one of these commands. */
export interface JudgingRun extends Pick<Judgement, "subject" | "by"> {
  readonly args: ReportFiles;
  readonly chosen: readonly Case[];
  /** Tries the cases, and tells each that is over. */
  readonly run: (judged: (judged: Judged) => void) => Promise<readonly Judged[]>;
  /** Thrown by `run` if there is nothing to judge. */
  readonly refusal: abstract new (
    ...args: never[]
  ) => Error;
  /** What else a repetition needs, and the files that it was run with. */
  readonly setup: (cases: readonly Judged[]) => Judgement["setup"];
  readonly files?: readonly string[];
}

/** Runs it, shows what comes of each case, writes the reports. @returns the exit code */
export async function runJudging({ subject, by, args, chosen, run, refusal, setup, files = [] }: JudgingRun): Promise<number> {
  const began = new Date();
  const table = new Table(chosen);
  let cases: readonly Judged[];
  try {
    cases = await run((judged) => {
      clearProgress();
      process.stdout.write(table.row(judged));
    });
  } catch (error) {
    if (!(error instanceof refusal)) throw error;
    process.stderr.write(`Cannot ${by.replace("posline ", "")} ${inQuotes(subject)}: ${printable(error.message)}\n`);
    return exitCodes.unavailable;
  } finally {
    clearProgress();
  }
  process.stdout.write(`${countsText(cases)}\n`);
  const judgement = { subject, by, version, began, setup: { ...setup(cases), ...evidenceOf(args, began, files) }, cases };
  writeReports(judgement, args);
  return exitCodeOfVerdicts(cases);
}

/** What a repetition needs, and whoever files the report. @param files Their contents are named by their SHA-256. */
function evidenceOf({ subject, by }: ReportFiles, began: Date, files: readonly string[]): Readonly<Record<string, string>> {
  const sums = files.filter(isFile).map((file) => `${sumOf(readFileSync(file))} ${file}`);
  return {
    ...(subject !== undefined && { name: subject }),
    ...(by !== undefined && { "tried by": by }),
    "run again": `posline ${process.argv.slice(2).map(quoted).join(" ")}`,
    ...(sums.length > 0 && { "SHA-256": sums.join(", ") }),
    took: `${Math.round((Date.now() - began.getTime()) / 1_000)} s`,
    "time zone": Intl.DateTimeFormat().resolvedOptions().timeZone,
    contracts: "bank v1, qr v1, fiscal without a version",
    on: `Node ${process.versions.node}, ${process.platform} ${process.arch}`,
  };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

const sumOf = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");

/** The SHA-256 of the page is printed, so that whoever has it later can tell that it is the same: `sha256sum verdicts.html`. */
function writeReports(judgement: Judgement, { junit, report }: ReportFiles): void {
  if (junit !== undefined) asFile("--junit", junit, () => writeFileSync(junit, junitOf(judgement)));
  if (report === undefined) return;
  const page = reportOf(judgement);
  asFile("--report", report, () => writeFileSync(report, page));
  process.stdout.write(`${report} has SHA-256 ${sumOf(page)}\n`);
}

/** The exit code of verdicts: 0 if all passed, 1 if one failed, 75 if none did and not all were tested. */
function exitCodeOfVerdicts(cases: readonly Judged[]): number {
  if (countOf(cases, "failed") > 0) return 1;
  return cases.length > 0 && countOf(cases, "passed") === cases.length ? exitCodes.ok : exitCodes.unknown;
}

/** Names and titles, as `--list` prints them. */
export function listOf(cases: readonly Case[]): string {
  const width = Math.max(...cases.map(({ name }) => name.length));
  return cases.map(({ name, title }) => `${name.padEnd(width)}  ${title}\n`).join("");
}

/** Refuses names that no case has. `cannot` is the start of the message: `Cannot rehearse: there is no scenario`. */
export function refuseUnknownNames(cases: readonly Case[], names: readonly string[] = [], cannot: string): void {
  const all = cases.map(({ name }) => name);
  for (const name of names) {
    if (all.includes(name)) continue;
    const meant = nearest(name, all);
    const advice = meant === undefined ? "--list prints them" : `did you mean ${inQuotes(meant)}?`;
    throw new UsageError(`${cannot} ${inQuotes(name)}: ${advice}`);
  }
}

/** Shows how far it is, on a terminal alone. */
export function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

function clearProgress(): void {
  showProgress("");
}
