import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Scenario } from "../../../src/lab/rehearse/scenario.ts";
import { scenarios } from "../../../src/lab/rehearse/scenarios.ts";
import { scratchFolder } from "../bridge-process.ts";
import { commandOf, kinds, type Mistake, mistakes, type Style, styles, wrongTill } from "./mistakes.ts";
import { rehearsed } from "./rehearsed.ts";

/**
 * Which mistakes of a till does `posline rehearse` find? Each wrong till is rehearsed in the scenarios that ought to name it, and if none
 * does, in all that have its deed. The right tills must be called broken in nothing, with each seed. Build first:
 * node --import tsx test/support/tills/run.ts [--only TEXT] [--seeds 3] [--at-a-time 4]
 */

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    seeds: { type: "string", default: "3" },
    "at-a-time": { type: "string", default: "4" },
  },
});

/** Seconds for one deed: longer than the longest that any scenario needs. */
const patience = "100";

const folder = scratchFolder();
process.on("exit", () => folder.remove());

/** What came of a wrong till: where it was found, and by which sentence; undefined if it was missed. */
type Row = readonly [mistake: Mistake, found: readonly [scenario: string, why: string] | undefined];

const flagsOf = (names: readonly string[]) => names.flatMap((name) => ["--scenario", name]);
/** What takes minutes would call a till broken that is only not waited for. */
const has = ({ steps, lasts }: Scenario, { deed }: Mistake) =>
  lasts !== "minutes" && steps.some((step) => typeof step !== "number" && step.deed === deed);

async function tried(mistake: Mistake): Promise<Row> {
  const file = join(folder.path, mistake.name);
  writeFileSync(file, wrongTill(mistake));
  const rehearse = async (names: readonly string[], seconds: string) => {
    if (names.length === 0) return undefined;
    const flags = [...flagsOf(names), "--patience", seconds, "--jobs", "3"];
    const { broken, code, complaint } = await rehearsed(commandOf(mistake.style, file), `${file}.state`, flags);
    if (code === 69 || code === 64) throw new Error(`${mistake.name}: ${complaint}`);
    return broken;
  };
  const playable = scenarios.filter((each) => has(each, mistake)).map(({ name }) => name);
  const expected = mistake.scenarios.filter((name) => playable.includes(name));
  const found = (await rehearse(expected, mistake.kind === "code" || mistake.kind === "pace" ? "25" : patience)) ?? undefined;
  if (found !== undefined) return [mistake, found];
  return [
    mistake,
    await rehearse(
      playable.filter((name) => !expected.includes(name)),
      patience,
    ),
  ];
}

/** Does so with each, several at a time. */
async function each<Item>(items: readonly Item[], atATime: number, act: (item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const worker = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}

const rows: Row[] = [];
await each(
  mistakes.filter(({ name, kind }) => `${kind} ${name}`.includes(values.only)),
  Number(values["at-a-time"]),
  async (mistake) => {
    const row = await tried(mistake);
    rows.push(row);
    const [{ name, deed, scenarios: expected }, found] = row;
    const [scenario, why] = found ?? ["-", "missed"];
    console.log(`| ${name} | ${deed} | ${expected.join(", ")} | ${scenario} | ${why.slice(0, 150)} |`);
  },
);

console.log("\n| kind | found | as expected | missed |\n|---|---|---|---|");
for (const kind of kinds) {
  const of = rows.filter(([mistake]) => mistake.kind === kind);
  const found = of.filter(([, where]) => where !== undefined);
  const expected = found.filter(([mistake, where]) => where !== undefined && mistake.scenarios.includes(where[0]));
  const missed = of.flatMap(([{ name }, where]) => (where === undefined ? [name] : []));
  console.log(`| ${kind} | ${found.length} of ${of.length} | ${expected.length} | ${missed.join(", ")} |`);
}
console.log(`${rows.filter(([, found]) => found !== undefined).length} of ${rows.length} wrong tills found`);

const accused: string[] = [];
const runs = Object.keys(styles).flatMap((style) =>
  Array.from({ length: Number(values.seeds) }, (_, seed) => ({ style: style as Style, seed: String(seed + 1) })),
);
await each(runs, 2, async ({ style, seed }) => {
  const flags = ["--seed", seed, "--patience", patience, "--jobs", "5"];
  const { out } = await rehearsed(commandOf(style), join(folder.path, `${style}-${seed}`), flags);
  const broken = [...out.matchAll(/^FAILED .*$/gm)].map(([line]) => `${style}, seed ${seed}: ${line}`);
  accused.push(...broken);
  console.log(
    `right till ${style}, seed ${seed}: ${out.trim().split("\n").at(-1)}${broken.map((line) => `\n  ${line}`).join("")}`,
  );
});
process.exitCode = accused.length === 0 ? 0 : 1;
