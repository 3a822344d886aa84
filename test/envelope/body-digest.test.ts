import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyDigest } from "../../src/envelope/body-digest.ts";

test("bodyDigest() is the first 64 bits of a body's SHA-256, in whatever pieces it came", () => {
  // FIPS 180-2, B.1: the digest of "abc" begins so
  for (const pieces of [["abc"], ["a", "bc"], ["", "a", "b", "c"]]) {
    assert.equal(bodyDigest(pieces.map((piece) => Buffer.from(piece))), "ba7816bf8f01cfea");
  }
});
