import { writeFileSync } from "node:fs";
import type { FlagTable } from "../../core/command.ts";
import { messageOf } from "../../core/error-code.ts";
import { exitCodes, UsageError } from "../../core/exit.ts";
import { nearest } from "../../core/nearest.ts";
import { inQuotes } from "../../core/shell-text.ts";
import { type Case, countOf, type Judged, type Judgement } from "../report/judgement.ts";
import { junitOf } from "../report/junit.ts";
import { reportOf } from "../report/report.ts";

/** What the commands that judge share: cases by name, progress, reports and the exit code. */

/** Where the verdicts are written, too. */
export interface ReportFiles {
  readonly junit?: string | undefined;
  readonly report?: string | undefined;
}

export const reportFlags = {
  junit: { type: "string", example: "verdicts.xml", describe: "Write the verdicts to this file as JUnit XML" },
  report: {
    type: "string",
    example: "verdicts.html",
    describe: "Write the verdicts and time lines to this file as one HTML page",
  },
} as const satisfies FlagTable;

export function writeReports(judgement: Judgement, { junit, report }: ReportFiles): void {
  if (junit !== undefined) write("--junit", junit, junitOf(judgement));
  if (report !== undefined) write("--report", report, reportOf(judgement));
}

function write(flag: string, file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new UsageError(`Cannot write ${flag} ${file}: ${messageOf(error)}: name a file in a folder that can be written`);
  }
}

/** The exit code of verdicts: 0 if all held, 1 if one is broken, 75 if none is and not all were seen. */
export function exitCodeOfVerdicts(cases: readonly Judged[]): number {
  if (countOf(cases, "broken") > 0) return 1;
  return cases.length > 0 && countOf(cases, "held") === cases.length ? exitCodes.ok : exitCodes.unknown;
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

export function clearProgress(): void {
  showProgress("");
}
