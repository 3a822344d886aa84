import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Built } from "./build.ts";
import type { Reached } from "./child.ts";

export interface Run {
  readonly verdict: "passed" | "failed" | "timeout";
  /** What failed. */
  readonly message: string;
  readonly lines: readonly (readonly [word: string, value: unknown])[];
}

/** Heap of one run, in MB: a mutant that grows without end fails soon, and doesn't take the machine along. */
const heapMb = 512;
/** Added to each test's time limit, in ms: a process starts, and another may have the processor. */
const graceMs = 4_000;
const limitFactor = 4;

/**
 * Runs tests of one file in a process of their own, ended with all that it started.
 * @param tests By their places in it; undefined for all, with the mutants that each reaches.
 * @param limitMs the time that a test may take, without a word from it
 */
export function runTests(built: Built, mutant: number, file: string, tests: readonly number[] | undefined, limitMs: number) {
  const order = { mutant, build: built.bundles.get(file), ...(tests && { tests }) };
  // It is ended in the midst of its tests, which then remove nothing.
  const scratch = mkdtempSync(join(tmpdir(), "posline-mutant-"));
  return new Promise<Run>((resolve) => {
    const child = spawn(
      process.execPath,
      [`--max-old-space-size=${heapMb}`, "--test-reporter=tap", "--test-reporter-destination=/dev/null", built.child],
      {
        env: { ...process.env, TMPDIR: scratch, MUTATION_ORDER: JSON.stringify(order), NODE_TEST_CONTEXT: undefined },
        stdio: ["ignore", "ignore", "ignore", "pipe"],
        detached: true,
      },
    );
    let text = "";
    let timedOut = false;
    const end = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    };
    const expire = () => {
      timedOut = true;
      end();
    };
    let timer = setTimeout(expire, limitMs * limitFactor + graceMs);
    // Descriptor 3 is a pipe, by `stdio` above.
    const reports = child.stdio[3] as Readable;
    reports.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      clearTimeout(timer);
      timer = setTimeout(expire, limitMs * limitFactor + graceMs);
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      end();
      rmSync(scratch, { recursive: true, force: true });
      const lines = text.split("\n").flatMap((line) => {
        const at = line.indexOf(" ");
        return at < 0 ? [] : [[line.slice(0, at), JSON.parse(line.slice(at + 1))] as const];
      });
      const failed = lines.find(([word]) => word === "failed")?.[1];
      const message = failed === undefined ? `exit code ${code}` : JSON.stringify(failed);
      resolve({ verdict: timedOut ? "timeout" : code === 0 && failed === undefined ? "passed" : "failed", message, lines });
    });
  });
}

/** What one test file's tests reach. */
export interface FileCoverage {
  /** Mutants that run while the file is imported: any of its tests may notice them. */
  readonly loading: readonly number[];
  readonly tests: readonly Reached[];
  /** Tests that fail on the code as it is, or can't be run here: they judge no mutant. */
  readonly failed: readonly string[];
}

/** Runs a test file on the code as it is. */
export async function coverageOf(built: Built, file: string): Promise<FileCoverage> {
  const { lines, verdict, message } = await runTests(built, 0, file, undefined, 10_000);
  const of = (word: string) => lines.filter(([each]) => each === word).map(([, value]) => value);
  const failed = of("failed").map((value) => JSON.stringify(value));
  if (verdict !== "passed" && failed.length === 0) failed.push(message);
  return {
    // What child.ts writes.
    loading: (of("loading")[0] ?? []) as readonly number[],
    tests: of("passed") as readonly Reached[],
    failed,
  };
}
