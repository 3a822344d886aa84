import { existsSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { Random } from "../fuzz/random.ts";
import { type Built, buildTests, type NumberedMutant, numberedMutants, root } from "./build.ts";
import { equivalentOf } from "./equivalents.ts";
import { coverageOf, type FileCoverage, type Run, runTests } from "./runs.ts";

/**
 * `npm run mutation -- --files FOLDER_OR_FILE,... [--sample MUTANTS_OF_EACH_FOLDER] [--seed S]`: changes the code in small ways, and runs the
 * tests of the room that reach each change. A change that no test notices is a behaviour that no test holds.
 *
 * All mutants are in one build (`$m === 17 ? mutated : original`), so that a mutant costs one process and no compile. The tests
 * that reach it run one after the other, the quickest first, up to the first failure.
 */
const { values } = parseArgs({
  options: {
    files: { type: "string", default: "src/wire,src/recovery,src/line,src/envelope,src/settle,src/operations" },
    seed: { type: "string", default: "1" },
    sample: { type: "string", default: "Infinity" },
  },
});

/** Processes at a time. */
const jobs = 2;

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
const work = join("out/mutation", String(process.pid));
/** Tests of the mutated rooms: what a room does should be held by its own tests, not only by those of the bundle. */
const tests = [...new Set(targets.map((file) => dirname(file).replace(/^src/, "")))]
  .flatMap((room) => [join("test", room), join("test/slow", room)])
  .filter((folder) => existsSync(join(root, folder)))
  .flatMap(filesIn)
  .filter((file) => file.endsWith(".test.ts") && !apart.includes(file));

async function inJobs<Item>(items: readonly Item[], work: (item: Item, index: number) => Promise<void>): Promise<void> {
  const waiting = items.entries();
  const worker = async () => {
    for (const [index, item] of waiting) await work(item, index);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

/** What each test reaches, by file. */
async function coverage(): Promise<ReadonlyMap<string, FileCoverage>> {
  const built = await buildTests(tests, mutants, join(work, "coverage"), (id) => `globalThis.$reached(${id})`);
  const found = new Map<string, FileCoverage>();
  console.log(`running ${tests.length} test files to see what they reach`);
  await inJobs(tests, async (file) => {
    const covered = await coverageOf(built, file);
    found.set(file, covered);
    for (const failed of covered.failed) console.log(`left out, since it fails as it is: ${file}: ${failed}`);
  });
  return found;
}

/** The tests of one file that reach a mutant, by their places. */
type Part = { readonly file: string; readonly tests: readonly number[]; readonly msMax: number };

/** The tests that reach a mutant, the quickest first, by files: some put a clock of their own in place of the process's. */
function planFor({ id, file }: NumberedMutant, covered: ReadonlyMap<string, FileCoverage>): readonly Part[] {
  const found = [...covered].flatMap(([name, { loading, tests }]) => {
    const isMirror = basename(name, ".test.ts") === basename(file, ".ts");
    const reaching = tests.filter(({ mutants }) => loading.includes(id) || mutants.includes(id));
    return reaching.map(({ index, ms }) => ({ name, index, ms, order: isMirror ? ms / 10 : ms }));
  });
  let sum = 0;
  const chosen = found
    .sort((one, other) => one.order - other.order)
    .filter(({ ms }) => {
      sum += ms;
      return sum <= plannedMsMax || sum === ms;
    });
  return [...new Set(chosen.map(({ name }) => name))].map((name) => {
    const its = chosen.filter((each) => each.name === name);
    return { file: name, tests: its.map(({ index }) => index), msMax: Math.max(...its.map(({ ms }) => ms)) };
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
  const folders = [...new Set(all.map(({ file }) => dirname(file)))];
  return folders.flatMap((folder) => {
    const random = new Random(Number(values.seed));
    const left = all.filter(({ file }) => dirname(file) === folder);
    const drawn: NumberedMutant[] = [];
    while (left.length > 0 && drawn.length < Number(values.sample)) drawn.push(...left.splice(random.below(left.length), 1));
    return drawn.sort((one, other) => one.id - other.id);
  });
}

/** A text in a line, as far as it is read. */
function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 90 ? `${line.slice(0, 89)}…` : line;
}

const counts = { killed: 0, "never ended": 0, survived: 0, "were reached by no test": 0 };
const failedControls: string[] = [];

async function judge(built: Built, { id, file, line, from, to }: NumberedMutant, index: number, plan: readonly Part[]) {
  if (index % controlEvery === controlEvery - 1) {
    const { verdict, message } = await runPlan(built, 0, plan);
    if (verdict !== "passed") failedControls.push(`${file}:${line}: ${verdict}: ${message}`);
  }
  const { verdict } = await runPlan(built, id, plan);
  const isReached = plan.length > 0;
  counts[
    verdict === "failed" ? "killed" : verdict === "timeout" ? "never ended" : isReached ? "survived" : "were reached by no test"
  ]++;
  if (verdict !== "passed") return;
  const change = to === "" ? `without ${oneLine(from)}` : `${oneLine(from)} → ${oneLine(to)}`;
  console.log(`${file}:${line}: ${change}${isReached ? "" : " (reached by no test)"}`);
}

try {
  const covered = await coverage();
  const built = await buildTests(tests, mutants, join(work, "mutants"), (id) => `$m===${id}`);
  const chosen = sampled(mutants.filter((mutant) => equivalentOf(mutant) === undefined));
  await inJobs(chosen, (mutant, index) => judge(built, mutant, index, planFor(mutant, covered)));
  const told = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
  console.log(`\nof ${mutants.length} mutants ${chosen.length} were tried: ${told.join(", ")}`);
  for (const failed of failedControls) console.log(`control failed: ${failed}`);
} finally {
  rmSync(join(root, work), { recursive: true, force: true });
}
process.exit(failedControls.length === 0 ? 0 : 1);
