import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nearest, suggestion } from "../../src/core/nearest.ts";

const known = ["path", "baudRate", "parity", "stopBits", "/sale", "POSLINE_HOST", "POSLINE_BANK_PORT"];

test("nearest() finds a word through a missing, an extra, a wrong and a swapped letter and another case", () => {
  for (const word of ["baudRte", "baudRatee", "baudRite", "buadRate", "BAUDRATE", "baudrate"])
    assert.equal(nearest(word, known), "baudRate");
  assert.equal(nearest("/sal", known), "/sale");
  assert.equal(nearest("POSLINE_HOSTS", known), "POSLINE_HOST");
});

test("nearest() finds none for a word that resembles none, or one without end", () => {
  assert.equal(nearest("zzzzzz", known), undefined);
  assert.equal(nearest("p".repeat(100_000), known), undefined);
});

test("nearest() finds each known word for itself", () => {
  fc.assert(fc.property(fc.constantFrom(...known), (word) => nearest(word, known) === word));
});

test("suggestion() names the word that was meant, or else all", () => {
  assert.equal(suggestion("pth", known), "did you mean path?");
  assert.equal(suggestion("zzzzzz", ["a", "b"]), "use one of a, b");
});
