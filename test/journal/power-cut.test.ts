import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Outcome } from "../../src/core/fault.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { scanRing } from "../../src/journal/reader.ts";
import { type JournalOperation, joinOperations } from "../../src/journal/record.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { Operations, openOperations } from "../../src/operations/operations.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { bytes, callOf, folder, outcomes, routeTo, Told } from "./records.ts";
import { type Fate, SimDisk } from "./sim-disk.ts";

/**
 * Tests src/journal/ring.ts, src/journal/recorder.ts.
 *
 * * src/journal/recorder.ts and ring.ts: the power goes at any moment. What was not synced by then is there afterwards, or not,
 * or torn at any byte, each slot on its own. Whatever was acknowledged must be there, and nothing may be there that was never
 * written.
 */

const time = virtualTime();

/** One call: how it ends, whether its caller leaves before it was recorded, and how long after the one before it comes. */
type Step = { readonly outcome: Outcome; readonly hasty: boolean; readonly pauses: number };

const step: fc.Arbitrary<Step> = fc.record({
  outcome: fc.constantFrom(...outcomes),
  hasty: fc.boolean(),
  pauses: fc.nat({ max: 3 }),
});
const fate: fc.Arbitrary<Fate> = fc.record({
  keeps: fc.constantFrom("all" as const, "none" as const, "start" as const, "end" as const),
  bytes: fc.nat({ max: slotBytes }),
});

/** What was acknowledged of a call before the power went. */
type Acknowledged = { sent: boolean; outcome: Outcome | undefined };

/** Runs calls until the power goes. */
async function runCalls(
  journal: Operations,
  steps: readonly Step[],
  known: Map<string, Acknowledged>,
  life: number,
): Promise<void> {
  for (const [index, { outcome, hasty, pauses }] of steps.entries()) {
    const key = `${life}-${index}`;
    const note: Acknowledged = { sent: false, outcome: undefined };
    known.set(key, note);
    const entry = journal.begin(callOf(key), routeTo());
    const sent = entry.sent().then(() => {
      note.sent = true;
    });
    void (hasty ? Promise.resolve() : sent)
      .then(() => entry.ended({ outcome }))
      .then(() => {
        note.outcome = outcome;
      });
    for (let n = 0; n < pauses; n++) await time.settle();
  }
  await time.settle();
}

async function operationsOn(disk: SimDisk): Promise<readonly JournalOperation[]> {
  const file = disk.files.get(journalFile(folder));
  if (file === undefined) return [];
  const { records } = await scanRing(await disk.open(journalFile(folder)), 0, file.current.length / slotBytes);
  return joinOperations(records);
}

function check(
  operations: readonly JournalOperation[],
  known: ReadonlyMap<string, Acknowledged>,
  asked: (key: string) => Outcome,
) {
  for (const { sent, ending } of operations) {
    const key = sent.key ?? "";
    assert.ok(known.has(key), `${key} is there, and nobody wrote it`);
    assert.deepEqual([sent.service, sent.route, sent.amount, sent.requestId], ["bank", "/sale", "100", `r-${key}`]);
    if (ending !== undefined) assert.equal(ending.outcome, asked(key), `the outcome of ${key}`);
  }
  const found = new Map(operations.map((operation) => [operation.sent.key, operation]));
  for (const [key, { sent, outcome }] of known) {
    if (sent) assert.ok(found.has(key), `${key} was acknowledged and is lost`);
    if (outcome !== undefined) assert.equal(found.get(key)?.ending?.outcome, outcome, `the outcome of ${key} was acknowledged`);
  }
}

test("Journal keeps all that it acknowledged and invents nothing, through power cuts at any moment", async () => {
  const life = fc.record({
    steps: fc.array(step, { maxLength: 12 }),
    fuse: fc.nat({ max: 120 }),
    fates: fc.array(fate, { minLength: 1, maxLength: 12 }),
    renamesKept: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      let disk = new SimDisk();
      const known = new Map<string, Acknowledged>();
      const asked = (key: string) => {
        const [at, index] = key.split("-").map(Number);
        return lives[at ?? 0]?.steps[index ?? 0]?.outcome ?? "answered";
      };
      for (const [index, { steps, fuse, fates, renamesKept }] of lives.entries()) {
        disk.fuse = fuse;
        const told = new Told();
        const journal = new Operations({ folder, bytes, onFailure: "relay", report: told, disk });
        const started = journal.start();
        await time.settle();
        await runCalls(journal, steps, known, index);
        // Neither the start nor a call may have met anything but success or a dead disk.
        assert.deepEqual(told.failures, []);
        disk = disk.afterCut(fates, renamesKept);
        void started;
        check(await operationsOn(disk), known, asked);
      }
      // And the last disk can be used: every lost call is told.
      const told = new Told();
      const journal = await openOperations({ folder, bytes, onFailure: "refuse", report: told, disk });
      assert.equal(journal.state, "ok");
      const open = (await operationsOn(disk)).filter(({ ending }) => ending === undefined);
      assert.ok(open.every(({ lost }) => lost));
      const lost = journal.unknown().filter(({ cause }) => cause === "no outcome recorded");
      assert.deepEqual(lost.map(({ key }) => key).sort(), open.map(({ sent }) => sent.key).sort());
      await journal.close();
    }),
    { numRuns: 300 },
  );
});

test("Journal keeps the newest records when it goes round, and when its size changes, through power cuts", async () => {
  const sizes = [64 * 1024, 96 * 1024, 160 * 1024];
  const life = fc.record({
    size: fc.constantFrom(...sizes),
    calls: fc.integer({ min: 0, max: 150 }),
    fuse: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.nat({ max: 200 })),
    fates: fc.array(fate, { minLength: 1, maxLength: 5 }),
    renamesKept: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 2, maxLength: 4 }), async (lives) => {
      let disk = new SimDisk();
      /** Keys in the order of their acknowledged outcomes. */
      const done: string[] = [];
      let smallest = Number.POSITIVE_INFINITY;
      for (const [index, { size, calls, fuse, fates, renamesKept }] of lives.entries()) {
        disk.fuse = fuse;
        const journal = new Operations({ folder, bytes: size, onFailure: "relay", report: new Told(), disk });
        void journal.start();
        await time.settle();
        let dead = false;
        for (let n = 0; n < calls && !dead; n++) {
          const key = `${index}-${n}`;
          const entry = journal.begin(callOf(key), routeTo());
          dead = true;
          void entry
            .sent()
            .then(() => entry.ended({ outcome: "answered" }))
            .then(() => {
              done.push(key);
              dead = false;
            });
          await time.settle();
        }
        smallest = Math.min(smallest, size);
        disk = disk.afterCut(fates, renamesKept);
        const operations = await operationsOn(disk);
        const found = new Map(operations.map(({ sent, ending }) => [sent.key, ending?.outcome]));
        // A start, and what the cut left unfinished, take places too.
        const kept = Math.min(done.length, smallest / slotBytes / 2 - 2 * lives.length - 2);
        for (const key of done.slice(done.length - kept)) assert.equal(found.get(key), "answered", key);
      }
    }),
    { numRuns: 40 },
  );
});
