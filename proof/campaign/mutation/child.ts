import { writeSync } from "node:fs";
import { after, test } from "node:test";
import { configureGlobal } from "fast-check";
import { registered } from "./registry.ts";

/**
 * Runs tests with one mutant in force, in a process of its own: what a mutant leaves behind can't reach the next. It writes to
 * descriptor 3 which test begins, and which failed.
 */
interface Order {
  /** 0 runs the code as it is. */
  readonly mutant: number;
  /** The test file's build. */
  readonly build: string;
  /** The tests to run, in this order, by their places in it; undefined for all, with the mutants that each reaches. */
  readonly tests?: readonly number[];
}

export interface Reached {
  readonly index: number;
  readonly ms: number;
  readonly mutants: readonly number[];
}

const report = (word: string, value: unknown) => writeSync(3, `${word} ${JSON.stringify(value)}\n`);
// What a mutated process is given comes from the runner alone.
const order = JSON.parse(process.env["MUTATION_ORDER"] ?? "{}") as Order;

const whileLoading = new Set<number>();
let hit = whileLoading;
Object.assign(globalThis, {
  $mutant: order.mutant,
  $reached: (id: number) => {
    hit.add(id);
    return false;
  },
});
// A failing property's smaller counterexample would only cost time.
configureGlobal({ endOnFailure: true });

await import(order.build);
const all = registered.map((each, index) => ({ ...each, index }));
const chosen = order.tests?.flatMap((index) => all[index] ?? []) ?? all;
if (order.tests === undefined) report("loading", [...whileLoading]);

// A journal that a test leaves without a disk tries again in 5 s: the process would wait for that, and be taken for one that hangs.
if (order.tests !== undefined) after(() => process.exit());

for (const { index, name, options, run } of chosen) {
  test(name, options, async (context) => {
    report("begin", index);
    hit = new Set();
    // Tests put a clock of their own in place of `performance.now`.
    const start = process.hrtime.bigint();
    try {
      await run(context);
    } catch (error) {
      report("failed", { name, message: String(error).slice(0, 300) });
      if (order.tests !== undefined) process.exit(1);
      throw error;
    }
    const ms = Math.ceil(Number(process.hrtime.bigint() - start) / 1e6);
    if (order.tests === undefined) report("passed", { index, ms, mutants: [...hit] } satisfies Reached);
  });
}
