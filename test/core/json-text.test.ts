import assert from "node:assert/strict";
import { test } from "node:test";
import { isSpace, stringEnd } from "../../src/core/json-text.ts";

test("isSpace() is true for the four kinds of white space that JSON has", () => {
  const found = Array.from({ length: 256 }, (_, byte) => byte).filter(isSpace);
  assert.deepEqual(found, [0x09, 0x0a, 0x0d, 0x20]);
  assert.equal(isSpace(undefined), false);
});

test("stringEnd() finds the closing quote, past escaped ones, and never leaves the text", () => {
  for (const [text, end] of [
    ['"a"', 2],
    ['""', 1],
    ['"a\\"b", "c"', 5],
    ['"a\\\\"', 4],
    ['"no end', 7],
    ['"a\\', 3],
  ] as const) {
    assert.equal(stringEnd(Buffer.from(text), 1), end, text);
  }
});
