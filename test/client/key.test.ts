import assert from "node:assert/strict";
import { test } from "node:test";
import { newKey } from "../../src/client/key.ts";

test("newKey() makes 26 characters of 0-9 and A-Z, never the same twice", () => {
  const keys = Array.from({ length: 10_000 }, newKey);
  assert.equal(new Set(keys).size, keys.length);
  assert.ok(keys.every((key) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(key)));
});

test("newKey() puts later keys behind earlier ones", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000 });
  let last = newKey();
  for (const later of [1, 31, 32, 1000, 10 ** 9, 10 ** 12]) {
    t.mock.timers.tick(later);
    const key = newKey();
    assert.ok(key > last);
    last = key;
  }
});

test("newKey() writes the time as a ULID does", (t) => {
  // The example of the ULID's specification: 01ARYZ6S41TSV4RRFFQ69G5FAV
  t.mock.timers.enable({ apis: ["Date"], now: 1_469_918_176_385 });
  assert.equal(newKey().slice(0, 10), "01ARYZ6S41");
});

test("newKey() uses every character of its alphabet in the part that is chance", () => {
  const drawn = new Set(Array.from({ length: 1_000 }, () => newKey().slice(10)).join(""));
  assert.equal(drawn.size, 32);
});
