import assert from "node:assert/strict";
import { test } from "node:test";
import { Secret, signFits, signOf } from "../../src/envelope/sign.ts";

const merchantId = "MERCHANT-1";
const data = "eyJkb2N1bWVudEV4dElEIjoiT1JERVItMTAwMSJ9";
const sign = "OWNkZDRlMGI2OWNlNDA4OTJjMDk0YTY2YmE4YjcyMWY1OTczMWUxOQ==";

test("signOf() gives the sign of the field notes' vector", () => {
  assert.equal(signOf(data, merchantId), sign);
});

const fits = (given: string, of = data, id = merchantId) => signFits({ data: Buffer.from(of), sign: Buffer.from(given) }, id);

test("signFits() takes the right sign and no other, of whatever length", () => {
  assert.equal(fits(sign), true);
  const others = ["", sign.slice(0, -1), `${sign}=`, sign.toLowerCase(), `P${sign.slice(1)}`, "é".repeat(28)];
  for (const other of others) assert.equal(fits(other), false, other);
  assert.equal(fits(sign, `${data}=`), false);
  assert.equal(fits(sign, data, "MERCHANT-2"), false);
});

test("signFits() doesn't take a sign whose text only looks the same byte by byte", () => {
  // U+014F ends in the byte of "O": a comparison of the low bytes alone would take it.
  assert.equal(fits(`ŏ${sign.slice(1)}`), false);
});

test("signFits() takes a sign over data with its escapes undone, and one over the escapes as they were sent", () => {
  const odd = Buffer.from('{"a":"~~~???>>>"}').toString("base64");
  assert.match(odd, /\+.*\/.*=/);
  const escapings = [odd, encodeURIComponent(odd), odd.replaceAll("=", "%3d"), odd.replaceAll("+", "%2B")];
  for (const sent of escapings) {
    for (const signed of [odd, sent]) {
      const given = signOf(signed, merchantId);
      assert.equal(fits(given, sent), true, `${sent} signed as ${signed}`);
      assert.equal(fits(encodeURIComponent(given), sent), true);
    }
  }
  // Neither what was meant nor what was sent
  assert.equal(fits(signOf(odd.replaceAll("=", "%3D"), merchantId), odd), false);
});

test("signFits() takes a line end at the end of the sign's Base64, as encoders write it, and nowhere else", () => {
  for (const end of ["\n", "\r\n", "%0A", "%0d%0a"]) {
    assert.equal(fits(`${sign}${end}`), true, JSON.stringify(end));
    for (const other of [`${end}${sign}`, `${sign.slice(0, 20)}${end}${sign.slice(20)}`, `${sign}${end}${end}`]) {
      assert.equal(fits(other), false, JSON.stringify(other));
    }
  }
  for (const end of [" ", "\t", "\r", "x\n"]) assert.equal(fits(`${sign}${end}`), false, JSON.stringify(end));
});

test("Secret.matches() takes the secret and no other, of whatever length", () => {
  const secret = new Secret("right-key");
  assert.equal(secret.matches("right-key"), true);
  for (const given of ["", "right-ke", "right-key ", "right-keys", "RIGHT-KEY"]) assert.equal(secret.matches(given), false);
});
