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
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, mock, test } from "node:test";
import { nodeDisk } from "../../src/journal/disk.ts";

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

test("nodeDisk.create() leaves neither a file nor a descriptor when the mode can't be set", async () => {
  const handle = await open("/dev/null", "r");
  // The class of file handles isn't exported.
  const FileHandle = Object.getPrototypeOf(handle) as { chmod: (mode: number) => Promise<void> };
  await handle.close();
  const chmod = mock.method(FileHandle, "chmod", () => Promise.reject(Object.assign(new Error("EPERM"), { code: "EPERM" })));
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
