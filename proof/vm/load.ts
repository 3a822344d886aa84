import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Box } from "./box.ts";

/** Tills that ask all the time, inside the box, and what became of what they asked. */

/** What the tills tell in the end. */
export interface Load {
  readonly calls: number;
  readonly slowestMs: number;
  /** Counts by HTTP status and outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Counts by the reason that a 503 gave. */
  readonly refusals: Readonly<Record<string, number>>;
  /** Counts by how a connection failed. */
  readonly errors: Readonly<Record<string, number>>;
  /** Each sale's key, and how it ended. */
  readonly sales: readonly (readonly [string, string])[];
}

/** All that is done to the service under load may take this long where nothing but emulation is at hand, and that is busy. */
const loadMsMax = 3_600_000;

/** Lets tills ask while something is done to the service. */
export async function underLoad(box: Box, prefix: string, act: () => Promise<void>): Promise<Load> {
  await box.guest.put(join(import.meta.dirname, "load.mjs"), "/root/load.mjs");
  const load = await box.guest.start(`exec node /root/load.mjs 4 ${prefix} 2>/root/load.err`, loadMsMax);
  // They are under way.
  await soldMore(box, `${prefix}-`, 4);
  await act();
  await box.guest.sh(`kill -TERM ${load.pid}`);
  const { code, out } = await load.ended;
  if (code !== 0) throw new Error(`the tills failed: ${await box.guest.sh("cat /root/load.err")}`);
  // The shape that load.mjs writes.
  return JSON.parse(out) as Load;
}

const soldMs = 120_000;

/** Waits until the terminal was asked for so many more sales. */
export async function soldMore(box: Box, prefix: string, sales: number): Promise<void> {
  const until = performance.now() + soldMs;
  const wanted = box.terminal.count("/sale", prefix) + sales;
  while (box.terminal.count("/sale", prefix) < wanted) {
    if (performance.now() > until)
      throw new Error(`Cannot go on: the terminal wasn't asked for ${sales} more sales in ${soldMs} ms`);
    await sleep(100);
  }
}

/** No connection was refused or lost, and what each till was told of each sale is what the terminal saw of it. */
export function assertNothingLost(box: Box, { calls, outcomes, errors, sales }: Load): void {
  // Money first: what fails here is what is told.
  for (const [key, ended] of sales) {
    const seen = box.terminal.count("/sale", `"${key}"`);
    assert.equal(
      seen,
      ended === "200 answered" ? 1 : 0,
      `the till was told ${ended} of sale ${key}, which the terminal saw ${seen} times`,
    );
  }
  assert.deepEqual(errors, {}, `of ${calls} calls, ${JSON.stringify(outcomes)}`);
  const allowed = ["200 answered", "503 not-sent"];
  assert.deepEqual(
    Object.keys(outcomes).filter((outcome) => !allowed.includes(outcome)),
    [],
    `outcomes that a restart must not make: ${JSON.stringify(outcomes)}`,
  );
}
