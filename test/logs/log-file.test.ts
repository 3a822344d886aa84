import assert from "node:assert/strict";
import { appendFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FileTail, readLogFile, SourceError } from "../../src/logs/log-file.ts";
import type { LogSink } from "../../src/logs/view.ts";
import { scratchFolder } from "../support/bridge-process.ts";

/** What a sink is told, as text: `|` where a source began anew, `!` where all that was there has come. */
class Heard implements LogSink {
  text = "";
  push(chunk: Buffer): void {
    this.text += chunk.toString();
  }
  endLine(): void {
    this.text += "|";
  }
  caughtUp(): void {
    this.text += "!";
  }
}

/** A file that is followed, looked at when the test says so. */
async function following(use: (file: string, look: () => Promise<string>) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const file = join(folder.path, "log");
  writeFileSync(file, "one\n");
  const tail = new FileTail(file);
  try {
    await tail.open();
    await use(file, async () => {
      const heard = new Heard();
      await tail.read(heard);
      return heard.text;
    });
  } finally {
    await tail.close();
  }
}

test("FileTail.read() gives what is there, then what was appended", () =>
  following(async (file, look) => {
    assert.equal(await look(), "one\n");
    assert.equal(await look(), "");
    appendFileSync(file, "two\nthr");
    assert.equal(await look(), "two\nthr");
    appendFileSync(file, `ee\n${"x".repeat(200_000)}\n`);
    assert.equal(await look(), `ee\n${"x".repeat(200_000)}\n`);
  }));

test("FileTail.read() goes on across a rotation, and loses nothing that was written to the old file", () =>
  following(async (file, look) => {
    await look();
    renameSync(file, `${file}.1`);
    appendFileSync(`${file}.1`, "two\n");
    assert.equal(await look(), "two\n");
    appendFileSync(`${file}.1`, "three");
    writeFileSync(file, "four\n");
    assert.equal(await look(), "three|four\n");
    appendFileSync(file, "five\n");
    assert.equal(await look(), "five\n");
    rmSync(file);
    assert.equal(await look(), "");
    writeFileSync(file, "six\n");
    assert.equal(await look(), "|six\n");
  }));

test("FileTail.read() begins anew where the file got shorter", () =>
  following(async (file, look) => {
    appendFileSync(file, "two\n");
    await look();
    truncateSync(file);
    appendFileSync(file, "new\n");
    assert.equal(await look(), "|new\n");
  }));

test("readLogFile() gives all of a file and says when that has come", async () => {
  const folder = scratchFolder();
  const file = join(folder.path, "log");
  writeFileSync(file, "one\ntwo");
  const heard = new Heard();
  await readLogFile(file, false, heard, new AbortController().signal);
  folder.remove();
  assert.equal(heard.text, "one\ntwo!|");
});

test("readLogFile() says why it can't read what was named", async () => {
  const signal = new AbortController().signal;
  const refused = (path: string, message: RegExp) =>
    assert.rejects(readLogFile(path, false, new Heard(), signal), (error) => {
      assert.ok(error instanceof SourceError);
      assert.equal(error.exitCode, 69);
      assert.match(error.message, message);
      return true;
    });
  await refused(
    "/nowhere/posline.log",
    /^Cannot read \/nowhere\/posline\.log: there is no such file: name the one the log goes to$/,
  );
  await refused("/", /^Cannot read \/: it is a folder: name a file in it$/);
});
