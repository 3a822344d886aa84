import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type DiskFile, nodeDisk } from "../../src/journal/disk.ts";
import { JournalError, journalFile } from "../../src/journal/errors.ts";
import { JournalFollower, readJournal, scanRing } from "../../src/journal/reader.ts";
import { type JournalRecord, writeRecord } from "../../src/journal/record.ts";
import { openRing, type Ring } from "../../src/journal/ring.ts";
import { slotBytes, writeSlot } from "../../src/journal/slot.ts";
import { openOperations } from "../../src/operations/operations.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { bytes, callOf, routeTo, Told } from "./records.ts";
import { systemError } from "./sim-disk.ts";

const root = mkdtempSync(join(tmpdir(), "posline-reader-"));
after(() => rmSync(root, { recursive: true }));
const rings: Ring[] = [];
after(() => Promise.all(rings.map((ring) => ring.close())));
let count = 0;
function newFolder(): string {
  const folder = join(root, String(count++));
  mkdirSync(folder);
  return folder;
}

/** Larger than what a follower looks at first. */
const manySlots = 400;

async function ringIn(folder: string, slots = manySlots): Promise<Ring> {
  const { ring } = await openRing(nodeDisk, folder, slots * slotBytes);
  rings.push(ring);
  return ring;
}

/** A ring in a folder of its own, with its first record. */
async function newRing() {
  const folder = newFolder();
  const ring = await ringIn(folder);
  await put(ring, 1, 1);
  return { folder, ring };
}

const recordOf = (sequence: number): JournalRecord => ({ kind: "start", timeMs: sequence, version: String(sequence) });

async function put(ring: Ring, from: number, to: number): Promise<void> {
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  assert.equal(await ring.write(numbers.map((sequence) => ({ sequence, text: writeRecord(recordOf(sequence)) }))), true);
}

/** Follows a journal from now on; each call gives the numbers of what came. */
async function following(folder: string): Promise<() => Promise<readonly number[]>> {
  const follower = new JournalFollower(folder, await readJournal(folder));
  return async () => {
    const records = await follower.next();
    for (const { sequence, record } of records) assert.deepEqual(record, recordOf(sequence));
    return records.map(({ sequence }) => sequence);
  };
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test("readJournal() gives what stands in a journal, and whether it is being written", async () => {
  const folder = newFolder();
  const journal = await openOperations({ folder, bytes, onFailure: "refuse", report: new Told() });
  await journal.begin(callOf("A"), routeTo()).sent();
  const { records, slots, bad, isWritten } = await readJournal(folder);
  assertMapped(
    records,
    [
      [1, "start"],
      [2, "sent"],
    ],
    ({ sequence, record }) => [sequence, record.kind],
  );
  assert.deepEqual({ slots, bad, isWritten }, { slots: bytes / slotBytes, bad: 0, isWritten: true });
  await journal.close();
  assert.equal((await readJournal(folder)).isWritten, false);
  const links = readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
  assert.ok(!links.some((path) => path.startsWith(folder)), "no descriptor is left");
});

test("readJournal() says why a journal can't be read, and what to do", async () => {
  const [none, foreign] = [newFolder(), newFolder()];
  writeFileSync(journalFile(foreign), Buffer.alloc(bytes));
  for (const [folder, said] of [
    [
      none,
      `Cannot read the journal in ${none}: there is no journal: name its folder with --folder (posline config shows journal.folder)`,
    ],
    [foreign, `Cannot read ${foreign}/journal: it is not a journal of posline: name another folder`],
  ] as const) {
    await assert.rejects(readJournal(folder), (error) => error instanceof JournalError && error.message === said);
  }
});

test("JournalFollower.next() gives each record once, in order, round the end of the ring", async () => {
  const { folder, ring } = await newRing();
  const next = await following(folder);
  assert.deepEqual(await next(), []);
  let last = 1;
  // Steps of all sizes up to what is looked at first: from, across and at the ring's end.
  for (const step of [1, 2, 100, 256, 39, 1, 1, 255, 144, 1, 200]) {
    await put(ring, last + 1, last + step);
    assert.deepEqual(await next(), numbers(last + 1, last + step), `${step} behind ${last}`);
    assert.deepEqual(await next(), []);
    last += step;
  }
});

test("JournalFollower.next() gives what came behind a gap that is longer than what it looks at first", async () => {
  const { folder, ring } = await newRing();
  const next = await following(folder);
  await put(ring, 300, 302);
  assert.deepEqual(await next(), [300, 301, 302]);
  await put(ring, 303, 303);
  assert.deepEqual(await next(), [303]);
});

test("JournalFollower.next() gives a record that comes within the same tick of the file's clock as the one before", async () => {
  const { folder, ring } = await newRing();
  const next = await following(folder);
  // A tick of FAT has 2 s; a clock that was set back has the last change ahead.
  const tick = Date.now() / 1_000 + 3_600;
  for (const sequence of [2, 3]) {
    await put(ring, sequence, sequence);
    utimesSync(journalFile(folder), tick, tick);
    assert.deepEqual(await next(), [sequence]);
  }
});

test("JournalFollower.next() goes on in a file of another size, and in another one whose numbers began anew", async () => {
  const { folder, ring } = await newRing();
  await put(ring, 2, 20);
  const next = await following(folder);
  const larger = await ringIn(folder, 2 * manySlots);
  await put(larger, 21, 21);
  assert.deepEqual(await next(), [21]);
  // By now it knows the new size, in which the records stand elsewhere.
  for (let last = 21; last < 2 * manySlots; last += 200) {
    await put(larger, last + 1, last + 200);
    assert.deepEqual(await next(), numbers(last + 1, last + 200));
  }
  const other = await newRing();
  await put(other.ring, 2, 3);
  renameSync(journalFile(other.folder), journalFile(folder));
  assert.deepEqual(await next(), [1, 2, 3]);
  await put(await ringIn(folder), 4, 4);
  assert.deepEqual(await next(), [4]);
  rmSync(journalFile(folder));
  await assert.rejects(next(), /^JournalError: Cannot read the journal in .*: there is no journal/);
});

test("JournalFollower.next() gives nothing twice while the newest record is written anew and torn", async () => {
  const { folder, ring } = await newRing();
  await put(ring, 2, 5);
  const next = await following(folder);
  const file = await nodeDisk.open(journalFile(folder));
  const whole = Buffer.alloc(slotBytes);
  await file.read(whole, 5 * slotBytes);
  await file.write(Buffer.alloc(100, 0xff), 5 * slotBytes);
  assert.deepEqual(await next(), []);
  await file.write(whole, 5 * slotBytes);
  assert.deepEqual(await next(), []);
  await put(ring, 6, 6);
  assert.deepEqual(await next(), [6]);
  await file.close();
});

/** A file in which a part, in slots, can't be read. */
async function withUnreadable(folder: string, from: number, to: number): Promise<DiskFile> {
  const file = await nodeDisk.openToRead(journalFile(folder));
  return {
    ...file,
    read: (buffer, position) =>
      position < to * slotBytes && position + buffer.length > from * slotBytes
        ? Promise.reject(systemError("EIO"))
        : file.read(buffer, position),
    close: () => file.close(),
  };
}

test("scanRing() reads all but the pages that a disk can't read, and says that records may be lacking, also where none is known to be", async () => {
  const { folder, ring } = await newRing();
  await put(ring, 2, 100);
  for (const [from, to, missing] of [
    [16, 24, [{ from: 16, to: 23 }]],
    [200, 208, []],
    [392, 400, []],
  ] as const) {
    const file = await withUnreadable(folder, from, to);
    const { records, bad, whole, empty, isLacking, next, ...found } = await scanRing(file, 0, manySlots);
    await file.close();
    const isThere = (sequence: number) => sequence < from || sequence >= to;
    assertMapped(records, numbers(1, 100).filter(isThere), ({ sequence }) => sequence);
    assert.deepEqual(found.missing, missing);
    const isWritten = from < 100;
    assert.deepEqual({ bad, whole, empty }, { bad: 8, whole: isWritten ? 93 : 101, empty: isWritten ? 299 : 291 });
    assert.deepEqual({ isLacking, next }, { isLacking: true, next: 101 });
  }
  const sound = await withUnreadable(folder, 0, 0);
  assert.equal((await scanRing(sound, 0, manySlots)).isLacking, false);
  await sound.close();
  const dead = await withUnreadable(folder, 0, manySlots);
  await assert.rejects(scanRing(dead, 0, manySlots), { code: "EIO" });
  await dead.close();
});

test("scanRing() takes nothing for a record that stands elsewhere than its number says, is of another ring or a round behind", async () => {
  const { folder, ring } = await newRing();
  await put(ring, 2, manySlots - 1);
  await put(ring, manySlots, manySlots + 49);
  await put(ring, manySlots + 51, manySlots + 100);
  const file = await nodeDisk.open(journalFile(folder));
  await file.write(writeSlot(manySlots + 200, writeRecord(recordOf(1)), manySlots), 300 * slotBytes);
  await file.write(writeSlot(99, writeRecord(recordOf(1)), manySlots / 2), 99 * slotBytes);
  const { records, missing, bad, whole, head, isLacking, slots } = await scanRing(file, 0, manySlots);
  await file.close();
  const gone = [300, manySlots + 50, manySlots + 99];
  assertMapped(
    records,
    numbers(101, manySlots + 100).filter((sequence) => !gone.includes(sequence)),
    ({ sequence }) => sequence,
  );
  assert.deepEqual(
    missing,
    gone.map((sequence) => ({ from: sequence, to: sequence })),
  );
  assert.deepEqual(
    { bad, whole, head, isLacking, slots },
    { bad: 2, whole: manySlots - 2, head: manySlots + 100, isLacking: false, slots: manySlots },
  );
});
