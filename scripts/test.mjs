// Runs the tests: `npm test` those that need Node alone, `npm run test:rest` the others, or those that are named:
// `npm test -- test/line/states.test.ts`, with node's own flags.
//
// The files are found here and not by a shell's pattern, which Windows' shell wouldn't know.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative } from "node:path";
import { run } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { buildTests, posix } from "./test-build.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const args = process.argv.slice(2);
/**
 * The folders of `npm run test:rest`: they wait in real time, run other programs and languages, browsers, packages, and the bundle
 * under load, or test what looks at the product from outside. Every other folder is of `npm test`.
 */
const restOfTests = /^(?:proof|test\/(?:e2e|package|page|slow))\//;

/** Those that take longest begin first, in this order: begun last, they would be waited for alone. Every other one mostly waits. */
const longest = [
  "proof/campaign/campaign.test.ts",
  "test/e2e/certify.test.ts",
  "test/e2e/tills.test.ts",
  "test/slow/setup/setup.test.ts",
  "test/e2e/rehearse.test.ts",
  "test/slow/lab/certify/certification.test.ts",
  "test/package/repository.test.ts",
  "test/e2e/recovery.test.ts",
  "test/package/deb.test.ts",
  "test/e2e/tcp-line.test.ts",
  "test/page/page.test.ts",
  "test/slow/line/exchange-tcp.test.ts",
  "test/e2e/call.test.ts",
  "test/e2e/hostile-replies.test.ts",
  "test/package/npm.test.ts",
  "test/package/release.test.ts",
  "test/e2e/receipts.test.ts",
  "test/e2e/settled-campaign.test.ts",
  "test/exhaustive/judge.test.ts",
];
const placeOf = (file) => (longest.includes(file) ? longest.indexOf(file) : longest.length);

function files(isRest) {
  const all = ["proof", "test"].flatMap((folder) => {
    if (!existsSync(join(root, folder))) return [];
    const names = readdirSync(join(root, folder), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
    return names.map((name) => posix(join(folder, name))).sort();
  });
  all.sort((one, other) => placeOf(one) - placeOf(other));
  return all.filter((file) => restOfTests.test(file) === isRest);
}

/**
 * How many milliseconds a file may take, and those that share a process together: many times what they take on a busy machine.
 * POSLINE_TEST_LIMIT_MS sets another limit, for a campaign of hours.
 */
const limitMs = Number(process.env.POSLINE_TEST_LIMIT_MS ?? (args.length === 0 ? 300_000 : 900_000));

/** Runs with node's own runner what was named. */
function runNamed() {
  const loaded = ["--import", "tsx", "--import", "./test/support/assert-ok.ts"];
  const named = args.some((each) => !each.startsWith("-")) ? [] : files(false);
  const { status } = spawnSync(
    process.execPath,
    [...loaded, "--test", "--test-reporter=spec", `--test-timeout=${limitMs}`, ...args, ...named],
    {
      cwd: root,
      stdio: "inherit",
    },
  );
  return status ?? 1;
}

/** What came of the tests so far. */
class Tally {
  passed = 0;
  /** Each failed test, with its file's program, and all that is said of it. */
  failed = [];
  skipped = [];
  /** The program of each bundle, and what it wrote: told if one of its tests fails. */
  #programs = new Map();
  #wrote = new Map();
  #sources = new Map();
  /** The files of each program, in their order. */
  #files = new Map();
  /** The files that have not come to their end. */
  #waiting;
  /** Processes that have ended, and failed: node tells of their tests in order, and late. */
  #ended = 0;
  #broken = 0;
  #count;
  /** Milliseconds that each process took. */
  #took = [];
  /** The time limits of the programs that run, and the programs that were killed by theirs. */
  #limits = new Map();
  #killed = new Set();
  #beganMs = performance.now();

  constructor(programs) {
    for (const { path, files } of programs) {
      this.#files.set(path, [...files.values()]);
      for (const [bundle, source] of [...files, [path, relative(root, path)]]) {
        this.#programs.set(bundle, path);
        this.#sources.set(bundle, source);
      }
    }
    this.#count = programs.length;
    this.#waiting = new Set(programs.flatMap(({ files }) => [...files.values()]));
  }

  /** Takes note of an event of node's runner. */
  take({ type, data }) {
    const { file, name, nesting, details } = data;
    if (type === "test:stdout" || type === "test:stderr") {
      this.#wrote.set(file, (this.#wrote.get(file) ?? "") + data.message);
    } else if (type === "test:dequeue" && this.#files.has(name)) {
      this.#limits.set(name, setTimeout(() => this.#kill(name), limitMs).unref());
    } else if (type === "test:complete" && this.#files.has(name)) {
      clearTimeout(this.#limits.get(name));
      this.#ended++;
      this.#took.push({ files: this.#files.get(name), ms: details.duration_ms });
      if (!details.passed) this.#broken++;
    } else if (type === "test:pass" || type === "test:fail") {
      if (nesting === 0) this.#waiting.delete(name);
      if (type === "test:fail") this.#fail(data);
      else if (data.skip !== undefined) this.skipped.push(`${this.#nameOf(data)}: ${data.skip}`);
      else if (details.type !== "suite") this.passed++;
    }
  }

  #fail(data) {
    const { error } = data.details;
    if (this.#killed.has(data.name)) return this.#failKilled(data.name);
    // A file fails with its tests, which are told.
    if (error.failureType === "subtestsFailed") return;
    this.failed.push({ program: this.#programs.get(data.file), name: this.#nameOf(data), text: inspect(error.cause ?? error) });
  }

  /** Ends a program whose time is over. Node's own limit, from 24 on, is one for each test, and leaves the process alone. */
  #kill(program) {
    this.#killed.add(program);
    process.kill(Number(readFileSync(`${program}.pid`, "utf8")), "SIGKILL");
  }

  /** Notes as failed the file at which a program was when its time was over: the first that hasn't ended, or those that it can be. */
  #failKilled(program) {
    const files = this.#files.get(program);
    const at = files.find((file) => this.#waiting.delete(file));
    const what = at === undefined ? "its tests had ended, and something kept its process" : "its tests did not end";
    this.failed.push({ program, name: at ?? files.join(", "), text: `Killed after ${limitMs / 1_000} s: ${what}` });
  }

  /** Notes as failed what never came to its end, since its process ended before. */
  end() {
    for (const name of this.#waiting) this.failed.push({ name, text: "Its process ended before its tests did" });
  }

  #nameOf({ file, name }) {
    const source = this.#sources.get(file);
    return source === undefined || source === name ? name : `${source}: ${name}`;
  }

  get #seconds() {
    return Math.round((performance.now() - this.#beganMs) / 1_000);
  }

  get progress() {
    const failed = this.#broken === 0 ? "" : `, ${this.#broken} failed`;
    return `${this.#seconds} s: ${this.#ended} of ${this.#count} processes of tests have ended${failed}`;
  }

  /** What is told at the end: each failure whole, and what the process wrote that it was in. */
  get report() {
    const failures = this.failed.map(({ name, text }) => `✖ ${name}\n${text.replace(/^/gm, "    ")}\n`);
    const wrote = [...new Set(this.failed.map(({ program }) => program))].flatMap((program) => this.#wrote.get(program) ?? []);
    const skipped = this.skipped.map((each) => `﹣ skipped: ${each}`);
    const sum = `${this.passed} passed, ${this.failed.length} failed, ${this.skipped.length} skipped in ${this.#seconds} s`;
    const longest = this.#took.toSorted((one, other) => other.ms - one.ms).slice(0, 8);
    const took = longest.map(({ files, ms }) => `${Math.round(ms / 1_000)} s ${files[0]}${files.length > 1 ? " ..." : ""}`);
    // Of a run that somebody waits for.
    const told = this.#seconds < 60 ? [] : [`longest: ${took.join(", ")}`];
    return [...failures, ...wrote, ...skipped, ...told, sum].join("\n");
  }
}

async function runAll(isRest) {
  const cores = availableParallelism();
  const programs = await buildTests(root, files(isRest), 2 * cores);
  const tally = new Tally(programs);
  const isShown = process.stdout.isTTY;
  const show = () => process.stdout.write(`\r\x1b[K${tally.progress.slice(0, (process.stdout.columns || 80) - 1)}`);
  const progress = isShown ? setInterval(show, 1_000) : undefined;
  // Much of what they do is to wait, and most of the rest.
  const concurrency = cores + (isRest ? 3 : 1);
  for await (const event of run({ files: programs.map(({ path }) => path), concurrency })) tally.take(event);
  tally.end();
  clearInterval(progress);
  if (isShown) process.stdout.write("\r\x1b[K");
  console.log(tally.report);
  return tally.failed.length === 0 && tally.passed > 0 ? 0 : 1;
}

const [only, ...more] = args;
process.exit(only === undefined || (only === "--rest" && more.length === 0) ? await runAll(only === "--rest") : runNamed());
