import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import { Fault } from "../../src/core/fault.ts";
import { unescapeValue } from "../../src/envelope/form.ts";
import { parseMultipart } from "../../src/envelope/multipart.ts";
import { readHttpBody } from "../../src/envelope/request.ts";
import { signOf } from "../../src/envelope/sign.ts";

const boundary = "------WebKitFormBoundary7MA4YWxkTrZu0gW";
const part = (name: string, value: string, more = "") =>
  `${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
const formOf = (...parts: readonly string[]) => Buffer.from(`${parts.join("")}${boundary}--\r\n`, "latin1");

const merchantId = "MERCHANT-1";
/** Its Base64 has all of + / =. */
const data = Buffer.from('{"documentExtID":"D-1","a":"~~~???>>>"}').toString("base64");
const sign = signOf(data, merchantId);

function read(text: Buffer, check: "envelope" | "none" = "envelope") {
  const route = routeOf(contracts.fiscal, "/sale");
  assert.ok(route);
  return readHttpBody(contracts.fiscal, route, [text], { check, merchantId, validate: undefined });
}

test("readHttpBody() reads data and sign from multipart/form-data, and relays the same as from pairs", () => {
  for (const text of [
    formOf(part("data", data), part("sign", sign)),
    formOf(part("sign", sign), part("other", "x"), part("data", data, '; filename="data.txt"\r\nContent-Type: text/plain')),
    formOf(part("data", data).replace('"data"', "data"), part("sign", sign).replace("Content-D", "content-d")),
  ]) {
    const { body, key } = read(text);
    assert.deepEqual([Buffer.concat(body).toString(), key], [`data=${data}&sign=${sign}`, "D-1"]);
  }
});

test("readHttpBody() refuses in multipart what it refuses in pairs: a command, a field twice, one that is missing", () => {
  const refused: readonly (readonly [RegExp, Buffer])[] = [
    [/the form has a command: leave it out/, formOf(part("data", data), part("sign", sign), part("command", "/refund"))],
    [/the form has sign twice/, formOf(part("data", data), part("sign", sign), part("sign", sign))],
    [/the form has no sign: add sign/, formOf(part("data", data), part("name", sign))],
    [/the form has no data: add data/, formOf(part("x", "y", '; filename="name=data"'), part("sign", sign))],
    [/sign does not match data/, formOf(part("data", data), part("sign", signOf(data, "OTHER")))],
    [/data is not Base64/, formOf(part("data", "e30=&command=/refund"), part("sign", sign))],
    [/multipart\/form-data that breaks off/, formOf(part("data", data), part("sign", sign)).subarray(0, -50)],
    [/multipart\/form-data that breaks off/, Buffer.from("--")],
    [/multipart\/form-data that breaks off/, Buffer.from(`--${"x".repeat(80)}\r\n\r\n`)],
  ];
  for (const [message, text] of refused) assert.throws(() => read(text), { name: "Fault", message });
});

test("readHttpBody() lets no value of multipart put another pair or a byte outside printable ASCII on a line, even with check none (property)", () => {
  const byte = fc.oneof(
    fc.constantFrom(..."aZ9+/=&%;"),
    fc.integer({ min: 0, max: 255 }).map((n) => String.fromCharCode(n)),
  );
  fc.assert(
    fc.property(fc.string({ unit: byte }), fc.string({ unit: byte }), (one, two) => {
      const [value, other] = [one, two].map((text) => text.replaceAll(/[\r\n]/g, "-"));
      const body = Buffer.concat(read(formOf(part("data", value ?? ""), part("sign", other ?? "")), "none").body).toString(
        "latin1",
      );
      assert.match(body, /^data=[\x21-\x25\x27-\x7e]*&sign=[\x21-\x25\x27-\x7e]*$/);
      const [, written = ""] = /^data=([^&]*)/.exec(body) ?? [];
      assert.deepEqual(unescapeValue(Buffer.from(written)), Buffer.from(value ?? "", "latin1").toString());
    }),
  );
});

test("parseMultipart() takes any bytes without a word, and any cut of a form (property)", () => {
  const whole = formOf(part("data", data), part("sign", sign));
  for (let end = 0; end < whole.length - 4; end++) assert.equal(parseMultipart(whole.subarray(0, end)), undefined);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        read(Buffer.concat([Buffer.from("--X\r\n"), bytes]));
      } catch (error) {
        assert.ok(error instanceof Fault);
      }
    }),
  );
});
