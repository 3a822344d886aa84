import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { LastRecord } from "../../src/journal/last-record.ts";
import { until } from "../support/until.ts";

const root = mkdtempSync(join(tmpdir(), "posline-last-"));
after(() => rmSync(root, { recursive: true }));

test("LastRecord keeps the newest number for the next process, and writes it no more than every ten minutes but at the end", async () => {
  const file = join(root, "kept");
  const last = new LastRecord(file);
  assert.equal(last.atStart, 0);
  await last.write();
  assert.throws(() => readFileSync(file), /ENOENT/, "no record, no number");
  last.note(7);
  await until(() => new LastRecord(file).atStart === 7, "the first number to be written");
  last.note(8);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(new LastRecord(file).atStart, 7);
  await last.write();
  assert.equal(new LastRecord(file).atStart, 8);
});

test("LastRecord is 0 if nothing is known, and above every number if the file holds a word", async () => {
  assert.equal(new LastRecord(undefined).atStart, 0);
  await new LastRecord(undefined).write();
  for (const [text, atStart] of [
    ["", 0],
    ["12\n", 12],
    ["restored\n", Number.POSITIVE_INFINITY],
  ] as const) {
    const file = join(root, "written");
    writeFileSync(file, text);
    assert.equal(new LastRecord(file).atStart, atStart);
  }
  const nowhere = new LastRecord(join(root, "no", "folder"));
  nowhere.note(3);
  await nowhere.write();
});
