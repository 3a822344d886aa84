import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseExactObject, scalarText, showExactObject, writeExactObject } from "../../src/settle/exact-json.ts";

test("parseExactObject() gives a number where it is exact, and a bigint beyond", () => {
  const parsed = parseExactObject('{"a":9007199254740991,"b":9007199254740993,"c":-9223372036854775808,"d":1.5,"e":1e3}');
  assert.deepEqual(parsed, { a: 9007199254740991, b: 9007199254740993n, c: -9223372036854775808n, d: 1.5, e: 1000 });
});

test("parseExactObject() gives nothing for what is no JSON object, or names a field twice", () => {
  for (const text of ["", "null", "[]", "1", '{"a":1', '{"a":1,"a":2}', "<html>", "[".repeat(100_000)]) {
    assert.equal(parseExactObject(text), undefined);
  }
});

test("writeExactObject() and parseExactObject() bring every integer of 64 bits back", () => {
  const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  fc.assert(
    fc.property(int64, (value) => {
      assert.equal(BigInt(String(parseExactObject(writeExactObject({ value }))?.["value"])), value);
    }),
  );
});

test("writeExactObject() refuses what JSON can't hold, and numbers that have lost digits", () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, -(2 ** 60)]) {
    assert.throws(() => writeExactObject({ items: [{ value }] }), /Cannot write the body: value/);
  }
  assert.throws(() => writeExactObject([1]), /it must be a JSON object/);
});

test("showExactObject() writes whatever a service answered, of integers each digit", () => {
  for (const text of ['{"a":9007199254740993,"b":[1e+21,0.5]}', '{"a":100000000000000000000}']) {
    assert.equal(showExactObject(parseExactObject(text) ?? {}), text);
  }
  assert.equal(showExactObject({ a: Number.POSITIVE_INFINITY }), '{"a":null}');
});

test("scalarText() reads an id however it is written, and null and nothing as none", () => {
  assert.deepEqual([scalarText(7), scalarText(7n), scalarText("7")], ["7", "7", "7"]);
  for (const value of [undefined, null, "", {}, true]) assert.equal(scalarText(value), undefined);
});

test("writeExactObject() says what is wrong with a body, and which field", () => {
  const thrown = (value: object, message: RegExp) =>
    assert.throws(() => writeExactObject(value), { name: "TypeError", message });
  thrown({ amount: Number.NaN }, /amount must be a finite number/);
  thrown({ amount: 2 ** 53 }, /amount is beyond 2\^53: use a bigint/);
  thrown(() => 1, /must be a JSON object/);
  for (const value of [1.5, 1e-7, 2 ** 53 - 1, -(2 ** 53 - 1), 2n ** 60n]) assert.ok(writeExactObject({ value }));
});
