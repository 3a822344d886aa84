import assert from "node:assert/strict";
import fs, { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { replaceFile } from "../../src/core/replace-file.ts";
import { scratchFolder } from "../support/bridge-process.ts";

const folder = scratchFolder();
let homes = 0;

/** A folder of its own, so that what is left in it can be told. */
function newHome(): string {
  const home = join(folder.path, `home-${++homes}`);
  mkdirSync(home);
  return home;
}

test("replaceFile() leaves one whole file with the new text, and no scraps beside it", () => {
  const home = newHome();
  const path = join(home, "file");
  for (const text of ["one", "x".repeat(100_000), "", "Ünïcödé ☕\n"]) {
    replaceFile(path, text);
    assert.equal(readFileSync(path, "utf8"), text);
  }
  assert.deepEqual(readdirSync(home), ["file"]);
});

test("replaceFile() makes a file that only its owner may read, whoever might read the one before", () => {
  const path = join(newHome(), "file");
  replaceFile(path, "one");
  assert.equal(lstatSync(path).mode & 0o777, 0o600);
  chmodSync(path, 0o644);
  replaceFile(path, "two");
  assert.equal(lstatSync(path).mode & 0o777, 0o600);
});

test("replaceFile() never writes into the file that was there: whoever has it open reads the whole of it", () => {
  const path = join(newHome(), "file");
  writeFileSync(path, "one");
  const before = lstatSync(path).ino;
  replaceFile(path, "two");
  assert.notEqual(lstatSync(path).ino, before);
});

test("replaceFile() writes to where a link leads, and leaves the link", () => {
  const home = newHome();
  const away = newHome();
  const path = join(away, "file");
  const link = join(home, "link");
  writeFileSync(path, "one");
  symlinkSync(path, link);
  replaceFile(link, "two");
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.equal(readFileSync(path, "utf8"), "two");
  assert.deepEqual([readdirSync(home), readdirSync(away)], [["link"], ["file"]]);
});

test("replaceFile() throws what the system says, leaves what was there, and no scraps beside it", () => {
  const home = newHome();
  const taken = join(home, "taken");
  mkdirSync(taken);
  assert.throws(() => replaceFile(taken, "text"), { code: "EISDIR" });
  const file = join(home, "file");
  writeFileSync(file, "one");
  assert.throws(() => replaceFile(join(home, "none", "file"), "text"), { code: "ENOENT" });
  assert.throws(() => replaceFile(join(file, "inside"), "text"), { code: "ENOTDIR" });
  assert.deepEqual(readdirSync(home).sort(), ["file", "taken"]);
  assert.equal(readFileSync(file, "utf8"), "one");
});

test("replaceFile() follows no link and writes over nothing where its new file might be made", () => {
  const home = newHome();
  const path = join(home, "file");
  const diary = join(home, "diary");
  writeFileSync(diary, "dear");
  // The names that could be foreseen.
  symlinkSync(diary, `${path}.${process.pid}.new`);
  symlinkSync(diary, `${path}.new`);
  replaceFile(path, "one");
  assert.equal(readFileSync(path, "utf8"), "one");
  assert.ok(lstatSync(path).isFile());
  assert.equal(readFileSync(diary, "utf8"), "dear");
  assert.equal(readdirSync(home).length, 4);
});

test("replaceFile() has the new file on the disk before it takes the old one's place, and its name there before it returns", async () => {
  const path = join(newHome(), "file");
  const { fsyncSync, renameSync } = fs;
  const done: string[] = [];
  try {
    fs.fsyncSync = (fd) => {
      const stat = fs.fstatSync(fd);
      done.push(stat.isDirectory() ? "the name is on the disk" : `${stat.size} bytes are on the disk`);
      fsyncSync(fd);
    };
    fs.renameSync = (from, to) => {
      done.push("renamed");
      renameSync(from, to);
    };
    syncBuiltinESMExports();
    replaceFile(path, "one");
  } finally {
    Object.assign(fs, { fsyncSync, renameSync });
    syncBuiltinESMExports();
  }
  assert.deepEqual(done, ["3 bytes are on the disk", "renamed", "the name is on the disk"]);
});

test("replaceFile() leaves the new file to the readers that are given", () => {
  const path = join(newHome(), "file");
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  replaceFile(path, "one", { uid, gid, mode: 0o100640 });
  const facts = lstatSync(path);
  assert.deepEqual([facts.mode & 0o777, facts.uid, facts.gid], [0o640, uid, gid]);
});
