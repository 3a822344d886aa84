import assert from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "../../src/core/fault.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { recordMs } from "../../src/journal/recorder.ts";
import { type JournalOptions, type Operations, openOperations } from "../../src/operations/operations.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { gate } from "../support/promises.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { bytes, callOf, folder, routeTo, Told } from "./records.ts";
import { SimDisk, systemError } from "./sim-disk.ts";

/**
 * Tests src/operations/operations.ts, src/journal/recorder.ts.
 *
 * A journal on a disk that works, fails, hangs and comes back, with the clock in the test's hand.
 */

const time = virtualTime();

type Set = { readonly journal: Operations; readonly disk: SimDisk; readonly told: Told };

async function opened(settings: Partial<JournalOptions> = {}, disk = new SimDisk()): Promise<Set> {
  const told = new Told();
  const journal = await openOperations({ folder, bytes, onFailure: "relay", report: told, disk, ...settings });
  return { journal, disk, told };
}

const begin = (journal: Operations, key: string, path = "/sale") => journal.begin(callOf(key), routeTo(path));

/** Sends and ends one call. */
async function record(journal: Operations, key: string): Promise<void> {
  const entry = begin(journal, key);
  await entry.sent();
  await entry.ended({ outcome: "answered", status: "success", code: 0 });
}

/** What a promise came to, as a test reads it. */
function watch(promise: Promise<unknown>): { done: boolean; error: unknown } {
  const seen: { done: boolean; error: unknown } = { done: false, error: undefined };
  promise.then(
    () => {
      seen.done = true;
    },
    (error: unknown) => {
      seen.done = true;
      seen.error = error;
    },
  );
  return seen;
}

/** Keys of what a new process finds without an outcome. */
async function lostOn(disk: SimDisk): Promise<readonly (string | undefined)[]> {
  const { journal } = await opened({}, disk.afterCut([], true));
  return journal.unknown().map(({ key }) => key);
}

test("Journal.sent settles after the sync, and what comes while one runs shares the next", async () => {
  const { journal, disk } = await opened();
  const [syncs, writes] = [disk.syncs, disk.writes];
  const go = gate();
  disk.trouble = { until: go.passed };
  const first = watch(begin(journal, "A").sent());
  await time.settle();
  const others = ["B", "C", "D", "E"].map((key) => watch(begin(journal, key).sent()));
  await time.settle();
  assert.equal(first.done, false);
  disk.trouble = undefined;
  go.open();
  await time.settle();
  assert.ok(first.done && others.every(({ done }) => done));
  assert.deepEqual([disk.syncs - syncs, disk.writes - writes], [2, 2]);
  await journal.close();
});

test("Journal lists after a restart what has no outcome and what was reported as unknown, with its amount to the digit", async () => {
  const { journal, disk } = await opened();
  await record(journal, "DONE");
  const unknown = begin(journal, "UNKNOWN");
  await unknown.sent();
  await unknown.ended({ outcome: "unknown" });
  const call = { ...callOf("LOST", { body: '{"pay_id":"LOST", "amount":9007199254740993 }' }), requestId: "r-1" };
  await journal.begin(call, routeTo("/refund")).sent();
  assertMapped(journal.unknown(), ["UNKNOWN"], ({ key }) => key, "what is in flight isn't unknown");
  const { journal: next } = await opened({}, disk.afterCut([], true));
  const [told, lost, ...others] = next.unknown();
  assert.deepEqual([told?.key, told?.cause], ["UNKNOWN", "reported as unknown"]);
  assert.deepEqual(
    { ...lost, time: "" },
    {
      time: "",
      requestId: "r-1",
      service: "bank",
      route: "/refund",
      key: "LOST",
      amount: "9007199254740993",
      currency: undefined,
      cause: "no outcome recorded",
    },
  );
  assert.match(lost?.time ?? "", /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual(others, []);
});

for (const [code, said] of [
  ["ENOSPC", /the disk is full: free some space/],
  ["EIO", /write error of the disk \(EIO\): save its data and replace it/],
  ["EROFS", /is read-only, as it becomes when a disk fails/],
  ["EACCES", /no permission in .*sudo chown -R posline:posline/],
  ["ENOENT", /there is no folder .*sudo install -d -o posline/],
] as const) {
  test(`Journal on a disk with ${code} says so aloud, goes on or refuses as it is told, and recovers by itself`, async () => {
    for (const onFailure of ["relay", "refuse"] as const) {
      const { journal, disk, told } = await opened({ onFailure });
      assert.equal(journal.state, "ok");
      disk.trouble = { error: systemError(code) };
      const seen = watch(begin(journal, "A").sent());
      await time.settle();
      assert.ok(seen.done);
      if (onFailure === "relay") assert.equal(seen.error, undefined);
      else {
        assert.ok(seen.error instanceof Fault);
        assert.equal(seen.error.outcome, "not-sent");
        assert.match(seen.error.message, /^Cannot send \/sale: it can't be recorded in the journal \(.*\)\. Nothing was sent/);
      }
      assert.match(journal.state, said);
      assert.match(told.failures.join("\n"), said);
      await begin(journal, "B").ended({ outcome: "answered" });
      watch(begin(journal, "B").sent());
      await time.settle();
      assert.equal(told.failures.length, 1, "the same trouble is told once");
      disk.trouble = undefined;
      await record(journal, "C");
      assert.equal(journal.state, "ok");
      assert.equal(told.recoveries.length, 1);
      await journal.close();
    }
  });
}

test("Journal waits for a disk that hangs for recordMs, then not at all, and takes it back when it answers", async () => {
  for (const onFailure of ["relay", "refuse"] as const) {
    const { journal, disk, told } = await opened({ onFailure });
    const answer = gate();
    disk.trouble = { until: answer.passed };
    const entry = begin(journal, "A");
    const first = watch(entry.sent());
    await time.advance(recordMs / 2);
    const second = watch(begin(journal, "B").sent());
    await time.advance(recordMs / 2 - 1);
    assert.equal(first.done || second.done, false);
    await time.advance(2);
    assert.ok(first.done && second.done);
    assert.equal(first.error instanceof Fault, onFailure === "refuse");
    assert.match(journal.state, /no answer from the disk for 5000 ms/);
    const third = watch(begin(journal, "C").sent());
    const ended = watch(entry.ended({ outcome: "answered" }));
    await time.settle();
    assert.ok(third.done && ended.done, "nobody waits any more");
    assert.equal(told.failures.length, 1);
    disk.trouble = undefined;
    answer.open();
    await time.settle();
    assert.equal(journal.state, "ok");
    assert.equal(told.recoveries.length, 1);
    assert.deepEqual(await lostOn(disk), onFailure === "relay" ? ["B", "C"] : [], "and what waited was written");
    await journal.close();
  }
});

test("Journal.ended never rejects and is bounded, also when its call was refused while it was being recorded", async () => {
  const { journal, disk } = await opened({ onFailure: "refuse" });
  disk.trouble = { until: new Promise(() => {}) };
  const entry = begin(journal, "A");
  const sent = watch(entry.sent());
  const ended = watch(entry.ended({ outcome: "not-sent" }));
  await time.advance(recordMs + 1);
  assert.ok(sent.error instanceof Fault);
  assert.deepEqual(ended, { done: true, error: undefined });
  const closed = watch(journal.close());
  await time.advance(recordMs + 1);
  assert.ok(closed.done, "a disk that hangs doesn't hold up the end");
});

test("Journal.onUnknown is given each operation whose caller learns that its outcome is unknown, and no other", async () => {
  const given: string[] = [];
  const { journal } = await opened({
    onUnknown: ({ service, route, key, cause }) => given.push(`${service} ${route} ${key} ${cause}`),
  });
  for (const outcome of ["answered", "unknown", "not-sent"] as const) {
    const entry = begin(journal, outcome);
    await entry.sent();
    await entry.ended({ outcome });
  }
  assert.deepEqual(given, ["bank /sale unknown reported as unknown"]);
});

test("Journal masks a card number in what it keeps and tells", async () => {
  const { journal, disk } = await opened();
  const entry = begin(journal, "4111111111111111");
  await entry.sent();
  await entry.ended({ outcome: "unknown" });
  assert.equal(journal.unknown()[0]?.key, "411111******1111");
  assert.equal(disk.files.get(journalFile(folder))?.current.includes("4111111111111111"), false);
});
