import assert from "node:assert/strict";
import { test } from "node:test";
import { Secret, signMatches, signOf } from "../../src/envelope/sign.ts";

const merchantId = "MERCHANT-1";
const data = "eyJkb2N1bWVudEV4dElEIjoiT1JERVItMTAwMSJ9";
const sign = "OWNkZDRlMGI2OWNlNDA4OTJjMDk0YTY2YmE4YjcyMWY1OTczMWUxOQ==";

test("signOf() gives the sign of the field notes' vector", () => {
  assert.equal(signOf(data, merchantId), sign);
});

test("signMatches() takes the right sign and no other, of whatever length", () => {
  assert.equal(signMatches(sign, data, merchantId), true);
  const others = ["", sign.slice(0, -1), `${sign}=`, `${sign}\n`, sign.toLowerCase(), `P${sign.slice(1)}`, "é".repeat(28)];
  for (const other of others) assert.equal(signMatches(other, data, merchantId), false);
  assert.equal(signMatches(sign, `${data}=`, merchantId), false);
  assert.equal(signMatches(sign, data, "MERCHANT-2"), false);
});

test("signMatches() doesn't take a sign whose text only looks the same byte by byte", () => {
  // U+014F ends in the byte of "O": a comparison of the low bytes alone would take it.
  assert.equal(signMatches(`ŏ${sign.slice(1)}`, data, merchantId), false);
});

test("Secret.matches() takes the secret and no other, of whatever length", () => {
  const secret = new Secret("right-key");
  assert.equal(secret.matches("right-key"), true);
  for (const given of ["", "right-ke", "right-key ", "right-keys", "RIGHT-KEY"]) assert.equal(secret.matches(given), false);
});
