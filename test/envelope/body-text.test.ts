import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { bodyBytes, bodyText } from "../../src/envelope/body-text.ts";

const json = '{"documentExtID":"D-1","note":"Kaffee für 2 €"}';
const data = Buffer.from(json).toString("base64");
const pieces = (text: string) => [Buffer.from(text.slice(0, 7)), Buffer.from(text.slice(7))];

test("bodyText() is the JSON of a body in whatever pieces, and of a form's data, escaped or not", () => {
  assert.equal(bodyText(contracts.bank, pieces(json)), json);
  assert.equal(bodyText(contracts.fiscal, pieces(`data=${data}&sign=c2lnbg==`)), json);
  assert.equal(bodyText(contracts.fiscal, pieces(`data=${encodeURIComponent(data)}&sign=c2lnbg%3D%3D`)), json);
});

test("bodyText() is empty where there is no body, and no data in a form", () => {
  assert.equal(bodyText(contracts.qr, []), "");
  assert.equal(bodyText(contracts.fiscal, [Buffer.from("sign=c2lnbg==")]), "");
});

test("bodyBytes() are those of the JSON as they came, also where they aren't UTF-8", () => {
  const bytes = Buffer.from([0x7b, 0xca, 0xff, 0x7d]);
  assert.deepEqual(bodyBytes(contracts.qr, [bytes.subarray(0, 2), bytes.subarray(2)]), bytes);
  assert.deepEqual(bodyBytes(contracts.fiscal, pieces(`data=${bytes.toString("base64")}&sign=c2lnbg==`)), bytes);
});
