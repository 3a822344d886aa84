import { printable, printableJson } from "../core/shell-text.ts";
import type { DoctorOptions, DoctorReport } from "../doctor/doctor.ts";
import type { Finding, Level, RedactedBytes } from "../doctor/finding.ts";
import { defineCommand } from "./command.ts";
import { sourceFlags } from "./config.ts";
import { exitCodes } from "./exit.ts";

/** `posline doctor`: what stands between the tills and the terminal, and what mends it. */

export interface DoctorArguments {
  readonly config?: string | undefined;
  readonly line?: string | undefined;
  readonly baud?: number | undefined;
  readonly json?: boolean | undefined;
}

/** How it is shown. */
export interface Look {
  /** The terminal knows more signs than ASCII. */
  readonly unicode: boolean;
  readonly colour: boolean;
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

/** The report as a technician reads it: the box, then line by line; under each finding why, and what to do. */
export function render(report: DoctorReport, look: Look): string {
  const { lines, findings } = report;
  const text = ["this box", ...ofLine(findings, undefined, look)];
  for (const { name, path, baudRate, format } of lines) {
    text.push("", `line ${printable(name)}: ${printable(path)}, ${baudRate} ${format}`, ...ofLine(findings, name, look));
  }
  return `${[...text, "", ...summary(report)].join("\n")}\n`;
}

function ofLine(findings: readonly Finding[], line: string | undefined, look: Look): string[] {
  return findings.filter((each) => each.line === line).flatMap((each) => rowsOf(each, look));
}

function rowsOf({ check, level, what, cause, cure, frames = [] }: Finding, { unicode, colour }: Look): string[] {
  const sign = unicode ? signs[level].unicode : signs[level].ascii;
  const painted = colour ? `\u001b[${signs[level].colour}m${sign}\u001b[0m` : sign;
  const rows = [`${painted} ${check.padEnd(checkWidth)}  ${printable(what)}`];
  if (cause !== undefined) rows.push(`${indent}why: ${printable(cause)}`);
  if (cure !== undefined) rows.push(`${indent}do:  ${printable(cure)}`);
  return [...rows, ...frames.flatMap((frame) => frameRows(frame, unicode))];
}

/** Bytes in a row of a dump. */
const rowBytes = 24;

function frameRows({ direction, atMs, bytes, hex, text }: RedactedBytes, unicode: boolean): string[] {
  const arrow = direction === "sent" ? (unicode ? "→" : ">") : unicode ? "←" : "<";
  const pairs = hex.split(" ");
  const rows: string[] = [];
  for (let at = 0; at < pairs.length; at += rowBytes) rows.push(pairs.slice(at, at + rowBytes).join(" "));
  const head = `${indent}${arrow} ${direction} ${bytes} bytes at ${atMs} ms`;
  const said = text === undefined ? [] : [`${indent}  ${printable(text)}`];
  return [head, ...rows.map((row) => `${indent}  ${row}`), ...said];
}

function summary({ findings, first, verdict }: DoctorReport): string[] {
  const count = (level: Level) => findings.filter((each) => each.level === level).length;
  const [bad, warn] = [count("bad"), count("warn")];
  const sent = findings.some(({ frames = [] }) => frames.length > 0);
  const said = sent
    ? "Nothing was changed: all that was sent are the questions above, which only read."
    : "Nothing was changed, and nothing was sent.";
  if (first === undefined) return ["Nothing stands in the way.", said];
  const warnings = warn === 0 ? "" : `, ${warn} ${warn === 1 ? "warning" : "warnings"}`;
  const stands = `${bad} ${bad === 1 ? "thing stands" : "things stand"} in the way${warnings}.`;
  const head = verdict === "ok" ? `Nothing stands in the way${warnings}.` : stands;
  const where = first.line === undefined ? "" : `line ${first.line}: `;
  const cure = first.cure === undefined ? [] : [`  ${printable(first.cure)}`];
  return [head, `First: ${printable(`${where}${first.what}`)}`, ...cure, said];
}

/** The report as one JSON object. */
export function renderJson({ file, ...report }: DoctorReport, time: Date): string {
  return `${printableJson(JSON.stringify({ time, file: file ?? null, ...report }, undefined, 2))}\n`;
}

const codes = { ok: exitCodes.ok, bad: exitCodes.unavailable, config: exitCodes.config } as const;

/** Where the command writes to, and what it examines. */
export interface Surroundings {
  readonly examine: (examining: DoctorOptions) => Promise<DoctorReport>;
  readonly look: Look;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** @returns the exit code: 0 when nothing stands in the way, 69 when something does, 78 for the configuration. */
export async function runDoctor(args: DoctorArguments, { examine, look, out, err }: Surroundings): Promise<number> {
  const { config, line, baud } = args;
  const report = await examine({ wanted: { config, line, baud }, progress: (text) => err(`${printable(text)} ...\n`) });
  out(args.json === true ? renderJson(report, new Date()) : render(report, look));
  return codes[report.verdict];
}

/** UTF-8 by the locale; a Linux console has few signs in its font. */
function lookOf({ env, stdout }: Pick<NodeJS.Process, "env" | "stdout">): Look {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  const isTty = stdout.isTTY === true;
  return {
    unicode: /utf-?8/i.test(locale) && env["TERM"] !== "linux",
    colour: isTty && env["NO_COLOR"] === undefined && env["TERM"] !== "dumb",
  };
}

export const doctorCommand = defineCommand({
  name: "doctor",
  describe: "Check the box, the configuration and the terminal, and say how to fix what is wrong",
  flags: {
    config: sourceFlags.config,
    line: {
      type: "string",
      example: "/dev/ttyUSB0",
      describe: "Check only this line: its name in the configuration, or a device",
    },
    baud: { type: "whole", example: "9600", describe: "Try the terminal at this speed in place of the configured one" },
    json: { type: "boolean", describe: "Print one JSON object in place of text" },
  },
  run: async (args: DoctorArguments) => {
    // Loaded when it is run, so that registering the command costs nothing.
    const { examine } = await import("../doctor/doctor.ts");
    return runDoctor(args, {
      examine,
      look: lookOf(process),
      out: (text) => process.stdout.write(text),
      err: (text) => process.stderr.write(text),
    });
  },
});
