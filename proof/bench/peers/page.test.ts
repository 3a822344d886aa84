import assert from "node:assert/strict";
import { test } from "node:test";
import { markdownOf, shown } from "./page.ts";

test("markdownOf() makes a table that Markdown reads: a caption, a rule as wide as the head, a pipe in a cell escaped", () => {
  const table = {
    caption: "Round trip",
    columns: ["", "p50", "what"],
    rows: [
      ["a|b", 12.345, "x"],
      ["c", undefined],
    ],
  };
  assert.equal(
    markdownOf(table),
    ["Round trip", "", "|  | p50 | what |", "| --- | ---: | --- |", "| a\\|b | 12.3 | x |", "| c |  |  |"].join("\n"),
  );
});

test("shown() gives three digits, whole numbers whole, and nothing for what isn't a figure", () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, "0"],
    [0.12345, "0.123"],
    [7, "7"],
    [1.2345, "1.23"],
    [12.345, "12.3"],
    [123.45, "123"],
    [12_345.6, "12,346"],
    [Number.NaN, ""],
  ];
  for (const [value, text] of cases) assert.equal(shown(value), text);
});
