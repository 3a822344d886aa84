import { parseArgs } from "node:util";
import { isKept } from "./part.ts";
import { parts } from "./parts.ts";
import { outDir, type PartRows, tableOf } from "./table.ts";

/**
 * `npm run campaign -- [--minutes N] [--seed S] [--part NAME]... [--short]`: the promises of posline, tried until the time is over.
 *
 * Prints one table; `out/campaign/` holds a recording of each schedule that broke something. Exits with 1 when a bound is missed. Minutes are those of each part.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    part: { type: "string", multiple: true },
    short: { type: "boolean", default: false },
  },
});

function numberOf(option: "minutes" | "seed", isOk: (value: number) => boolean): number {
  const value = Number(values[option]);
  if (isOk(value)) return value;
  console.error(`Cannot start: --${option} ${JSON.stringify(values[option])} is not a number that it takes, give one above 0`);
  process.exit(64);
}

const minutes = numberOf("minutes", (value) => value > 0 && value <= 24 * 60);
const seed = numberOf("seed", (value) => Number.isInteger(value) && value > 0 && value < 2 ** 31);
const unknown = (values.part ?? []).find((name) => parts.every((part) => part.name !== name));
if (unknown !== undefined) {
  const names = parts.map(({ name }) => name).join(" ");
  console.error(`Cannot start: there is no part ${JSON.stringify(unknown)}, choose from ${names}`);
  process.exit(64);
}

const all: PartRows[] = [];
for (const part of parts) {
  if (values.part !== undefined && !values.part.includes(part.name)) continue;
  const begun = performance.now();
  const rows = await part.run({ minutes, seed, short: values.short });
  const seconds = (performance.now() - begun) / 1_000;
  console.error(`campaign ${part.name}: done in ${seconds.toFixed(1)} s`);
  all.push({ part: part.name, seconds, rows });
}
console.log(tableOf(all));
const missed = all.flatMap(({ part, rows }) => rows.filter((row) => !isKept(row)).map(({ what }) => `${part}: ${what}`));
for (const each of missed) console.log(`missed: ${each}`);
if (missed.length > 0) console.error(`recordings are in ${outDir}`);
if (missed.length > 0) process.exitCode = 1;
