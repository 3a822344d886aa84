import assert from "node:assert/strict";
import { test } from "node:test";
import { tableLines } from "../../src/core/table.ts";

test("tableLines() makes columns as wide as their widest cell, by characters and not by their code units", () => {
  const rows = [
    ["KEY", "AMOUNT", "END"],
    ["\u{1F600}\u{1F600}\u{1F600}\u{1F600}", "5", ""],
  ];
  assert.deepEqual(tableLines(rows), ["KEY   AMOUNT  END", "\u{1F600}\u{1F600}\u{1F600}\u{1F600}  5"]);
  assert.deepEqual(tableLines(rows, { least: [5], right: [1] }), [
    "KEY    AMOUNT  END",
    "\u{1F600}\u{1F600}\u{1F600}\u{1F600}        5",
  ]);
  assert.deepEqual(tableLines([]), []);
});
