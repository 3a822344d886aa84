import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseRecordings } from "../../src/capture/recording.ts";
import { replay } from "../../src/lab/replay/replay.ts";
import { shrunkFor } from "./batches.ts";
import { beginnings, search } from "./exhaustive.ts";
import { foundIn } from "./found.ts";
import { emptyTally, LineLife, type World, worldOf } from "./line-life.ts";
import { kind } from "./line-worlds.ts";
import { openEngine } from "./open-engine.ts";
import { isKept } from "./part.ts";
import { parts } from "./parts.ts";

/** A short run of each part, and that what breaks is found; `npm run campaign` is the long one. */

const seed = 20_261_122;

// The soak waits for two real ptys to be plugged, whose numbers other posline processes of the machine may hold locks of, and the
// settled operations have a test of their own (test/e2e/settled-campaign.test.ts).
for (const part of parts.filter(({ name }) => name !== "soak" && name !== "settled" && name !== "tcp")) {
  test(`the campaign's part ${part.name} keeps its bounds in a short run`, async () => {
    const rows = await part.run({ minutes: 1, seed, short: true });
    assert.ok(rows.length > 0);
    assert.deepEqual(
      rows.filter((row) => !isKept(row)),
      [],
    );
  });
}

test("LineLife finds a wrong answer where a terminal repeats itself after a pause, as a small schedule and a recording", async () => {
  // Nobody can detect that, so a world that says it stays within what can be detected breaks.
  const live = (world: World) => new LineLife(world, emptyTally()).run();
  // How small it becomes, and how soon, differs by the seed: shrinking takes the first way down that it finds.
  let world: World | undefined;
  for (let each = 1; each <= 8 && (world === undefined || world.steps.length > 8); each++) {
    const property = fc.asyncProperty(worldOf(["twice"], false), shrunkFor(10_000, live));
    const { counterexample } = await fc.check(property, { seed: each, numRuns: 2_000 });
    assert.ok(counterexample);
    [world] = counterexample;
  }
  assert.ok(world !== undefined && world.steps.length <= 8, `${world?.steps.length} steps`);
  const { message, timeline, recording } = await foundIn(kind, world);
  assert.match(message, /^[A-D]\d+ was answered /);
  assert.ok(timeline.some((line) => line.endsWith("bytes") && line.includes("its copy")));
  let steps = 0;
  for (const each of parseRecordings(recording)) {
    for (const { difference } of replay(each)) {
      assert.equal(difference, undefined);
      steps++;
    }
  }
  assert.ok(steps > 5);
});

test("shrunkFor() ends with the first world that broke, where there is no time to make it smaller", async () => {
  const live = (size: number) => assert.ok(size < 1_000);
  const options = { seed, numRuns: 1_000 };
  const smallest = await fc.check(fc.asyncProperty(fc.nat(), shrunkFor(60_000, live)), options);
  const first = await fc.check(fc.asyncProperty(fc.nat(), shrunkFor(0, live)), options);
  assert.deepEqual([smallest.counterexample, first.numShrinks], [[1_000], 0]);
  assert.ok((first.counterexample?.[0] ?? 0) > 1_000);
});

test("search() finds a shortest sequence that breaks an engine which doesn't wait for a record", async () => {
  const open = await openEngine((source) => source.replace("if (!exchange.isToRecord)", "if (now > 0)"));
  const clean = beginnings.at(-1);
  assert.ok(clean);
  const { broken } = search(clean, open, performance.now() + 60_000);
  assert.equal(broken, "call 0 was written and not recorded: call 0 (at)");
});
