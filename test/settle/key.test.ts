import assert from "node:assert/strict";
import { test } from "node:test";
import { newKey } from "../../src/settle/key.ts";

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
