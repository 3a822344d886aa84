// Runs the tests: `npm test` those that need Node alone, `npm run test:rest` the others, or those that are named:
// `npm test -- test/line/states.test.ts`, with node's own flags.
//
// The files are found here and not by a shell's pattern, which Windows' shell wouldn't know.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
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
 * under load. Every other folder is of `npm test`.
 */
const restOfTests = /^test\/(?:bench|campaign|e2e|package|page|slow|vm)\//;

function files(isRest) {
  const names = readdirSync(join(root, "test"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  const all = names.map((name) => posix(join("test", name))).sort();
  return all.filter((file) => restOfTests.test(file) === isRest);
}

/** Runs with node's own runner what was named. */
function runNamed() {
  const loaded = ["--import", "tsx", "--import", "./test/support/assert-ok.ts"];
  const named = args.some((each) => !each.startsWith("-")) ? [] : files(false);
  const { status } = spawnSync(process.execPath, [...loaded, "--test", "--test-reporter=spec", ...args, ...named], {
    cwd: root,
    stdio: "inherit",
  });
  return status ?? 1;
}

/** What came of the tests so far. */
class Tally {
  passed = 0;
  /** Each failed test whole. */
  failed = [];
  skipped = [];
  /** The test file that a process is at. */
  #at = new Map();
  /** What a process wrote: told if one of its tests fails. */
  #wrote = new Map();
  #latest = "";
  #beganMs = performance.now();

  /** Takes note of an event of node's runner. */
  take({ type, data }) {
    if (type === "test:stdout" || type === "test:stderr") {
      this.#wrote.set(data.file, (this.#wrote.get(data.file) ?? "") + data.message);
      return;
    }
    if (type === "test:start") {
      if (data.nesting === 0) this.#at.set(data.file, data.name);
      this.#latest = `${this.#fileOf(data)}: ${data.name}`;
    }
    if (type === "test:pass" && data.details.type !== "suite") {
      if (data.skip === undefined) this.passed++;
      else this.skipped.push(`${this.#fileOf(data)}: ${data.name}: ${data.skip}`);
    }
    // A file or a group fails with its tests, which are told.
    if (type === "test:fail" && data.details.error?.failureType !== "subtestsFailed") {
      const { error } = data.details;
      this.failed.push({ file: data.file, name: `${this.#fileOf(data)}: ${data.name}`, text: inspect(error?.cause ?? error) });
    }
  }

  #fileOf({ file, name }) {
    return this.#at.get(file) ?? relative(root, name);
  }

  get seconds() {
    return Math.round((performance.now() - this.#beganMs) / 1_000);
  }

  get line() {
    return `${this.seconds} s  ${this.passed} passed, ${this.failed.length} failed  ${this.#latest}`;
  }

  /** What is told at the end: each failure whole, and what the process wrote that it was in. */
  get report() {
    const failures = this.failed.map(({ name, text }) => `✖ ${name}\n${text.replace(/^/gm, "    ")}\n`);
    const wrote = [...new Set(this.failed.map(({ file }) => file))].map((file) => this.#wrote.get(file) ?? "");
    const skipped = this.skipped.map((each) => `﹣ skipped: ${each}`);
    const sum = `${this.passed} passed, ${this.failed.length} failed, ${this.skipped.length} skipped in ${this.seconds} s`;
    return [...failures, ...wrote, ...skipped, sum].filter((each) => each !== "").join("\n");
  }
}

async function runAll(isRest) {
  const tally = new Tally();
  const isShown = process.stdout.isTTY;
  const show = () => process.stdout.write(`\r\x1b[K${tally.line.slice(0, process.stdout.columns - 1)}`);
  const progress = isShown ? setInterval(show, 1_000) : undefined;
  const cores = availableParallelism();
  const programs = await buildTests(root, files(isRest), 2 * cores);
  // Much of what they do is to wait, and what runs the bundle has processes beside it.
  const concurrency = isRest ? Math.max(2, cores - 1) : cores + 1;
  for await (const event of run({ files: programs, concurrency })) tally.take(event);
  clearInterval(progress);
  if (isShown) process.stdout.write("\r\x1b[K");
  console.log(tally.report);
  return tally.failed.length === 0 && tally.passed > 0 ? 0 : 1;
}

const [only, ...more] = args;
process.exit(only === undefined || (only === "--rest" && more.length === 0) ? await runAll(only === "--rest") : runNamed());
