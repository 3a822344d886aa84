import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject, looseInteger } from "../../src/core/json-object.ts";

test("isObject() tells a JSON object from every other JSON value", () => {
  for (const text of ["{}", '{"a":null}', '{"length":0}']) assert.equal(isObject(JSON.parse(text)), true, text);
  for (const text of ["null", "[]", "[{}]", '"{}"', "0", "true"]) assert.equal(isObject(JSON.parse(text)), false, text);
  assert.equal(isObject(undefined), false);
});

test("looseInteger() reads an integer however it is written, and nothing else", () => {
  for (const value of [44, "44"]) assert.equal(looseInteger(value), 44);
  assert.equal(looseInteger("-15"), -15);
  for (const value of [undefined, null, "", "4.4", 4.4, true, "0x10", 9007199254740993n])
    assert.equal(looseInteger(value), undefined);
});

test("looseInteger() takes as many digits as a number holds", () => {
  assert.equal(looseInteger("9".repeat(15)), 999_999_999_999_999);
  for (const value of ["9".repeat(16), 2 ** 53, "--5", " 5", "5 "]) assert.equal(looseInteger(value), undefined);
});
