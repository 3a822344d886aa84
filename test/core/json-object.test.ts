import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject } from "../../src/core/json-object.ts";

test("isObject() tells a JSON object from every other JSON value", () => {
  for (const text of ["{}", '{"a":null}', '{"length":0}']) assert.equal(isObject(JSON.parse(text)), true, text);
  for (const text of ["null", "[]", "[{}]", '"{}"', "0", "true"]) assert.equal(isObject(JSON.parse(text)), false, text);
  assert.equal(isObject(undefined), false);
});
