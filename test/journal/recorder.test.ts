import assert from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "../../src/core/fault.ts";
import { JournalError, journalFile } from "../../src/journal/errors.ts";
import { joinOperations } from "../../src/journal/record.ts";
import { Recorder, recordMs } from "../../src/journal/recorder.ts";
import { readRing } from "../../src/journal/ring.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { retryMs, sequenceOf } from "../../src/journal/write-queue.ts";
import { type JournalOptions, type Operations, openOperations } from "../../src/operations/operations.ts";
import { isRecorded as isKept } from "../../src/operations/sending.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { gate, watched } from "../support/promises.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { bytes, callOf, folder, lastSent, routeTo, Told } from "./records.ts";
import { SimDisk, systemError } from "./sim-disk.ts";

/** A journal whose disk fails for long: that it is retried unasked, and what the write queue keeps meanwhile. */

const time = virtualTime();

const manyBytes = 8 * 1024 * 1024;

async function opened(settings: Partial<JournalOptions> = {}, disk = new SimDisk()) {
  const told = new Told();
  const journal = await openOperations({ folder, bytes, onFailure: "refuse", report: told, disk, ...settings });
  return { journal, disk, told };
}

const begin = (journal: Operations, key: string) => journal.begin(callOf(key), routeTo());

/** A call that is refused for its journal, as `lineCaller` has it. */
async function refused(journal: Operations, key: string): Promise<void> {
  const entry = begin(journal, key);
  await assert.rejects(entry.sent(), Fault);
  void entry.ended({ outcome: "not-sent" });
  await time.settle();
}

test("Journal that failed tries again by itself, after 5 s and then more seldom, and no sale is needed for it", async () => {
  for (const onFailure of ["refuse", "relay"] as const) {
    const { journal, disk, told } = await opened({ onFailure });
    const { lock } = disk;
    let tries: number[] = [];
    let sinceMs = time.nowMs;
    disk.lock = () => {
      tries.push(time.nowMs - sinceMs);
      return lock();
    };
    disk.trouble = { error: systemError("EIO") };
    await begin(journal, "A")
      .sent()
      .catch(() => {});
    await time.settle();
    assert.notEqual(journal.state, "ok");
    tries = [];
    await time.advance(200_000);
    assert.deepEqual(tries, [5_000, 15_000, 35_000, 75_000, 135_000, 195_000]);
    assert.equal(told.failures.length, 1);
    disk.trouble = undefined;
    await time.advance(retryMs.max);
    assert.equal(journal.state, "ok");
    assert.equal(told.recoveries.length, 1);
    tries = [];
    await time.advance(3_600_000);
    assert.deepEqual(tries, [], "nothing is tried when all is well");
    disk.trouble = { error: systemError("EIO") };
    await begin(journal, "B")
      .sent()
      .catch(() => {});
    [tries, sinceMs] = [[], time.nowMs];
    await time.advance(5_000);
    assert.deepEqual(tries, [5_000], "the next failure begins anew");
    await journal.close();
  }
});

test("Journal under refuse records how a refused call ended whose sending may be on the disk already", async () => {
  const { journal: before, disk } = await opened();
  await before.close();
  const { open } = disk;
  let isFailing = false;
  disk.open = async (path) => {
    const file = await open(path);
    return { ...file, sync: () => (isFailing ? Promise.reject(systemError("EIO")) : file.sync()) };
  };
  const { journal } = await opened({}, disk);
  isFailing = true;
  const entry = begin(journal, "A");
  await assert.rejects(entry.sent(), Fault);
  const unknownAfter = async () => (await opened({}, disk.afterCut([{ keeps: "all", bytes: 0 }], true))).journal.unknown();
  assert.equal((await unknownAfter()).length, 1, "its record may be there");
  void entry.ended({ outcome: "not-sent" });
  isFailing = false;
  await time.advance(retryMs.max);
  assert.equal(journal.state, "ok");
  assert.deepEqual(await unknownAfter(), []);
  await journal.close();
});

test("Journal keeps 2,048 records while its disk fails, and says how many of more are lost", async () => {
  for (const [sales, lost] of [
    [2_048, ""],
    [2_049, ", and 1 record was lost in the meantime"],
  ] as const) {
    const { journal, disk, told } = await opened({ onFailure: "relay" });
    disk.trouble = { error: systemError("EIO") };
    for (let n = 0; n < sales; n++) await begin(journal, `S${n}`).sent();
    disk.trouble = undefined;
    await time.advance(retryMs.max);
    assert.deepEqual(told.recoveries, [`the journal in ${folder} is written again${lost}`]);
    disk.trouble = { error: systemError("EIO") };
    await begin(journal, "A").sent();
    disk.trouble = undefined;
    await time.advance(retryMs.max);
    assert.equal(told.recoveries[1], `the journal in ${folder} is written again`, "it counts anew");
    await journal.close();
  }
});

test("Journal says what it found of its file once, however often it opens that again", async () => {
  const { journal: before, disk } = await opened();
  for (const key of ["A", "B", "C"]) await begin(before, key).sent();
  await before.close();
  disk.files.get(journalFile(folder))?.current.fill(0x55, 2 * slotBytes, 2 * slotBytes + 9);
  const { journal, told } = await opened({}, disk);
  const notices = [...told.notices];
  assert.match(notices.join("\n"), /1 record in .* can't be read/);
  disk.trouble = { error: systemError("EIO") };
  await refused(journal, "D");
  disk.trouble = undefined;
  await begin(journal, "E").sent();
  assert.deepEqual([journal.state, told.notices, told.finds.length], ["ok", notices, 1]);
  await journal.close();
});

test("Journal on a disk that takes nothing knows what stands there, once, unless another process writes it", async () => {
  const { journal: before, disk } = await opened();
  await begin(before, "LOST").sent();
  await before.close();
  let closed = 0;
  const { open } = disk;
  disk.openToRead = async (path) => {
    const file = await open(path);
    return {
      ...file,
      close: async () => {
        closed++;
      },
    };
  };
  disk.isReadOnly = true;
  const { journal, told } = await opened({}, disk);
  const keys = () => journal.unknown().map(({ key }) => key);
  assert.match(journal.state, /is read-only/);
  assert.deepEqual([journal.isReadable, keys(), closed], [true, ["LOST"], 1]);
  assert.ok(lastSent(journal, "LOST"));
  disk.isReadOnly = false;
  await time.advance(retryMs.max);
  assert.deepEqual([journal.state, keys(), told.finds.length, journal.isWhole], ["ok", ["LOST"], 1, true]);
  await journal.close();

  disk.lock = () => Promise.reject(new JournalError("another process is using the journal"));
  const { journal: second } = await opened({}, disk);
  assert.deepEqual([second.state, second.isReadable], ["another process is using the journal", false]);
  await second.close();

  const foreign = new SimDisk();
  foreign.put(journalFile(folder), Buffer.from("my diary\n".repeat(1_000)));
  foreign.isReadOnly = true;
  const { journal: none } = await opened({}, foreign);
  assert.equal(none.isReadable, false);
  await none.close();
});

test("Journal proves by a write that its disk works, and not by opening it", async () => {
  const { journal, disk, told } = await opened();
  const { open } = disk;
  disk.open = async (path) => {
    const file = await open(path);
    return { ...file, write: () => Promise.reject(systemError("EIO")) };
  };
  disk.trouble = { error: systemError("EIO") };
  await refused(journal, "A");
  disk.trouble = undefined;
  await time.advance(600_000);
  assert.match(journal.state, /EIO/);
  assert.deepEqual(told.recoveries, []);
  disk.open = open;
  await time.advance(retryMs.max);
  assert.equal(journal.state, "ok");
  await journal.close();
});

test("Journal.close() writes what a failed disk left waiting, once more", async () => {
  const { journal, disk } = await opened({ onFailure: "relay" });
  disk.trouble = { error: systemError("EIO") };
  await begin(journal, "A").sent();
  await time.settle();
  disk.trouble = undefined;
  await journal.close();
  assert.equal(disk.locked, false);
  const next = await opened({}, disk.afterCut([], true));
  assertMapped(next.journal.unknown(), ["A"], ({ key }) => key);
});

test("Journal under refuse keeps a real outcome however many calls it refuses, and nothing of these", async () => {
  const { journal, disk, told } = await opened({ bytes: manyBytes });
  const real = begin(journal, "REAL");
  await real.sent();
  disk.trouble = { error: systemError("EIO") };
  await real.ended({ outcome: "answered" });
  for (let n = 0; n < 2_100; n++) await refused(journal, `R${n}`);
  disk.trouble = undefined;
  await time.advance(retryMs.max);
  assert.doesNotMatch(told.recoveries.join(), /lost/);
  const next = await opened({ bytes: manyBytes }, disk.afterCut([], true));
  assert.deepEqual(next.journal.unknown(), []);
});

test("Journal drops what was not sent first, when it can keep no more", async () => {
  const { journal, disk, told } = await opened({ onFailure: "relay", bytes: manyBytes });
  const real = begin(journal, "REAL");
  await real.sent();
  disk.trouble = { error: systemError("EIO") };
  await real.ended({ outcome: "answered" });
  const recordCall = async (key: string, outcome: "answered" | "not-sent") => {
    const entry = begin(journal, key);
    await entry.sent();
    await entry.ended({ outcome });
  };
  for (let n = 0; n < 600; n++) await recordCall(`A${n}`, "answered");
  for (let n = 0; n < 800; n++) await recordCall(`N${n}`, "not-sent");
  disk.trouble = undefined;
  await time.advance(retryMs.max);
  assert.match(told.recoveries.join(), /, and \d+ records were lost in the meantime$/);
  const next = await opened({ bytes: manyBytes }, disk.afterCut([], true));
  assert.deepEqual(next.journal.unknown(), [], "no outcome of what was sent is missing");
  for (const key of ["A0", "A599"]) assert.ok(lastSent(next.journal, key), `${key} was sent`);
});

test("Journal takes nothing along into a new file whose outcome it could not keep: it would be told as unknown from there", async () => {
  const { journal, disk } = await opened({ onFailure: "relay", bytes: manyBytes });
  const ended = begin(journal, "ENDED");
  await ended.sent();
  await begin(journal, "OPEN").sent();
  disk.trouble = { error: systemError("EIO") };
  await ended.ended({ outcome: "answered" });
  for (let n = 0; n < 2_048; n++) await begin(journal, `S${n}`).sent();
  disk.files.delete(journalFile(folder));
  disk.trouble = undefined;
  await time.advance(retryMs.max);
  const next = await opened({ bytes: manyBytes }, disk.afterCut([], true));
  const isKnown = ["ENDED", "OPEN", "S0"].map((key) => lastSent(next.journal, key) !== undefined);
  assert.deepEqual(isKnown, [false, true, true]);
});

test("Journal tries a record that comes while it gives a failed file back", async () => {
  const { journal, disk } = await opened();
  const closed = gate();
  const file = await disk.open(`${folder}/journal`);
  disk.open = async () => ({
    ...file,
    write: () => Promise.reject(systemError("EIO")),
    close: () => closed.passed,
  });
  disk.trouble = { error: systemError("EIO") };
  await refused(journal, "A");
  disk.trouble = undefined;
  await refused(journal, "B");
  // The file of B's attempt is being given back now.
  const third = begin(journal, "C").sent();
  disk.open = async () => file;
  closed.open();
  await third;
  assert.equal(journal.state, "ok");
  await journal.close();
});

test("Journal whose disk answers again is written from then on, though more waits, and a call waits for its record again", async () => {
  const { journal, disk, told } = await opened({ onFailure: "relay" });
  const gates = [gate(), gate()];
  // The first write hangs, and so does the second; what comes between is the sync of the first.
  let writes = 0;
  const isWrite = () => [1, 4].includes(++writes);
  Object.defineProperty(disk, "trouble", {
    get: () => (isWrite() ? { until: gates[writes === 1 ? 0 : 1]?.passed } : undefined),
  });
  void begin(journal, "A").sent();
  await time.advance(recordMs + 1);
  assert.match(journal.state, /no answer from the disk/);
  for (let n = 0; n < 3; n++) await begin(journal, `B${n}`).sent();
  gates[0]?.open();
  await time.settle();
  assert.deepEqual([journal.state, told.recoveries.length], ["ok", 1]);
  const sending = watched(begin(journal, "C").sent());
  await time.settle();
  assert.equal(sending.isOver, false);
  // And no longer than for the first one.
  await time.advance(recordMs);
  assert.equal(sending.isOver, true);
  gates[1]?.open();
  await sending.ended;
  await journal.close();
});

test("Journal whose disk hangs lets each call go on within recordMs, also those whose records it can't keep", async () => {
  const { journal, disk, told } = await opened({ onFailure: "relay" });
  disk.trouble = { until: new Promise(() => {}) };
  let sent = 0;
  for (let n = 0; n < 2_500; n++)
    void begin(journal, `A${n}`)
      .sent()
      .then(() => sent++);
  await time.advance(recordMs);
  assert.deepEqual([sent, told.failures.length], [2_500, 1]);
});

test("Journal on a slow disk that is always busy is not said to fail", async () => {
  const { journal, disk, told } = await opened({ onFailure: "relay", bytes: manyBytes });
  // Each look at it takes a second: an SD card in a bad hour.
  Object.defineProperty(disk, "trouble", {
    get: () => ({ until: new Promise<void>((resolve) => time.after(1_000, resolve)) }),
  });
  const isRecorded: boolean[] = [];
  for (let n = 0; n < 40; n++) {
    const entry = begin(journal, `A${n}`);
    void entry
      .sent()
      .then(() => entry.ended({ outcome: "answered" }))
      .then(() => isRecorded.push(isKept(lastSent(journal, `A${n}`))));
    await time.advance(500);
  }
  await time.advance(2 * recordMs);
  assert.deepEqual([told.failures, isRecorded], [[], Array.from({ length: 40 }, () => true)]);
});

test("Journal whose disk worked again with a call is tried again unasked when it fails once more", async () => {
  const { journal, disk, told } = await opened();
  for (const failure of [1, 2, 3]) {
    disk.trouble = { error: systemError("EIO") };
    await refused(journal, `A${failure}`);
    disk.trouble = undefined;
    await begin(journal, `B${failure}`).sent();
  }
  disk.trouble = { error: systemError("EIO") };
  await refused(journal, "C");
  disk.trouble = undefined;
  await time.advance(retryMs.min);
  assert.deepEqual([journal.state, told.recoveries.length], ["ok", 4]);
  await journal.close();
});

test("Journal whose record failed goes on behind what somebody else has recorded meanwhile, and has each operation once", async () => {
  // Whether the record that failed is on the disk all the same.
  for (const failing of ["write", "sync"] as const) {
    const disk = new SimDisk();
    const { open } = disk;
    let isFailing = false;
    disk.open = async (path) => {
      const file = await open(path);
      const fails = (): Promise<never> => Promise.reject(systemError("EIO"));
      return {
        ...file,
        write: (...piece) => (isFailing && failing === "write" ? fails() : file.write(...piece)),
        sync: () => (isFailing && failing === "sync" ? fails() : file.sync()),
      };
    };
    await (await opened({}, disk)).journal.close();
    const { journal } = await opened({ onFailure: "relay" }, disk);
    const before = begin(journal, "B");
    await before.sent();
    await before.ended({ outcome: "unknown" });
    const [{ sent, place } = {}] = journal.listed;
    assert.ok(sent !== undefined && place !== undefined);
    isFailing = true;
    const entry = begin(journal, "A");
    await entry.sent();
    isFailing = false;
    // As posline journal settle does.
    const ignore = () => {};
    const other = new Recorder({
      ...{ disk, folder, bytes, report: new Told() },
      ...{ onFirstRead: ignore, onReplaced: ignore },
    });
    const { digest } = sent;
    const settled = { kind: "settled", timeMs: Date.now(), sent: sequenceOf(place) ?? 0, digest, result: "approved" } as const;
    assert.equal(await other.add({ ...settled, by: "operator" }).recorded, true);
    await other.close();
    await entry.ended({ outcome: "answered" });
    await journal.close();
    const { records } = await readRing(disk, folder);
    assertMapped(
      joinOperations(records),
      [
        ["B", "unknown", "approved"],
        ["A", "answered", undefined],
      ],
      (each) => [each.sent.key, each.ending?.outcome, each.settled?.result],
      failing,
    );
  }
});

test("Journal ends in recordMs when its disk hangs", async () => {
  const never = new Promise<void>(() => {});
  const disk = new SimDisk();
  const { open, lock } = disk;
  // Nor does it take a file or its folder back then.
  disk.open = async (path) => ({ ...(await open(path)), close: () => never });
  disk.lock = async () => ({ ...(await lock()), release: () => never });
  const { journal } = await opened({}, disk);
  disk.trouble = { until: never };
  void begin(journal, "A")
    .sent()
    .catch(() => {});
  await time.settle();
  const closed = watched(journal.close());
  await time.advance(recordMs - 1);
  assert.equal(closed.isOver, false);
  await time.advance(1);
  await closed.ended;
});
