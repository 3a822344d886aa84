import assert from "node:assert/strict";
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, mock, test } from "node:test";
import { nodeDisk } from "../../src/journal/disk.ts";
import { systemError } from "./sim-disk.ts";

const root = mkdtempSync(join(tmpdir(), "posline-disk-"));
after(() => rmSync(root, { recursive: true }));

/** What is open of the folder. */
function openOfRoot(): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)].filter((path) => path.startsWith(root));
    } catch {
      return [];
    }
  });
}

/** The class of file handles, which isn't exported. */
async function fileHandles(): Promise<FileHandle> {
  const handle = await open("/dev/null", "r");
  await handle.close();
  // Its methods are all that is needed.
  return Object.getPrototypeOf(handle) as FileHandle;
}

test("nodeDisk.create() leaves neither a file nor a descriptor when the mode can't be set", async () => {
  const chmod = mock.method(await fileHandles(), "chmod", () => Promise.reject(systemError("EPERM")));
  await assert.rejects(nodeDisk.create(join(root, "journal.new"), 0o640), { code: "EPERM" });
  chmod.mock.restore();
  assert.deepEqual(readdirSync(root), []);
  assert.deepEqual(openOfRoot(), []);
});

test("nodeDisk.create() makes a new file in the place of what is there, and writes through no link", async () => {
  const folder = mkdtempSync(join(root, "planted-"));
  const [path, diary] = [join(folder, "journal.new"), join(folder, "diary")];
  writeFileSync(diary, "dear");
  for (const plant of [() => symlinkSync(diary, path), () => writeFileSync(path, "a longer text from before")]) {
    plant();
    const file = await nodeDisk.create(path, 0o640);
    await file.write(Buffer.from("abc"), 0);
    await file.close();
    assert.ok(lstatSync(path).isFile());
    assert.equal(readFileSync(path, "utf8"), "abc");
    rmSync(path);
  }
  assert.equal(readFileSync(diary, "utf8"), "dear");
  rmSync(folder, { recursive: true });
});

test("nodeDisk tells a file by what it is, not by its name", async () => {
  const path = join(root, "one");
  const file = await nodeDisk.create(path, 0o640);
  await file.write(Buffer.from("abc"), 0);
  const facts = await file.facts();
  assert.deepEqual(await nodeDisk.factsOf(path), facts);
  assert.equal(facts.bytes, 3);
  assert.equal(statSync(path).mode & 0o777, 0o640);
  const other = await nodeDisk.create(join(root, "two"), 0o640);
  assert.notEqual((await other.facts()).identity, facts.identity);
  await nodeDisk.rename(join(root, "two"), path);
  assert.equal((await nodeDisk.factsOf(path))?.identity, (await other.facts()).identity);
  await nodeDisk.remove(path);
  assert.equal(await nodeDisk.factsOf(path), undefined);
  assert.equal(await nodeDisk.factsOf(join(path, "below")), undefined);
  await file.close();
  await other.close();
});

type InPieces = (buffer: Buffer, at: number, length: number, position: number) => Promise<unknown>;

test("nodeDisk reads up to the end of a file, and writes the rest of what a write left over, until the disk takes no more", async () => {
  const path = join(root, "pieces");
  const file = await nodeDisk.create(path, 0o640);
  const handles = await fileHandles();
  const { write, read }: { readonly write: InPieces; readonly read: InPieces } = handles;
  // Pieces of 2 bytes, as a signal or an almost full disk makes them.
  mock.method(handles, "write", function (this: FileHandle, buffer: Buffer, at: number, length: number, position: number) {
    assert.equal(length, buffer.length - at);
    return write.call(this, buffer, at, Math.min(2, length), position);
  });
  mock.method(handles, "read", function (this: FileHandle, buffer: Buffer, at: number, length: number, position: number) {
    assert.equal(length, buffer.length - at);
    return read.call(this, buffer, at, Math.min(2, length), position);
  });
  try {
    await file.write(Buffer.from("abcde"), 1);
    const found = Buffer.alloc(8, "-");
    assert.equal(await file.read(found, 2), 4);
    assert.equal(found.toString(), "bcde----");
    mock.method(handles, "write", async () => ({ bytesWritten: 0, buffer: found }));
    await assert.rejects(file.write(found, 0), /the disk accepts no more bytes/);
  } finally {
    mock.restoreAll();
  }
  await file.close();
  assert.equal(readFileSync(path, "latin1"), "\u0000abcde");
  rmSync(path);
});

test("nodeDisk tells that a file's data, or the names of a folder, couldn't be synced, and leaves no descriptor", async () => {
  const path = join(root, "synced");
  const file = await nodeDisk.create(path, 0o640);
  const handles = await fileHandles();
  for (const [name, sync] of [
    ["datasync", () => file.sync()],
    ["sync", () => nodeDisk.syncFolder(root)],
  ] as const) {
    await sync();
    const failing = mock.method(handles, name, () => Promise.reject(systemError("EIO")));
    await assert.rejects(sync(), { code: "EIO" });
    failing.mock.restore();
  }
  await file.close();
  rmSync(path);
  assert.deepEqual(openOfRoot(), []);
});

test("nodeDisk.factsOf() tells of an error that isn't a missing file", async () => {
  const path = join(root, "loop");
  symlinkSync(path, path);
  await assert.rejects(nodeDisk.factsOf(path), { code: "ELOOP" });
  rmSync(path);
});
