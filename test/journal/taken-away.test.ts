import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { journalFile } from "../../src/journal/errors.ts";
import { readJournal, scanRing } from "../../src/journal/reader.ts";
import { joinOperations } from "../../src/journal/record.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { isWriterLocked } from "../../src/journal/writer-lock.ts";
import { type Operations, openOperations } from "../../src/operations/operations.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { bytes, callOf, folder, routeTo, Told } from "./records.ts";
import { SimDisk, systemError } from "./sim-disk.ts";

/**
 * Tests src/journal/writer-lock.ts, src/journal/recorder.ts.
 *
 * * src/journal/ring.ts and recorder.ts: a file that is removed, replaced, cut or added to while posline writes it, or between
 * two of its lives.
 */

const path = journalFile(folder);

async function opened(disk: SimDisk) {
  const told = new Told();
  return { journal: await openOperations({ folder, bytes, onFailure: "refuse", report: told, disk }), told };
}

/** @throws Fault when it must not be sent. */
async function record(journal: Operations, key: string): Promise<void> {
  const entry = journal.begin(callOf(key), routeTo());
  try {
    await entry.sent();
  } catch (error) {
    await entry.ended({ outcome: "not-sent" });
    throw error;
  }
  await entry.ended({ outcome: "answered", status: "success", code: 0 });
}

async function recordMany(journal: Operations, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await record(journal, `K${n}`);
}

const contentOf = (disk: SimDisk) => disk.files.get(path)?.current ?? Buffer.alloc(0);

/** `key outcome` of each operation that a reader finds. */
async function found(disk: SimDisk): Promise<readonly string[]> {
  const { records } = await scanRing(await disk.open(path), 0, Math.floor(contentOf(disk).length / slotBytes));
  return joinOperations(records).map(({ sent, ending }) => `${sent.key} ${ending?.outcome ?? "open"}`);
}

/** Does something to the file as somebody else would, who has it open by its name. */
function change(disk: SimDisk, changed: (content: Buffer) => Buffer): void {
  const file = disk.files.get(path);
  assert.ok(file !== undefined);
  file.current = changed(file.current);
  file.durable = file.current;
  file.unsynced = [];
}

test("Journal whose file is removed goes on in a new one, with what is in flight, and says so", async () => {
  const disk = new SimDisk();
  const { journal, told } = await opened(disk);
  await record(journal, "A");
  const inFlight = journal.begin(callOf("LONG"), routeTo());
  await inFlight.sent();
  disk.files.delete(path);
  await record(journal, "B");
  assert.deepEqual(await found(disk), ["B answered", "LONG open"]);
  await inFlight.ended({ outcome: "answered" });
  assert.deepEqual(await found(disk), ["B answered", "LONG answered"]);
  assert.match(
    told.notices.join("\n"),
    /^\/var\/lib\/posline\/journal was removed, replaced or cut by another program while posline/,
  );
  assert.equal(told.notices.length, 1);
  assert.deepEqual([journal.state, told.failures], ["ok", []]);
  assert.equal(contentOf(disk).length, bytes);
  assert.equal(journal.isWhole, false, "the next process won't know of A");
  await journal.close();
  assert.equal((await opened(disk)).journal.isWhole, false);
});

test("Journal gives its folder back before it takes it again, also where that takes its time", async () => {
  const disk = new SimDisk();
  const { lock } = disk;
  disk.lock = async () => {
    const { release } = await lock();
    return {
      release: async () => {
        for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve));
        await release();
      },
    };
  };
  const { journal, told } = await opened(disk);
  disk.files.delete(path);
  await record(journal, "A");
  assert.deepEqual(told.failures, []);
  disk.trouble = { error: systemError("EIO") };
  await assert.rejects(record(journal, "B"));
  disk.trouble = undefined;
  await record(journal, "C");
  assert.deepEqual([told.failures.length, journal.state], [1, "ok"]);
  await journal.close();
  assert.equal(disk.locked, false);
});

test("Journal whose file is replaced by a copy goes on in that, and doubles nothing", async () => {
  const disk = new SimDisk();
  const { journal, told } = await opened(disk);
  await record(journal, "A");
  const inFlight = journal.begin(callOf("LONG"), routeTo());
  await inFlight.sent();
  disk.put(path, contentOf(disk));
  await record(journal, "B");
  await inFlight.ended({ outcome: "answered" });
  assert.deepEqual(await found(disk), ["A answered", "LONG answered", "B answered"]);
  assert.equal(told.notices.length, 1);
  assert.match(told.notices[0] ?? "", /are lost, and posline goes on in the file that is there now, or in a new one$/);
  await journal.close();
  assert.equal((await opened(disk)).journal.isWhole, false, "what came between the copy and its coming may be lost");
});

test("Journal whose file is replaced by another box's goes on behind that, with what is in flight", async () => {
  const other = new SimDisk();
  const theirs = await opened(other);
  await recordMany(theirs.journal, 10);
  const disk = new SimDisk();
  const { journal } = await opened(disk);
  const inFlight = journal.begin(callOf("LONG"), routeTo());
  await inFlight.sent();
  disk.put(path, contentOf(other));
  await inFlight.ended({ outcome: "unknown" });
  assert.deepEqual((await found(disk)).slice(-2), ["K9 answered", "LONG unknown"]);
  assert.equal((await found(disk)).length, 11);
  await journal.close();
});

test("Journal whose file is cut or added to at any place keeps what can be read, running or not, before and after going round", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(5, 40, 63, 64, 65, 90, 150),
      fc.oneof(fc.integer({ min: 0, max: bytes - 1 }), fc.integer({ min: bytes + 1, max: bytes + 5_000 })),
      fc.boolean(),
      async (count, size, isRunning) => {
        const disk = new SimDisk();
        let { journal, told } = await opened(disk);
        await recordMany(journal, count);
        if (!isRunning) await journal.close();
        const before = await found(disk);
        change(disk, (content) => Buffer.concat([content.subarray(0, size), Buffer.alloc(Math.max(0, size - bytes), 7)]));
        const whole = Math.min(Math.floor(size / slotBytes), bytes / slotBytes);
        if (!isRunning) ({ journal, told } = await opened(disk));
        if (size > 0 && whole === 0 && !isRunning) {
          assert.match(told.failures.join(), /nothing in it is readable: move the file away/);
          return;
        }
        await record(journal, "NEXT");
        const after = await found(disk);
        assert.equal(after.at(-1), "NEXT answered");
        assert.ok(told.notices.length > 0, "it is said");
        assert.equal(contentOf(disk).length, bytes);
        assert.deepEqual([journal.state, told.failures], ["ok", []]);
        // The newest may be gone with their slots, and an outcome without its sending; what is left is as it was.
        if (size > bytes) assert.deepEqual(after.slice(0, -1), before.slice(before.length - after.length + 1));
        else assert.ok(after.slice(0, -1).every((each) => before.includes(each.replace(" open", " answered"))));
        const kept = Math.floor(whole / 2) - 3;
        assert.ok(after.length >= Math.min(before.length, kept), `${after.length} of ${before.length}, ${whole} slots`);
        await journal.close();
      },
    ),
    { numRuns: 60 },
  );
});

test("openOperations() says that the file was empty, or was cut, or added to", async () => {
  for (const [size, said] of [
    [0, /journal was empty, which posline never leaves it: its records are lost/],
    [bytes / 2, /journal was cut by another program, to 32768 bytes from 65536: the 21 readable records are kept/],
    [bytes + 600, /journal was lengthened by another program, to 66136 bytes from 65536/],
  ] as const) {
    const disk = new SimDisk();
    const first = await opened(disk);
    await recordMany(first.journal, 10);
    await first.journal.close();
    change(disk, (content) => Buffer.concat([content.subarray(0, size), Buffer.alloc(Math.max(0, size - bytes))]));
    const { journal, told } = await opened(disk);
    assert.match(told.notices[0] ?? "", said);
    const isLacking = size < bytes;
    assert.deepEqual([journal.isWhole, told.notices.length], [!isLacking, isLacking ? 2 : 1]);
    await journal.close();
    // The next process knows of it as well.
    const again = await opened(disk);
    assert.deepEqual([again.journal.isWhole, again.told.notices.length], [!isLacking, isLacking ? 1 : 0], `${size}`);
  }
});

test("Journal whose file is taken away again and again says that it can't be written", async () => {
  const disk = new SimDisk();
  const { journal, told } = await opened(disk);
  const { factsOf } = disk;
  disk.factsOf = async () => undefined;
  await assert.rejects(
    record(journal, "A"),
    /removed, replaced or cut again and again: find the program that does it \(sudo lsof /,
  );
  assert.equal(told.notices.length, 1);
  disk.factsOf = factsOf;
  await record(journal, "B");
  assert.equal(journal.state, "ok");
  await journal.close();
});

test("Journal whose folder is removed says so, and in one made anew takes the writer lock anew", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "posline-away-"));
  const state = join(root, "state");
  mkdirSync(state);
  const told = new Told();
  const journal = await openOperations({ folder: state, bytes, onFailure: "refuse", report: told });
  t.after(() => journal.close());
  t.after(() => rmSync(root, { recursive: true }));
  await record(journal, "A");
  rmSync(state, { recursive: true });
  await assert.rejects(record(journal, "B"), /there is no folder .*: create it for posline's user/);
  assert.match(journal.state, /there is no folder/);
  mkdirSync(state);
  assert.equal(await isWriterLocked(state), false);
  await record(journal, "C");
  assert.equal(journal.state, "ok");
  assert.equal(await isWriterLocked(state), true);
  // Both at once, while it is running.
  rmSync(state, { recursive: true });
  mkdirSync(state);
  await record(journal, "D");
  assert.ok(existsSync(journalFile(state)));
  assert.equal(readdirSync(state).filter((name) => name.startsWith("journal.lock.")).length, 1);
  const { records, isWritten } = await readJournal(state);
  assertMapped(joinOperations(records), ["D answered"], ({ sent, ending }) => `${sent.key} ${ending?.outcome}`);
  assert.equal(isWritten, true);
});
