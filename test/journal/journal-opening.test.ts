import assert from "node:assert/strict";
import { test } from "node:test";
import { journalFile } from "../../src/journal/errors.ts";
import { slotBytes, writeSlot } from "../../src/journal/slot.ts";
import { type JournalOptions, type Operations, openOperations } from "../../src/operations/operations.ts";
import { crc32 } from "../../src/wire/crc32.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { bytes, callOf, folder, routeTo, Told } from "./records.ts";
import { SimDisk, systemError } from "./sim-disk.ts";

/**
 * Tests src/operations/operations.ts.
 *
 * openOperations() of src/operations/operations.ts over src/journal/ring.ts: what an opening finds and reports.
 */

async function opened(settings: Partial<JournalOptions> = {}, disk = new SimDisk()) {
  const told = new Told();
  const journal = await openOperations({ folder, bytes, onFailure: "relay", report: told, disk, ...settings });
  return { journal, disk, told };
}

const begin = (journal: Operations, key: string) => journal.begin(callOf(key), routeTo());

/** Sends and ends one call. */
async function record(journal: Operations, key: string): Promise<void> {
  const entry = begin(journal, key);
  await entry.sent();
  await entry.ended({ outcome: "answered", status: "success", code: 0 });
}

const keysOf = (operations: readonly { readonly key: string | undefined }[]) => operations.map(({ key }) => key);

/** Keys of what a new process finds without an outcome. */
const lostOn = async (disk: SimDisk) => keysOf((await opened({}, disk.afterCut([], true))).journal.unknown());

test("openOperations() goes on without a disk at its start, and begins when there is one", async () => {
  const disk = new SimDisk();
  disk.trouble = { error: systemError("ENOENT") };
  const { journal, told } = await opened({}, disk);
  assert.equal(told.failures.length, 1);
  disk.trouble = undefined;
  await record(journal, "A");
  await begin(journal, "B").sent();
  assert.equal(journal.state, "ok");
  assert.deepEqual(await lostOn(disk), ["B"]);
});

test("openOperations() writes nothing into a new file before that has its name, which a power cut leaves it", async () => {
  const disk = new SimDisk();
  const { rename } = disk;
  disk.rename = async (from, to) => {
    await new Promise((resolve) => setImmediate(resolve));
    await rename(from, to);
  };
  const { journal, told } = await opened({}, disk);
  await begin(journal, "A").sent();
  assert.deepEqual([told.notices, told.failures], [[], []]);
  assert.deepEqual(keysOf((await opened({}, disk.afterCut([], false))).journal.unknown()), ["A"]);
});

/** A slot of another version, with its checksum right. */
function laterSlot(): Buffer {
  const slot = writeSlot(0, "{}", 128);
  slot.writeUInt8(2, 4);
  slot.writeUInt32BE(crc32(slot, 24, slotBytes, crc32(slot, 0, 20)), 20);
  return slot;
}

test("openOperations() leaves a file alone that isn't posline's, and one of a later posline", async () => {
  const later = laterSlot();
  for (const [content, said] of [
    [Buffer.from("my diary\n".repeat(1_000)), /is not a journal of posline, or nothing in it is readable: move the file away/],
    [Buffer.alloc(10 * slotBytes, 7), /is not a journal of posline/],
    [later, /was written by a newer posline: install that version, or move the file away/],
  ] as const) {
    const disk = new SimDisk();
    disk.put(journalFile(folder), content);
    const { journal, told } = await opened({}, disk);
    assert.match(told.failures[0] ?? "", said);
    await record(journal, "A");
    assert.deepEqual(disk.files.get(journalFile(folder))?.current, content);
    disk.files.clear();
    await record(journal, "B");
    assert.equal(journal.state, "ok");
  }
});

test("openOperations() counts torn slots and says so, and keeps the others", async () => {
  const { journal, disk } = await opened();
  for (const key of ["A", "B", "C"]) await record(journal, key);
  await begin(journal, "LOST").sent();
  const found = disk.afterCut([], true);
  const content = found.files.get(journalFile(folder))?.current ?? Buffer.alloc(0);
  content.fill(0x55, 4 * slotBytes + 100, 4 * slotBytes + 103);
  found.put(journalFile(folder), content);
  const next = await opened({}, found);
  assert.match(next.told.notices.join(), /^1 record in .*journal can't be read: /);
  assertMapped(next.journal.unknown(), ["LOST"], ({ key }) => key);
});

test("openOperations() keeps the old size where the disk has no room for another file, and says so", async () => {
  const { journal, disk } = await opened();
  await begin(journal, "LOST").sent();
  await journal.close();
  disk.create = async () => {
    throw systemError("ENOSPC");
  };
  const next = await opened({ bytes: 2 * bytes }, disk);
  assert.match(next.told.notices.join(), /keeps its size of 65536 bytes: a file of the configured size can't be created/);
  assert.equal(next.journal.state, "ok");
  assert.equal(next.journal.unknown().length, 1);
});

test("openOperations() tells one by one what was sent since the last start, and of the older ones how many there are", async () => {
  let disk = new SimDisk();
  const { journal: first } = await opened({}, disk);
  await record(first, "DONE");
  const told = begin(first, "TOLD");
  await told.sent();
  await told.ended({ outcome: "unknown" });
  for (const key of ["A", "B"]) await begin(first, key).sent();
  disk = disk.afterCut([], true);
  const second = await opened({}, disk);
  assertMapped(second.told.finds, [[["A", "B"], 1]], ({ recent, older }) => [keysOf(recent), older]);
  await begin(second.journal, "C").sent();
  disk = disk.afterCut([], true);
  const third = await opened({}, disk);
  assertMapped(third.told.finds, [[["C"], 3]], ({ recent, older }) => [keysOf(recent), older]);
  assert.equal(third.journal.unknownTotal, 4);
  disk = disk.afterCut([], true);
  const fourth = await opened({}, disk);
  assertMapped(fourth.told.finds, [[[], 4]], ({ recent, older }) => [keysOf(recent), older]);
  const fresh = await opened({}, new SimDisk());
  assert.deepEqual(fresh.told.finds, [], "nothing is said of nothing");
});

test("openOperations() tells what it finds once its disk is there, and counts it beside what came meanwhile", async () => {
  const before = new SimDisk();
  await begin((await opened({}, before)).journal, "LOST").sent();
  const disk = before.afterCut([], true);
  disk.trouble = { error: systemError("EIO") };
  const { journal, told } = await opened({}, disk);
  const meanwhile = begin(journal, "MEANWHILE");
  await meanwhile.sent();
  await meanwhile.ended({ outcome: "unknown" });
  assert.deepEqual([told.finds, keysOf(journal.unknown())], [[], ["MEANWHILE"]]);
  let calls = 0;
  journal.onChange(() => {
    if (journal.unknownTotal > 1) calls++;
  });
  disk.trouble = undefined;
  await record(journal, "NEXT");
  assert.ok(calls > 0, "what asks about them is told");
  assertMapped(told.finds, [[["LOST"], 0]], ({ recent, older }) => [keysOf(recent), older]);
  assert.deepEqual([keysOf(journal.unknown()), journal.unknownTotal], [["LOST", "MEANWHILE"], 2]);
});

test("Journal reads the key of a request that nobody has looked into, and masks it", async () => {
  const { journal, disk } = await opened();
  const data = Buffer.from('{"documentExtID":"4111111111111111","amount":5}').toString("base64");
  const call = { ...callOf("K", { service: "fiscal", body: `data=${data}&sign=QUJD` }), key: undefined };
  await journal.begin(call, routeTo("/sale", "fiscal")).sent();
  assert.deepEqual(await lostOn(disk), ["411111******1111"]);
  assert.equal(disk.files.get(journalFile(folder))?.current.includes("4111111111111111"), false);
});
