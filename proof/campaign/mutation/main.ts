import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { type Built, buildTests, type NumberedMutant, numberedMutants, root } from "./build.ts";
import { equivalentOf } from "./equivalents.ts";
import { printReport, type Result, report } from "./report.ts";
import { coverageOf, type FileCoverage, type Run, runTests, type TestKey } from "./runs.ts";

/**
 * `npm run mutation`: changes the code in small ways, and runs the tests that reach each change. A change that no test notices
 * is a behaviour that no test holds.
 *
 * All mutants are in one build (`$m === 17 ? mutated : original`), so that a mutant costs one process and no compile. The tests
 * that reach it run one after the other, the quickest first, up to the first failure.
 */
const { values } = parseArgs({
  options: {
    files: { type: "string", default: "src/wire,src/recovery,src/line,src/envelope,src/settle,src/operations" },
    seed: { type: "string", default: "1" },
    tests: { type: "string" },
    sample: { type: "string" },
    jobs: { type: "string", default: "2" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(
    "npm run mutation -- [--files FOLDER_OR_FILE,...] [--tests FOLDER,...] [--seed S] [--sample MUTANTS_PER_FOLDER] [--jobs N]",
  );
  process.exit(0);
}

const out = "out/mutation";
const jobs = Number(values.jobs);
const sampleSize = values.sample === undefined ? Number.POSITIVE_INFINITY : Number(values.sample);
const seed = Number(values.seed);

/** Tests at the pace of the wall clock: too slow for each mutant, and what they hold should be held closer to the code. */
const apart = ["test/line/rest.test.ts"];
/** Tests of one mutant, in ms on the code as it is: what would take longer is cut, which can only add survivors. */
const plannedMsMax = 15_000;
/** One run in so many is a control: the same tests without the mutant must pass, or a slow machine kills mutants. */
const controlEvery = 20;

function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .sort();
}

const targets = values.files.split(",").flatMap((each) => (each.endsWith(".ts") ? [each] : filesIn(each)));
const mutants = numberedMutants(targets.filter((file) => file.endsWith(".ts")));
/** For these mutants as they are numbered: runs over other files don't meet. */
const work = join(out, createHash("sha256").update(JSON.stringify(mutants)).digest("hex").slice(0, 12));
/** Tests of the mutated rooms: what a room does should be held by its own tests, not only by those of the bundle. */
const testRooms = values.tests?.split(",") ?? [...new Set(targets.map((file) => dirname(file).replace(/^src/, "test")))];
const ofRoom = (room: string) =>
  [room, room.replace(/^test\//, "test/slow/")].filter((folder) => existsSync(join(root, folder)));
const tests = testRooms
  .flatMap(ofRoom)
  .flatMap(filesIn)
  .filter((file) => file.endsWith(".test.ts") && !apart.includes(file));

async function inJobs<Item>(items: readonly Item[], work: (item: Item, index: number) => Promise<void>): Promise<void> {
  const waiting = items.entries();
  const worker = async () => {
    for (const [index, item] of waiting) await work(item, index);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

/** What each test reaches, kept between runs for as long as the sources are the same. */
async function coverage(): Promise<ReadonlyMap<string, FileCoverage>> {
  const built = await buildTests(tests, mutants, join(work, "coverage"), (id) => `globalThis.$reached(${id})`);
  const path = join(root, work, "coverage.json");
  // What this function wrote.
  const kept = new Map(
    existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as readonly (readonly [string, FileCoverage])[]) : [],
  );
  const changed = tests.filter((file) => kept.get(file)?.hash !== built.hashes.get(file));
  if (changed.length > 0) console.log(`running ${changed.length} test files to see what they reach`);
  await inJobs(changed, async (file) => {
    kept.set(file, await coverageOf(built, file));
    // At once: a run that is interrupted here need not begin anew.
    writeFileSync(path, JSON.stringify([...kept]));
  });
  for (const file of tests)
    for (const failed of kept.get(file)?.failed ?? []) console.log(`left out, since it fails as it is: ${file}: ${failed}`);
  return new Map(
    tests
      .flatMap((file) => [[file, kept.get(file)] as const])
      .filter((entry): entry is [string, FileCoverage] => entry[1] !== undefined),
  );
}

/** The tests of one file that reach a mutant. */
type Part = { readonly file: string; readonly tests: readonly TestKey[]; readonly msMax: number };

/** The tests that reach a mutant, the quickest first, by files: some put a clock of their own in place of the process's. */
function planFor({ id, file }: NumberedMutant, covered: ReadonlyMap<string, FileCoverage>): readonly Part[] {
  const found: { readonly key: TestKey; readonly ms: number; readonly order: number }[] = [];
  for (const [name, { loading, tests }] of covered) {
    const isLoading = loading.includes(id);
    const isMirror = basename(name, ".test.ts") === basename(file, ".ts");
    for (const { index, ms, mutants } of tests) {
      if (isLoading || mutants.includes(id)) found.push({ key: [name, index], ms, order: isMirror ? ms / 10 : ms });
    }
  }
  found.sort((one, other) => one.order - other.order);
  let sum = 0;
  const chosen = found.filter(({ ms }) => {
    sum += ms;
    return sum <= plannedMsMax || sum === ms;
  });
  return [...new Set(chosen.map(({ key }) => key[0]))].map((name) => {
    const its = chosen.filter(({ key }) => key[0] === name);
    return { file: name, tests: its.map(({ key }) => key), msMax: Math.max(...its.map(({ ms }) => ms)) };
  });
}

/** Runs the parts of a plan up to the first that doesn't pass. */
async function runPlan(built: Built, mutant: number, plan: readonly Part[]): Promise<Pick<Run, "verdict" | "message">> {
  for (const { file, tests, msMax } of plan) {
    const run = await runTests(built, mutant, file, tests, msMax);
    if (run.verdict !== "passed") return run;
  }
  return { verdict: "passed", message: "" };
}

/** At most this many of each folder, drawn by the seed. */
function sampled(all: readonly NumberedMutant[]): readonly NumberedMutant[] {
  const folders = new Map<string, NumberedMutant[]>();
  for (const mutant of all) folders.set(dirname(mutant.file), [...(folders.get(dirname(mutant.file)) ?? []), mutant]);
  return [...folders.values()].flatMap((list) => {
    const random = xoroshiro128plus(seed);
    const left = [...list];
    const drawn: NumberedMutant[] = [];
    while (left.length > 0 && drawn.length < sampleSize) drawn.push(...left.splice(uniformInt(random, 0, left.length - 1), 1));
    return drawn.sort((one, other) => one.id - other.id);
  });
}

const results: Result[] = [];
const failedControls: string[] = [];
let controls = 0;

async function judge(built: Built, mutant: NumberedMutant, index: number, plan: readonly Part[]): Promise<void> {
  const startMs = performance.now();
  if (plan.length === 0) {
    results.push({ mutant, verdict: "unreached", by: "", ms: 0 });
    return;
  }
  if (index % controlEvery === controlEvery - 1) {
    controls += 1;
    const control = await runPlan(built, 0, plan);
    if (control.verdict !== "passed")
      failedControls.push(`${mutant.file}:${mutant.line}: ${control.verdict}: ${control.message}`);
  }
  const { verdict, message } = await runPlan(built, mutant.id, plan);
  const ms = Math.round(performance.now() - startMs);
  results.push({
    mutant,
    verdict: verdict === "passed" ? "survived" : verdict === "failed" ? "killed" : "timeout",
    by: message,
    ms,
  });
  if (verdict === "passed") console.error(`survived: ${mutant.file}:${mutant.line}: ${mutant.from} → ${mutant.to}`);
  if (results.length % 50 === 0) console.error(`${results.length} of ${chosen.length}`);
}

mkdirSync(join(root, work), { recursive: true });
const startMs = performance.now();
const covered = await coverage();
const built = await buildTests(tests, mutants, join(work, "mutants"), (id) => `$m===${id}`);
const chosen = sampled(mutants.filter((mutant) => equivalentOf(mutant) === undefined));
const plans = new Map(chosen.map((mutant) => [mutant.id, planFor(mutant, covered)]));
await inJobs(chosen, async (mutant, index) => {
  const plan = plans.get(mutant.id);
  if (plan !== undefined) await judge(built, mutant, index, plan);
});

const summary = report(mutants, results, { seed, seconds: (performance.now() - startMs) / 1_000, controls, failedControls });
writeFileSync(join(root, work, "report.json"), `${JSON.stringify(summary, undefined, 2)}\n`);
printReport(summary);
console.log(`all results: ${join(work, "report.json")}`);
process.exit(failedControls.length === 0 ? 0 : 1);
