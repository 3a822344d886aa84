import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { printable, printableJson, printableLines, quoted } from "../../src/core/shell-text.ts";
import { evil, obeyed } from "../support/evil-text.ts";

test("quoted() gives a shell back the very path", () => {
  fc.assert(
    fc.property(
      fc.string().map((text) => text.replaceAll("\0", "")),
      (text) => {
        assert.equal(execFileSync("sh", ["-c", `printf %s ${quoted(text)}`], { encoding: "utf8" }), text);
      },
    ),
    { numRuns: 20, examples: [["/dev/it's"], [""], ["$(date)"], ["/dev/ttyUSB0"]] },
  );
});

/** Every character that a terminal obeys, that turns a line round, or that nobody sees, by its number. */
const numbers = [
  ...Array.from({ length: 0x20 }, (_, n) => n),
  ...Array.from({ length: 0x21 }, (_, n) => 0x7f + n),
  ...[0xad, 0x61c, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x2060, 0xfeff, 0xfff9, 0xe0041],
  ...Array.from({ length: 5 }, (_, n) => 0x202a + n),
  ...Array.from({ length: 4 }, (_, n) => 0x2066 + n),
];

test("printable() lets no control, C1, direction, separator or invisible character through, and every other one", () => {
  for (const number of numbers) {
    const text = `a${String.fromCodePoint(number)}b`;
    assert.equal(printable(text), "a\uFFFDb", number.toString(16));
    assert.deepEqual(JSON.parse(printableJson(JSON.stringify({ text }))), { text });
    assert.doesNotMatch(printableJson(JSON.stringify({ text })), obeyed, number.toString(16));
  }
  const harmless = "Ünïcödé ☕ 日本 😀 עברית € \uFFFD";
  assert.equal(printable(harmless), harmless);
  assert.equal(printableJson(JSON.stringify(harmless)), JSON.stringify(harmless));
});

test("printableLines() keeps the line breaks of a text, and nothing else that a terminal obeys", () => {
  assert.equal(printableLines("two\n  problems\u009b2J\r"), "two\n  problems\uFFFD2J\uFFFD");
});

test("printableJson() keeps the value and its layout, whatever stands in it", () => {
  const values = fc.jsonValue().map((value) => ({ value, evil }));
  fc.assert(
    fc.property(values, fc.constantFrom(undefined, 2, "\t"), (value, space) => {
      const json = JSON.stringify(value, undefined, space);
      const safe = printableJson(json);
      assert.doesNotMatch(safe.replaceAll(/[\n\t]/g, ""), obeyed);
      assert.deepEqual(JSON.parse(safe), JSON.parse(json));
      assert.equal(safe.split("\n").length, json.split("\n").length);
    }),
    { examples: [[{ value: "\u{e0041}\ud800", evil }, undefined]] },
  );
});
