import assert from "node:assert/strict";
import { test } from "node:test";
import type { OperationLogEntry } from "../../src/contract/operation-log.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { Operations, openOperations } from "../../src/operations/operations.ts";
import { dayMs } from "../../src/operations/sending.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { callOf, folder, lastSent, routeTo, Told } from "./records.ts";
import { pageBytes, SimDisk, systemError } from "./sim-disk.ts";

/**
 * Tests src/operations/operations.ts, src/journal/reader.ts.
 *
 * What a journal says of itself once a page of its file went bad, at whatever place.
 */

const time = virtualTime();

const path = journalFile(folder);
const slotsInPage = pageBytes / slotBytes;

async function opened(disk: SimDisk, slots: number): Promise<{ readonly journal: Operations; readonly told: Told }> {
  const told = new Told();
  const bytes = slots * slotBytes;
  return { journal: await openOperations({ folder, bytes, onFailure: "relay", report: told, disk }), told };
}

async function begin(journal: Operations, key: string): Promise<OperationLogEntry> {
  const entry = journal.begin(callOf(key), routeTo());
  await entry.sent();
  return entry;
}

async function sell(journal: Operations, key: string): Promise<void> {
  const entry = await begin(journal, key);
  await entry.ended({ outcome: "answered", status: "success", code: 0 });
}

/** The disk as the next process finds it. */
const found = (disk: SimDisk) => disk.afterCut([{ keeps: "all", bytes: 0 }], true);

/** Processes that follow each other, each with its start and so many sales. */
async function journalOf(sales: readonly number[], slots: number): Promise<SimDisk> {
  let disk = new SimDisk();
  for (const [process, count] of sales.entries()) {
    disk = found(disk);
    const { journal } = await opened(disk, slots);
    for (let sale = 0; sale < count; sale++) await sell(journal, `${process}-${sale}`);
  }
  return found(disk);
}

const isMissing = (notice: string) => /^records of the last day are missing from the journal/.test(notice);

/** Whether records may be missing since a sale was sent. */
const lacks = (operations: Operations, key: string) => {
  const sending = lastSent(operations, key);
  return sending === undefined ? undefined : operations.lacksSince(sending);
};

test("Journal of which any page went bad isn't whole for a day, at the beginning, in the midst and at the end of each process's records", async () => {
  const sales = [3, 3, 4, 12, 3, 1, 1, 1, 20, 2];
  // The start of each process, and two records each sale. Those of the first and third process end with a page.
  const newest = sales.reduce((sum, count) => sum + 1 + 2 * count, 0);
  for (const as of ["garbage", "unreadable"] as const) {
    for (let page = 0; page <= Math.floor(newest / slotsInPage); page++) {
      const disk = await journalOf(sales, 256);
      disk.spoil(path, page, as);
      const { journal, told } = await opened(disk, 256);
      assert.deepEqual([journal.isReadable, journal.isWhole], [true, false], `page ${page}, ${as}`);
      assert.equal(told.notices.filter(isMissing).length, 1, `page ${page}, ${as}: ${told.notices}`);
      await time.advance(dayMs);
      assert.equal(journal.isWhole, true, "a day later");
    }
  }
});

test("Journal of which the first page turned to zeros isn't whole for a day, and has the disk checked, and not more room given", async () => {
  const disk = await journalOf([3, 9], 256);
  disk.files.get(path)?.current.fill(0, 0, pageBytes);
  const { journal, told } = await opened(disk, 256);
  assert.equal(journal.isWhole, false);
  assert.equal(told.notices.length, 1);
  assert.match(told.notices[0] ?? "", /its first records are lost.*: off.*check the disk/);
  assert.doesNotMatch(told.notices[0] ?? "", /more room/);
});

test("Journal takes what was sent before lost records for the last under its key no more: another may have followed it there", async () => {
  const disk = await journalOf([3], 256);
  const { journal } = await opened(disk, 256);
  const lost = async (key: string) => {
    const call = { ...callOf(key), isFresh: true };
    const entry = journal.begin(call, routeTo());
    await entry.sent();
    await entry.ended({ outcome: "unknown" });
  };
  // The second process's start is number 8.
  await lost("BEFORE");
  for (let sale = 0; sale < 8; sale++) await sell(journal, `S-${sale}`);
  await lost("AFTER");
  const next = found(disk);
  next.spoil(path, 2, "garbage");
  for (const [name, file, isAlone] of [
    ["whole", found(disk), true],
    ["lost", next, false],
  ] as const) {
    const { journal: later } = await opened(file, 256);
    assert.deepEqual([lacks(later, "BEFORE"), lacks(later, "AFTER")], [!isAlone, false], name);
  }
});

test("Journal of which records of the last day are missing isn't whole for a day, and says so; not where a power cut tore a last batch", async () => {
  const disk = new SimDisk();
  const { journal } = await opened(disk, 256);
  for (let sale = 0; sale < 60; sale++) await sell(journal, `S-${sale}`);
  await Promise.all(["A", "B", "C", "D"].map((key) => begin(journal, key)));
  const spoilt = (sequence: number) => {
    const cut = found(disk);
    const slots = (cut.files.get(path)?.current.length ?? 0) / slotBytes;
    cut.files.get(path)?.current.fill(0xff, (sequence % slots) * slotBytes, (sequence % slots) * slotBytes + 16);
    return cut;
  };
  // Of 60 sales the start is the first record, and two each follow; then four sendings, the first one alone.
  for (const [sequence, isWhole] of [
    [20, false],
    [70, false],
    [80, false],
    // Its outcome is there, so it was on the disk.
    [120, false],
    [121, true],
    // One of three that were written together.
    [123, true],
  ] as const) {
    const { journal: next, told } = await opened(spoilt(sequence), 256);
    assert.equal(next.isReadable, true);
    assert.equal(next.isWhole, isWhole, `${sequence}`);
    assert.equal(
      told.notices.some((notice) => /missing from the journal, .* X-Posline-Repeat-Guard: off\. Check the disk/.test(notice)),
      !isWhole,
    );
  }
  const { journal: later } = await opened(spoilt(20), 256);
  await time.advance(dayMs);
  assert.equal(later.isWhole, true, "a day later");
});

test("Journal of which a record is missing isn't whole where so many were sent since that it was on the disk, though none has ended", async () => {
  for (const [since, isWhole] of [
    [47, true],
    [48, false],
  ] as const) {
    const disk = new SimDisk();
    const { journal } = await opened(disk, 128);
    for (let sale = 0; sale < 10; sale++) await sell(journal, `S-${sale}`);
    for (let sale = 0; sale <= since; sale++) await begin(journal, `OUT-${sale}`);
    // The start, ten sales of two records each, then the sendings: what was torn could be one batch with as many as are written at once.
    const cut = found(disk);
    cut.files.get(path)?.current.fill(0xff, 22 * slotBytes, 22 * slotBytes + 9);
    assert.equal((await opened(cut, 128)).journal.isWhole, isWhole, `${since}`);
  }
});

test("Journal whose file was begun anew in the middle of its numbers says that records are missing, and not that it is too small", async () => {
  const disk = new SimDisk();
  const { journal } = await opened(disk, 128);
  for (let sale = 0; sale < 50; sale++) await sell(journal, `S-${sale}`);
  disk.files.delete(path);
  // Round the end of the new file.
  for (let sale = 50; sale < 75; sale++) await sell(journal, `S-${sale}`);
  await journal.close();
  const { journal: next, told } = await opened(disk, 128);
  assert.equal(next.isWhole, false);
  assert.deepEqual(told.notices.map(isMissing), [true]);
});

test("Journal whose newest page is spoilt or unreadable isn't whole for a day, goes on behind it, and knows of it in the next process", async () => {
  for (const [what, slots, isWhole] of [
    ["torn", 3, true],
    ["spoilt", 4, false],
    ["unreadable", 8, false],
  ] as const) {
    const disk = new SimDisk();
    const { journal } = await opened(disk, 128);
    for (let sale = 0; sale < 20; sale++) await sell(journal, `S-${sale}`);
    // The start, 20 sendings and their outcomes: the newest record is number 41.
    const cut = found(disk);
    cut.files.get(path)?.current.fill(0xff, (42 - slots) * slotBytes, 42 * slotBytes);
    if (what === "unreadable") {
      const open = cut.open.bind(cut);
      cut.open = async (name) => {
        const file = await open(name);
        const read = file.read.bind(file);
        return Object.assign(file, {
          read: (buffer: Buffer, position: number) =>
            position < 42 * slotBytes && position + buffer.length > 34 * slotBytes
              ? Promise.reject(systemError("EIO"))
              : read(buffer, position),
        });
      };
    }
    const { journal: next } = await opened(cut, 128);
    assert.equal(next.isWhole, isWhole, what);
    assert.equal(lacks(next, "S-1"), !isWhole, "what was learned of it may be lost");
    await sell(next, "NEW");
    const stored = found(cut);
    const numbers = (stored.files.get(path)?.current ?? Buffer.alloc(0)).subarray((42 - slots) * slotBytes, 42 * slotBytes);
    assert.ok(
      numbers.every((byte) => byte === 0xff),
      "what may be readable again later isn't overwritten, nor are its numbers given again",
    );
    const { journal: third } = await opened(stored, 128);
    assert.equal(third.isWhole, isWhole, `${what}, in the next process`);
    assert.ok(lastSent(third, "NEW") !== undefined);
  }
});

test("Journal of which three records are spoilt in the midst of a last batch takes them for torn, and four for lost", async () => {
  for (const [count, isWhole] of [
    [3, true],
    [4, false],
  ] as const) {
    const disk = new SimDisk();
    const { journal } = await opened(disk, 128);
    await Promise.all(Array.from({ length: 8 }, (_, sale) => begin(journal, `OUT-${sale}`)));
    // The start is number 1, the first sending 2, and the others were written together.
    const cut = found(disk);
    cut.files.get(path)?.current.fill(0xff, 4 * slotBytes, (4 + count) * slotBytes);
    assert.equal((await opened(cut, 128)).journal.isWhole, isWhole, `${count}`);
  }
});

test("Journal whose very first record a power cut tore is whole, also for the process after the next", async () => {
  const tear = (disk: SimDisk) => {
    const cut = found(disk);
    cut.files.get(path)?.current.fill(0xff, slotBytes, slotBytes + 9);
    return cut;
  };
  const young = new SimDisk();
  await opened(young, 128);
  const next = tear(young);
  // Where its disk comes late, calls are recorded together with the start.
  const late = new SimDisk();
  const journal = new Operations({ folder, bytes: 128 * slotBytes, onFailure: "relay", report: new Told(), disk: late });
  await Promise.all([journal.start(), begin(journal, "A"), begin(journal, "B")]);
  for (const disk of [next, tear(late)]) {
    for (const _ of ["the next", "the one after"]) {
      const { journal: later, told } = await opened(disk, 128);
      assert.deepEqual([later.isWhole, told.notices.filter(isMissing)], [true, []]);
      await later.close();
    }
  }
});
