import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Forked } from "./forked.ts";
import type { FuzzResult } from "./fuzz/target.ts";
import { type Part, partMs, type Row } from "./part.ts";
import { outDir } from "./table.ts";

/** Fuzz: every reader of what comes from outside, given mutated inputs from a corpus. What is counted is judged by `fuzz/*.ts`. */

/** Milliseconds that node and tsx take to load all readers, on a busy machine. */
const startMsMax = 60_000;

/** Frames of a long run, of each decoder. */
const framesMin = 10_000_000;

/** Megabytes of a long run, of each decoder. */
const decoderMbMin = 20;

/** Minutes from which a run is long enough for these. */
const longMinutes = 10;

/** Megabytes that a reader may hold at any moment: its largest input in several forms. */
const heldMbMax = 64;

function rowsOf({ name, unit, inputs, bytes, units, findings, heldBytesMax }: FuzzResult, isLong: boolean): readonly Row[] {
  const isDecoder = name.startsWith("decoder");
  const least = (value: number) => (isLong && isDecoder ? value : undefined);
  return [
    { what: `${name}: inputs`, value: inputs, least: 1 },
    ...(isDecoder ? [{ what: `${name}: fed`, value: bytes / 1e6, unit: "MB", least: least(decoderMbMin) }] : []),
    { what: `${name}: ${unit}`, value: units, least: least(framesMin) },
    {
      what: `${name}: wrong`,
      value: findings.length,
      most: 0,
      note: findings.map(({ number, error, input }) => `${error}: ${written(`fuzz-${name}-${number}`, input)}`).join("; "),
    },
    { what: `${name}: held`, value: heldBytesMax / 1e6, unit: "MB", most: heldMbMax },
  ];
}

/** Writes what broke a reader. @returns where it is. */
function written(name: string, input: string): string {
  mkdirSync(outDir, { recursive: true });
  const path = join(outDir, name.replaceAll(" ", "-"));
  writeFileSync(path, input, "latin1");
  return path;
}

export const fuzz: Part = {
  name: "fuzz",
  run: async (options) => {
    const isLong = !options.short && options.minutes >= longMinutes;
    const forMs = partMs(options);
    const child = new Forked<readonly FuzzResult[]>("fuzz/main.ts", [options.seed, forMs, isLong ? framesMin : 0]);
    // A reader that doesn't come back is ended.
    const limit = setTimeout(() => child.stop("SIGKILL"), startMsMax + 10 * forMs);
    const results = await child.message();
    clearTimeout(limit);
    return results.flatMap((result) => rowsOf(result, isLong));
  },
};
