import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, parseObject, textOf, wholeOf } from "../../src/envelope/json.ts";

test("wholeOf() gives a single piece itself, and several as one", () => {
  const piece = Buffer.from("ab");
  assert.equal(wholeOf([piece]), piece);
  assert.equal(wholeOf([piece, Buffer.from("c")]).toString(), "abc");
  assert.equal(wholeOf([]).length, 0);
});

test("textOf() reads a character that is cut between two pieces, and nothing from none", () => {
  const text = Buffer.from("a☕b");
  for (let cut = 0; cut <= text.length; cut++) assert.equal(textOf([text.subarray(0, cut), text.subarray(cut)]), "a☕b");
  assert.equal(textOf([]), "");
});

test("parseObject() takes an object and no other JSON", () => {
  assert.deepEqual(parseObject(' {"a":[1]} '), { a: [1] });
  for (const text of ["", "{", "null", "1", '"{}"', "[]", "{}{}"]) assert.equal(parseObject(text), undefined, text);
});

test("keyOf() writes a number as a key where it still has all of its digits", () => {
  for (const [value, key] of [
    [0, "0"],
    [-1, "-1"],
    [1.5, "1.5"],
    [2 ** 53 - 1, "9007199254740991"],
    [2 ** 53, undefined],
    ["x".repeat(64), "x".repeat(64)],
    ["x".repeat(65), "x".repeat(64)],
    ["", undefined],
    [true, undefined],
  ] as const)
    assert.equal(keyOf(value), key);
});
