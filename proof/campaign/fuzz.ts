import { spawn } from "node:child_process";
import { isObject } from "../../src/core/json-object.ts";
import type { TargetReport } from "./fuzz/main.ts";
import { type Part, partMs, type Row } from "./part.ts";

/**
 * Fuzz: every reader of what comes from outside, given mutated inputs from a corpus. What is counted is judged by `fuzz/*.ts`; here it
 * becomes rows. It runs in a process of its own, for its memory.
 */

/** Milliseconds that node and tsx take to load all readers, on a busy machine. */
const startMsMax = 60_000;

/** Frames of a long run, of each decoder. */
const framesMin = 10_000_000;

/** Bytes of a long run, of each decoder. */
const decoderBytesMin = 20_000_000;

/** Minutes from which a run is long enough for these. */
const longMinutes = 10;

/** Megabytes that a reader may hold at any moment: its largest input in several forms. */
const heldMbMax = 64;

/** Runs `fuzz/main.ts`. */
function reportsOf(seconds: number, seed: number, more: readonly string[]): Promise<readonly TargetReport[]> {
  const script = new URL("./fuzz/main.ts", import.meta.url).pathname;
  const args = ["--expose-gc", "--import", "tsx", script, "--seconds", String(seconds), "--seed", String(seed), ...more];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const limit = setTimeout(() => child.kill("SIGKILL"), startMsMax + 10 * seconds * 1_000);
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (more: string) => {
    text += more;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(limit);
      if (code !== 0) return reject(new Error(`fuzz/main.ts ended with ${code ?? signal} after:\n${text}`));
      resolve(text.split("\n").filter(Boolean).map(reportIn));
    });
  });
}

function reportIn(line: string): TargetReport {
  const value: unknown = JSON.parse(line);
  if (!isObject(value) || typeof value["name"] !== "string") throw new Error(`Cannot read a report of fuzz/main.ts: ${line}`);
  // Written by main.ts as just that.
  return value as unknown as TargetReport;
}

function rowsOf(report: TargetReport, isLong: boolean): readonly Row[] {
  const { name, unit, inputs, bytes, units, findings, heldBytesMax } = report;
  const isDecoder = name.startsWith("decoder");
  return [
    { what: `${name}: inputs`, value: inputs, unit: "", bound: { side: "least", value: 1 } },
    ...(isDecoder ? [mbRow(`${name}: fed`, bytes, isLong)] : []),
    {
      what: `${name}: ${unit}`,
      value: units,
      unit: "",
      ...(isDecoder && isLong ? { bound: { side: "least", value: framesMin } } : {}),
    },
    {
      what: `${name}: wrong`,
      value: findings.length,
      unit: "",
      bound: { side: "most", value: 0 },
      ...(findings.length === 0 ? {} : { note: findings.map(({ number, error }) => `input ${number}: ${error}`).join("; ") }),
    },
    { what: `${name}: held`, value: heldBytesMax / 1e6, unit: "MB", bound: { side: "most", value: heldMbMax } },
  ];
}

function mbRow(what: string, bytes: number, isLong: boolean): Row {
  const row = { what, value: bytes / 1e6, unit: "MB" };
  return isLong ? { ...row, bound: { side: "least", value: decoderBytesMin / 1e6 } } : row;
}

export const fuzz: Part = {
  name: "fuzz",
  run: async (options) => {
    const isLong = !options.short && options.minutes >= longMinutes;
    const more = isLong ? ["--frames", String(framesMin)] : [];
    const reports = await reportsOf(partMs(options) / 1_000, options.seed, more);
    return reports.flatMap((report) => rowsOf(report, isLong));
  },
};
