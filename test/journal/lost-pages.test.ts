import assert from "node:assert/strict";
import { after, test } from "node:test";
import { journalFile } from "../../src/journal/errors.ts";
import { type Journal, openJournal } from "../../src/journal/journal.ts";
import { recentMs } from "../../src/journal/recent-operations.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { callOf, folder, routeTo, Told } from "./records.ts";
import { pageBytes, SimDisk } from "./sim-disk.ts";

/**
 * Tests src/journal/journal.ts, src/journal/reader.ts, src/journal/recent-operations.ts.
 *
 * What a journal says of itself once a page of its file went bad, at whatever place.
 */

const time = new VirtualTime();
after(() => time.restore());

const path = journalFile(folder);
const slotsInPage = pageBytes / slotBytes;

async function opened(disk: SimDisk, slots: number): Promise<{ readonly journal: Journal; readonly told: Told }> {
  const told = new Told();
  const bytes = slots * slotBytes;
  return { journal: await openJournal({ folder, bytes, onFailure: "relay", report: told, disk }), told };
}

async function sell(journal: Journal, key: string): Promise<void> {
  const entry = journal.begin(callOf(key), routeTo());
  await entry.sent();
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
      await time.advance(recentMs);
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
    const [before, after] = ["BEFORE", "AFTER"].map((key) => later.find("bank", "/sale", key));
    assert.deepEqual([before?.isLast, before?.isFresh, before?.mayBeCleared], [isAlone, isAlone, !isAlone], name);
    assert.deepEqual([after?.isLast, after?.isFresh, after?.mayBeCleared], [true, true, false], name);
  }
});
