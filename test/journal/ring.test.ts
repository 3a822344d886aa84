import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Disk, nodeDisk } from "../../src/journal/disk.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { openRing, type Ring } from "../../src/journal/ring.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { systemError } from "./sim-disk.ts";

const root = mkdtempSync(join(tmpdir(), "posline-ring-"));
after(() => rmSync(root, { recursive: true }));
const newFolder = () => mkdtempSync(join(root, "folder-"));

/** What is open of a folder. */
function openOf(folder: string): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)].filter((path) => path.startsWith(folder));
    } catch {
      return [];
    }
  });
}

const slots = 128;
const bytes = slots * slotBytes;
const textOf = (sequence: number) => `{"kind":"start","time":"2026-01-01T00:00:00.000Z","version":"${sequence}"}`;

const write = (ring: Ring, from: number, to: number) =>
  ring.write(Array.from({ length: to - from + 1 }, (_, at) => ({ sequence: from + at, text: textOf(from + at) })));

/** What a ring of this size has, by the numbers of its records. */
async function numbersIn(folder: string, size = bytes): Promise<readonly number[]> {
  const { ring, found } = await openRing(nodeDisk, folder, size);
  await ring.close();
  return found.records.map(({ sequence }) => sequence);
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test("openRing() leaves neither a half-made file nor a descriptor where it can't make one, and the one before as it was", async () => {
  for (const failing of ["rename", "syncFolder"] as const) {
    const disk: Disk = { ...nodeDisk, [failing]: () => Promise.reject(systemError("EIO")) };
    const folder = newFolder();
    await assert.rejects(openRing(disk, folder, bytes), { code: "EIO" });
    assert.ok(!readdirSync(folder).includes("journal.new"));
    assert.deepEqual(openOf(folder), []);
  }
  const folder = newFolder();
  const { ring } = await openRing(nodeDisk, folder, bytes);
  assert.equal(statSync(journalFile(folder)).mode & 0o777, 0o640);
  await write(ring, 1, 3);
  await ring.close();
  const disk: Disk = { ...nodeDisk, rename: () => Promise.reject(systemError("ENOSPC")) };
  const { ring: kept, notices } = await openRing(disk, folder, 2 * bytes);
  assert.match(notices.join("\n"), /keeps its size of 65536 bytes: a file of the configured size can't be created \(.*ENOSPC/);
  assert.deepEqual(readdirSync(folder), ["journal"]);
  assert.equal(openOf(folder).length, 1);
  assert.equal(await write(kept, 4, 4), true);
  await kept.close();
  assert.deepEqual([await numbersIn(folder), openOf(folder)], [[1, 2, 3, 4], []]);
});

test("openRing() has a new file on the disk before that gets its name, and the name on the disk before it is used", async () => {
  const done: string[] = [];
  /** What a disk does in its own time. */
  const slowly = async (what: string, does: () => Promise<void>) => {
    await new Promise((resolve) => setImmediate(resolve));
    await does();
    done.push(what);
  };
  const disk: Disk = {
    ...nodeDisk,
    create: async (path, mode) => {
      const file = await nodeDisk.create(path, mode);
      return {
        facts: () => file.facts(),
        read: (buffer, position) => file.read(buffer, position),
        write: (buffer, position) => slowly("write", () => file.write(buffer, position)),
        sync: () => slowly("sync", () => file.sync()),
        close: () => file.close(),
      };
    },
    rename: (from, to) => slowly("rename", () => nodeDisk.rename(from, to)),
    syncFolder: (name) => slowly("syncFolder", () => nodeDisk.syncFolder(name)),
  };
  const { ring } = await openRing(disk, newFolder(), bytes);
  assert.deepEqual(done, ["write", "sync", "rename", "syncFolder"]);
  assert.equal(await write(ring, 1, 1), true);
  assert.deepEqual(done.slice(4), ["write", "sync"]);
  await ring.close();
});

test("openRing() takes the newest records along into a larger and into a smaller file, and closes the one before", async () => {
  const folder = newFolder();
  const { ring } = await openRing(nodeDisk, folder, bytes);
  for (const from of [1, 65, 129]) await write(ring, from, from + 63);
  await ring.close();
  for (const [size, kept] of [
    [2 * bytes, numbers(65, 192)],
    [bytes / 2, numbers(65, 192)],
    [bytes, numbers(129, 192)],
  ] as const) {
    const { ring: resized, found } = await openRing(nodeDisk, folder, size);
    assert.deepEqual(
      found.records.map(({ sequence }) => sequence),
      kept,
    );
    assert.equal(openOf(folder).length, 1);
    await resized.close();
  }
  assert.deepEqual(await numbersIn(folder), numbers(129, 192));
});

test("openRing() takes along into a file of another size what only a later posline knows, and misses nothing there", async () => {
  const folder = newFolder();
  const { ring } = await openRing(nodeDisk, folder, bytes);
  await write(ring, 1, 20);
  await ring.write([{ sequence: 21, text: '{"kind":"later","time":"2026-01-01T00:00:00.000Z"}' }]);
  await write(ring, 22, 80);
  await ring.close();
  for (const size of [2 * bytes, bytes]) {
    await (await openRing(nodeDisk, folder, size)).ring.close();
    const { ring: resized, found } = await openRing(nodeDisk, folder, size);
    assert.deepEqual([found.missing, found.sequences], [[], numbers(0, 80)]);
    await resized.close();
  }
});

test("openRing() removes the half-made file of a process that was killed while it made one, whatever size is wanted by then", async () => {
  for (const size of [bytes, 2 * bytes]) {
    const folder = newFolder();
    const { ring } = await openRing(nodeDisk, folder, bytes);
    await write(ring, 1, 3);
    await ring.close();
    writeFileSync(`${journalFile(folder)}.new`, Buffer.alloc(bytes));
    assert.deepEqual(await numbersIn(folder, size), [1, 2, 3]);
    assert.deepEqual(readdirSync(folder), ["journal"]);
  }
});

test("Ring.write() goes on in a file that was cut and that there is no room to make anew, and grows it again", async () => {
  const folder = newFolder();
  const { ring } = await openRing(nodeDisk, folder, bytes);
  await write(ring, 1, 20);
  await ring.close();
  truncateSync(journalFile(folder), bytes / 2);
  const disk: Disk = { ...nodeDisk, create: () => Promise.reject(systemError("ENOSPC")) };
  const { ring: cut } = await openRing(disk, folder, bytes);
  // Up to the cut, across it, behind it, and round the end of the ring.
  for (const [from, to] of [
    [21, 50],
    [51, 70],
    [71, 71],
    [72, 119],
    [120, 140],
    [141, 141],
  ] as const)
    assert.equal(await write(cut, from, to), true, `${from} to ${to}`);
  await cut.close();
  assert.deepEqual(await numbersIn(folder), numbers(14, 141));
});

test("Ring.write() puts records whose slots touch out in one write, and others each in their own place", async () => {
  const folder = newFolder();
  const writes: (readonly [number, number])[] = [];
  const disk: Disk = {
    ...nodeDisk,
    open: async (path) => {
      const file = await nodeDisk.open(path);
      return Object.assign(file, {
        write: async (buffer: Buffer, position: number) => {
          writes.push([position / slotBytes, buffer.length / slotBytes]);
          await Object.getPrototypeOf(file).write.call(file, buffer, position);
        },
      });
    },
  };
  await (await openRing(nodeDisk, folder, bytes)).ring.close();
  const { ring } = await openRing(disk, folder, bytes);
  const text = textOf(1);
  await ring.write([5, 6, 7, 9, 126, 127, 128, 129].map((sequence) => ({ sequence, text })));
  assert.deepEqual(writes, [
    [5, 3],
    [9, 1],
    [126, 2],
    [0, 2],
  ]);
  assert.equal(await ring.write([]), true);
  await ring.close();
});

test("openRing() keeps no descriptor of a file that isn't posline's, nor of an empty one where there is no room for another", async () => {
  const foreign = newFolder();
  writeFileSync(journalFile(foreign), "my diary\n".repeat(1_000));
  await assert.rejects(openRing(nodeDisk, foreign, bytes), /is not a journal of posline/);
  const empty = newFolder();
  writeFileSync(journalFile(empty), "");
  const disk: Disk = { ...nodeDisk, create: () => Promise.reject(systemError("ENOSPC")) };
  await assert.rejects(openRing(disk, empty, bytes), { code: "ENOSPC" });
  assert.deepEqual(openOf(root), []);
});

test("openRing() makes no new file in place of one that it may not open or can't read", async () => {
  for (const code of ["EACCES", "EIO", "EROFS"]) {
    const folder = newFolder();
    const { ring } = await openRing(nodeDisk, folder, bytes);
    await write(ring, 1, 3);
    await ring.close();
    await assert.rejects(openRing({ ...nodeDisk, open: () => Promise.reject(systemError(code)) }, folder, bytes), { code });
    assert.deepEqual([readdirSync(folder), await numbersIn(folder)], [["journal"], [1, 2, 3]]);
  }
});
