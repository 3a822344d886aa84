import { isTcpPath } from "../config/device-name.ts";
import { type ArgumentsOf, type CommandIo, defineCommand, type FlagTable, processIo } from "../core/command.ts";
import { exitCodes } from "../core/exit.ts";
import { hasColours, printable, printableJson } from "../core/shell-text.ts";
import type { DoctorOptions, DoctorReport, ReportedLine } from "../doctor/doctor.ts";
import type { Finding, Level, RedactedBytes } from "../doctor/finding.ts";
import { sourceFlags } from "./config.ts";

/** `posline doctor`: what is wrong between the tills and the terminal, and what fixes it. */

export type DoctorArguments = ArgumentsOf<typeof flags>;

/** How it is shown. */
export interface Look {
  /** The terminal knows more signs than ASCII. */
  readonly unicode: boolean;
  readonly colour: boolean;
  /** Columns of the terminal, where lines are wrapped; undefined where there is none. */
  readonly columns?: number | undefined;
}

const signs: Readonly<Record<Level, { readonly unicode: string; readonly ascii: string; readonly colour: number }>> = {
  ok: { unicode: "✔", ascii: "+", colour: 32 },
  note: { unicode: "·", ascii: ".", colour: 36 },
  warn: { unicode: "!", ascii: "!", colour: 33 },
  bad: { unicode: "✘", ascii: "X", colour: 31 },
  skipped: { unicode: "–", ascii: "-", colour: 90 },
};

const checkWidth = 12;
const indent = " ".repeat(checkWidth + 4);

function lineHeading({ name, path, baudRate, format }: ReportedLine): string[] {
  const settings = isTcpPath(path) ? "" : `, ${baudRate} ${format}`;
  return ["", `line ${printable(name)}: ${printable(path)}${settings}`];
}

/** A finding as a technician reads it: below it why, what to do, and of a failure the bytes. */
export function findingRows(found: Finding, look: Look, allFrames: boolean): string[] {
  const { check, level, what, cause, cure, frames = [] } = found;
  const sign = look.unicode ? signs[level].unicode : signs[level].ascii;
  const painted = look.colour ? `\u001b[${signs[level].colour}m${sign}\u001b[0m` : sign;
  const [first = "", ...more] = wrapped(printable(what), indent.length, look);
  const rows = [`${painted} ${check.padEnd(checkWidth)}  ${first}`, ...more];
  if (cause !== undefined) rows.push(...labelledRows(`${indent}why: `, cause, look));
  if (cure !== undefined) rows.push(...labelledRows(`${indent}do:  `, cure, look));
  const isShown = allFrames || level !== "ok";
  return isShown ? [...rows, ...frames.flatMap((frame) => frameRows(frame, look))] : rows;
}

/** A cause or a cure behind its label; each of several numbered ones is on a row of its own. */
function labelledRows(label: string, text: string, look: Look): string[] {
  const steps = /^1\. /.test(text) ? text.split(/; (?=\d+\. )/) : [text];
  const [first = "", ...more] = steps.flatMap((step) => {
    const [, number = "", words = ""] = /^(\d+\. )?(.*)$/s.exec(printable(step)) ?? [];
    const [head = "", ...rest] = wrapped(words, label.length + number.length, look);
    return [`${number}${head}`, ...rest.map((row) => row.slice(label.length))];
  });
  return [`${label}${first}`, ...more.map((row) => `${" ".repeat(label.length)}${row}`)];
}

/** Columns that a wrapped text has at least, however narrow the terminal. */
const textColumnsMin = 24;

/** Breaks a text between its words; all rows but the first begin with so many spaces. */
function wrapped(text: string, hanging: number, { columns }: Look): string[] {
  if (columns === undefined) return [text];
  const width = Math.max(textColumnsMin, columns - hanging);
  const rows: string[] = [];
  let row = "";
  for (const word of text.split(" ")) {
    if (row !== "" && row.length + 1 + word.length > width) {
      rows.push(row);
      row = word;
    } else row = row === "" ? word : `${row} ${word}`;
  }
  const [first = "", ...more] = [...rows, row];
  return [first, ...more.map((each) => `${" ".repeat(hanging)}${each}`)];
}

/** Bytes in a row of a dump. */
const rowBytes = { min: 8, max: 24 } as const;

function frameRows({ direction, atMs, bytes, hex, text }: RedactedBytes, look: Look): string[] {
  const arrow = direction === "sent" ? (look.unicode ? "→" : ">") : look.unicode ? "←" : "<";
  const fitting = Math.floor(((look.columns ?? Number.POSITIVE_INFINITY) - indent.length - 1) / 3);
  const perRow = Math.max(rowBytes.min, Math.min(rowBytes.max, fitting));
  const pairs = hex.split(" ");
  const rows: string[] = [];
  for (let at = 0; at < pairs.length; at += perRow) rows.push(pairs.slice(at, at + perRow).join(" "));
  const head = `${indent}${arrow} ${direction} ${bytes} bytes at ${atMs} ms`;
  const inner = `${indent}  `;
  const said = text === undefined ? [] : [`${inner}${wrapped(printable(text), inner.length, look).join("\n")}`];
  return [head, ...rows.map((row) => `${inner}${row}`), ...said];
}

/** What to fix first, what was not checked where all else is well, and at the very end the settings that a scan found. */
function summary({ findings, first, verdict }: DoctorReport, look: Look): string[] {
  const sent = findings.some(({ frames = [] }) => frames.length > 0);
  const said = sent
    ? "Nothing was changed. Only probes were sent, which only read."
    : "Nothing was changed, and nothing was sent.";
  const settings = findings.flatMap(({ setting }) => (setting === undefined ? [] : [printable(setting)]));
  const unchecked = verdict === "ok" ? uncheckedRows(findings, look) : [];
  const end = [...unchecked, ...(settings.length === 0 ? [said] : [said, "", ...settings])];
  if (first === undefined) return ["No problem was found.", ...end];
  const [bad, warn] = [countCauses(findings, "bad"), countCauses(findings, "warn")];
  const problems = verdict === "ok" ? "No problem was found" : `${bad} ${bad === 1 ? "problem was" : "problems were"} found`;
  const warnings = warn === 0 ? "" : `, ${warn} ${warn === 1 ? "warning" : "warnings"}`;
  const head = wrapped(`First: ${printable(placedFact(first))}`, "First: ".length, look);
  const cure = first.cure === undefined ? [] : labelledRows("  ", first.cure, look);
  return [`${problems}${warnings}.`, ...head, ...cure, ...end];
}

/** That no problem was found says nothing of what was skipped. What checks it may stop what works, and stands with the finding alone. */
function uncheckedRows(findings: readonly Finding[], look: Look): string[] {
  const skipped = findings.filter(({ level }) => level === "skipped");
  if (skipped.length === 0) return [];
  return ["Not checked:", ...skipped.flatMap((each) => labelledRows("  ", placedFact(each), look))];
}

const placedFact = ({ line, what }: Finding) => (line === undefined ? what : `line ${line}: ${what}`);

/** How many things there are to fix: findings of one line with one cure are one. */
function countCauses(findings: readonly Finding[], level: Level): number {
  const found = findings.filter((each) => each.level === level);
  return new Set(found.map(({ line, what, cure }) => JSON.stringify([line, cure ?? what]))).size;
}

/** The report as one JSON object. */
export function renderJson({ file, ...report }: DoctorReport, time: Date): string {
  return `${printableJson(JSON.stringify({ time, file: file ?? null, ...report }, undefined, 2))}\n`;
}

const codes = { ok: exitCodes.ok, bad: exitCodes.unavailable, config: exitCodes.config, usage: exitCodes.usage } as const;

/** Where the command writes to, and what it examines. */
export interface Surroundings extends Pick<CommandIo, "out" | "err"> {
  readonly examine: (examining: DoctorOptions) => Promise<DoctorReport>;
  readonly look: Look;
}

/** @returns the exit code: 0 when no problem was found, 69 when one was, 64 for a flag's value, 78 for the configuration. */
export async function runDoctor(args: DoctorArguments, { examine, look, out, err }: Surroundings): Promise<number> {
  const { config, line, baud, scan = false, frames = false, json = false } = args;
  const show = (rows: readonly string[]) => out(rows.map((row) => `${row}\n`).join(""));
  const watching: Pick<DoctorOptions, "onFinding" | "onLine"> = {
    onFinding: (found) => show(findingRows(found, look, frames)),
    onLine: (each) => show(lineHeading(each)),
  };
  if (!json) show(["this box"]);
  const report = await examine({
    wanted: { config, line, baud },
    scan,
    progress: (text) => err(`${printable(text)} ...\n`),
    ...(json ? {} : watching),
  });
  if (json) out(renderJson(report, new Date()));
  else show(["", ...summary(report, look)]);
  return codes[report.verdict];
}

/** UTF-8 by the locale; a Linux console has few signs in its font. */
export function lookOf({ env, stdout }: Pick<NodeJS.Process, "env" | "stdout">): Look {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  const isTty = stdout.isTTY === true;
  return {
    unicode: /utf-?8/i.test(locale) && env["TERM"] !== "linux",
    columns: isTty ? stdout.columns : undefined,
    colour: hasColours(env, isTty),
  };
}

const flags = {
  config: sourceFlags.config,
  line: {
    type: "string",
    example: "/dev/ttyUSB0",
    describe: "Check only this line: its name in the configuration, a device, or tcp:HOST:PORT",
  },
  baud: { type: "whole", example: "9600", describe: "Try the terminal at this speed in place of the configured one" },
  scan: { type: "boolean", describe: "Try the usual speeds and both CRC16, and print the setting that works" },
  frames: { type: "boolean", describe: "Show the bytes of every frame, not only of failures" },
  json: { type: "boolean", describe: "Print one JSON object in place of text" },
} as const satisfies FlagTable;

export const doctorCommand = defineCommand({
  name: "doctor",
  describe: "Check the box, the configuration and the terminal, and say how to fix what is wrong",
  flags,
  epilogue: "posline certify judges a terminal that answers by its contracts, and says which sentence it breaks.",
  run: async (args: DoctorArguments) => {
    // Loaded when it is run, so that registering the command costs nothing.
    const { examine } = await import("../doctor/doctor.ts");
    return runDoctor(args, { ...processIo, examine, look: lookOf(process) });
  },
});
