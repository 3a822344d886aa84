import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { formFlaw, jsonFlaw, type SentRequest } from "../../src/envelope/body-flaw.ts";

const alone: SentRequest = { headers: {} };
const utf8 = (text: string) => Buffer.from(text);
/** As it comes where `Content-Length` counts characters. */
const cut = (text: string) => utf8(text).subarray(0, text.length);
const lengthOf = (text: string): SentRequest => ({ headers: { "content-length": String(text.length) } });

const note = '{"pay_id":"A","note":"Ünïcödé"}';
/** Its last character is cut in two. */
const split = '{"note":"xüü☕"}';

const wrongJson: readonly (readonly [what: string, text: Buffer, flaw: string, sent?: SentRequest])[] = [
  ["a comma too many", utf8('{\n  "a": 1,\n}'), "is not JSON: line 2, column 9: a comma after the last entry: take it out"],
  ["a missing comma", utf8('{"a":1\n"b":2}'), "is not JSON: line 2, column 1: there is a double quote where a comma belongs"],
  ["single quotes", utf8("{'a':1}"), "is not JSON: line 1, column 2: JSON has no single quotes: use double ones"],
  [
    "a text cut short",
    utf8('{"a":1'),
    "is not JSON: line 1, column 7: the text ends where a comma or } belongs",
    lengthOf('{"a":1'),
  ],
  [
    "no JSON",
    utf8("hello"),
    'is not JSON: line 1, column 1: there is "h", which is not JSON: keys and texts need double quotes, and true, false and null small letters',
  ],
  ["a list", utf8("[1]"), "must be a JSON object"],
  ["a byte order mark", utf8("\ufeff{}"), "begins with a byte order mark: encode it as UTF-8 without one"],
  ["Latin-1", Buffer.from('{"a":"\xe9"}', "latin1"), "is not UTF-8: encode it as UTF-8"],
  [
    "a length in characters",
    cut(note),
    "breaks off after 31 bytes, as Content-Length announces no more: it must count bytes, not characters",
    lengthOf(note),
  ],
  [
    "a length in characters that cuts one",
    cut(split),
    "breaks off after 15 bytes, as Content-Length announces no more: it must count bytes, not characters",
    lengthOf(split),
  ],
  [
    "a text with umlauts that breaks off in chunks",
    cut(note),
    "is not JSON: line 1, column 22: this text has no closing double quote on its line",
  ],
  [
    "gzip",
    gzipSync("{}"),
    'is compressed (Content-Encoding "gzip"): send it as it is',
    { headers: { "content-encoding": "gzip" } },
  ],
  ["gzip that isn't announced", gzipSync("{}"), "is compressed by gzip: send it as it is"],
  [
    "a header that says so wrongly",
    utf8("{"),
    "is not JSON: line 1, column 2: the text ends where a comma or } belongs",
    { headers: { "content-encoding": "utf-8" } },
  ],
  [
    "multipart",
    utf8('--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--X--\r\n'),
    "is multipart/form-data: send the JSON object alone",
  ],
  ["a form", utf8("pay_id=A&amount=1500"), "is a form: send the JSON object alone"],
  ["a large text", utf8(`[${"1,".repeat(40_000)}]`), "is not a JSON object"],
  [
    "Latin-1, whatever its header is used for",
    Buffer.from('{"a":"\xe9"}', "latin1"),
    "is not UTF-8: encode it as UTF-8",
    { headers: { "content-encoding": "iso-8859-1" } },
  ],
];

for (const [what, text, flaw, sent = alone] of wrongJson) {
  test(`jsonFlaw() names ${what}`, () => {
    assert.equal(jsonFlaw(text, sent), flaw);
  });
}

test("jsonFlaw() tells where a body ends that was cut at any of its bytes by a length in characters", () => {
  const text = '{"n":"é","a":[true,-1.5e3,{"b":"x\\u00e9"}],"c":null}';
  const whole = utf8(text);
  for (let end = 8; end < whole.length; end++) {
    assert.match(jsonFlaw(whole.subarray(0, end), lengthOf(text)), new RegExp(`^breaks off after ${end} bytes`));
  }
});

const form = "data=e30=&sign=AAAA";
const wrongForms: readonly (readonly [what: string, text: Buffer, flaw: string | undefined, sent?: SentRequest])[] = [
  [
    "JSON",
    utf8(' {"amount":1}'),
    "the body is JSON: send the form data=...&sign=..., where data is the Base64 of the JSON object",
  ],
  [
    "a query",
    utf8(""),
    "the body is empty, and the URL's query has data: send the form as the body",
    { url: `/sale?${form}`, headers: {} },
  ],
  ["a byte order mark", utf8(`\ufeff${form}`), "the body begins with a byte order mark: encode it as UTF-8 without one"],
  ["capitals", utf8("Data=e30=&Sign=AAAA"), "the form has Data: write data, in small letters"],
  ["capitals behind another field", utf8("x=1&DATA=e30="), "the form has DATA: write data, in small letters"],
  [
    "gzip",
    gzipSync(form),
    'the body is compressed (Content-Encoding "gzip"): send it as it is',
    { headers: { "content-encoding": "gzip" } },
  ],
  [
    "multipart that breaks off",
    utf8("--X\r\nContent-Disposition: form-data"),
    "the body is multipart/form-data that breaks off",
  ],
  ["nothing but a field that is missing", utf8("sign=AAAA"), undefined],
  ["nothing of an empty body", utf8(""), undefined, { url: "/sale?x=1", headers: {} }],
  ["nothing of a field behind a question mark", utf8(`?${form}`), undefined],
];

for (const [what, text, flaw, sent = alone] of wrongForms) {
  test(`formFlaw() names ${what}`, () => {
    assert.equal(formFlaw(text, "data", sent), flaw);
  });
}

test("formFlaw() names the field that is looked for", () => {
  assert.equal(formFlaw(utf8("data=e30=&Sign=AAAA"), "sign", alone), "the form has Sign: write sign, in small letters");
});
