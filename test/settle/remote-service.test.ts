import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseForm, unescapeValue } from "../../src/envelope/form.ts";
import { signMatches } from "../../src/envelope/sign.ts";
import { signedForm } from "../../src/settle/remote-service.ts";

async function check(json: string, merchantId: string): Promise<void> {
  const { data, sign, repeated } = parseForm(Buffer.from(await signedForm(json, merchantId)));
  assert.ok(data !== undefined && sign !== undefined && repeated === undefined);
  const text = unescapeValue(data);
  assert.equal(Buffer.from(text, "base64").toString("utf8"), json);
  assert.ok(signMatches(unescapeValue(sign), text, merchantId));
}

test("signedForm() makes what the bridge reads and finds rightly signed, for any text", async () => {
  await fc.assert(fc.asyncProperty(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), check));
});

test("signedForm() takes a body of a megabyte", async () => {
  await check("ə".repeat(500_000), "M");
});

test("signedForm() is read alike by a standard reader of forms", async () => {
  const form = new URLSearchParams(await signedForm('{"a":"???>>>"}', "M"));
  assert.equal(Buffer.from(form.get("data") ?? "", "base64").toString(), '{"a":"???>>>"}');
});

test("signedForm() says what to do where a page that isn't secure has no SHA-1", async (t) => {
  t.mock.getter(crypto, "subtle", () => undefined);
  await assert.rejects(signedForm("{}", "M"), /serve it over https/);
});
