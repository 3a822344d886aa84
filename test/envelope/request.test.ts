import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import { validateRequest } from "../../src/contract/schema.ts";
import type { ContractName } from "../../src/core/call.ts";
import { Fault, type FaultKind } from "../../src/core/fault.ts";
import type { SentRequest } from "../../src/envelope/body-flaw.ts";
import { type RequestRules, readHttpBody } from "../../src/envelope/request.ts";
import { signOf } from "../../src/envelope/sign.ts";

const merchantId = "MERCHANT-1";
const data = "eyJkb2N1bWVudEV4dElEIjoiT1JERVItMTAwMSJ9";
const sign = "OWNkZDRlMGI2OWNlNDA4OTJjMDk0YTY2YmE4YjcyMWY1OTczMWUxOQ==";
const lenient: RequestRules = { check: "envelope", merchantId: undefined, validate: undefined };
const strict: RequestRules = { ...lenient, merchantId };
const blind: RequestRules = { ...lenient, check: "none" };
const whole: RequestRules = { ...lenient, check: "contract", validate: validateRequest };

function read(service: ContractName, path: string, body: string | readonly Buffer[], rules = lenient, sent?: SentRequest) {
  const route = routeOf(contracts[service], path);
  assert.ok(route);
  return readHttpBody(contracts[service], route, typeof body === "string" ? [Buffer.from(body, "latin1")] : body, rules, sent);
}

function assertRefused(kind: FaultKind, act: () => unknown): void {
  assert.throws(act, (error) => {
    assert.ok(error instanceof Fault);
    assert.equal(error.kind, kind);
    assert.equal(error.outcome, "not-sent");
    assert.match(error.message, /^Cannot accept \/[a-z_-]+: .*[^.]$/);
    return true;
  });
}

const textOf = (body: readonly Buffer[]) => Buffer.concat(body).toString("latin1");

// Fiscal

test("readHttpBody() takes the field notes' form, sign checked, with the document's id as the key", () => {
  const { body, key } = read("fiscal", "/sale", `data=${data}&sign=${sign}`, strict);
  assert.equal(textOf(body), `data=${data}&sign=${sign}`);
  assert.equal(key, "ORDER-1001");
});

test("readHttpBody() takes + / = raw and escaped, and relays each as it was written", () => {
  // Its Base64 has all three of them.
  const odd = Buffer.from('{"a":"~~~???>>>"}').toString("base64");
  assert.match(odd, /\+/);
  assert.match(odd, /\//);
  assert.match(odd, /=/);
  const oddSign = signOf(odd, merchantId);
  for (const write of [(text: string) => text, encodeURIComponent, (text: string) => text.replaceAll("=", "%3d")]) {
    const form = `data=${write(odd)}&sign=${write(oddSign)}`;
    assert.equal(textOf(read("fiscal", "/sale", form, strict).body), form);
  }
});

test("readHttpBody() writes the two pairs in the contract's order, without others and a trailing line break", () => {
  const { body } = read("fiscal", "/sale", `x=1&sign=${sign}&route=/refund&data=${data}&y\r\n`, strict);
  assert.equal(textOf(body), `data=${data}&sign=${sign}`);
});

test("readHttpBody() refuses a command in a form, and a field twice", () => {
  assertRefused("malformed", () => read("fiscal", "/sale", `command=/refund&data=${data}&sign=${sign}`, blind));
  assertRefused("malformed", () => read("fiscal", "/sale", `data=${data}&sign=${sign}&command`, blind));
  assertRefused("malformed", () => read("fiscal", "/sale", `data=${data}&data=${data}&sign=${sign}`, blind));
  assertRefused("malformed", () => read("fiscal", "/sale", `data=${data}&sign=${sign}&sign=${sign}`, blind));
});

test("readHttpBody() refuses a form without data or sign as missing", () => {
  for (const form of [
    ...["", `data=${data}`, `sign=${sign}`, `data=&sign=${sign}`, `data=${data}&sign=`, "{}", `data=${data}&sign`],
  ]) {
    assertRefused("missing", () => read("fiscal", "/sale", form));
  }
});

test("readHttpBody() refuses data that is no Base64 of a JSON object as malformed", () => {
  const encoded = (text: string) => Buffer.from(text).toString("base64");
  for (const value of [
    "%%%",
    "a b",
    "e30=e30=",
    "e30-",
    encoded("[1]"),
    encoded("null"),
    encoded("1"),
    encoded("{"),
    "=",
    "e30;x",
  ]) {
    assertRefused("malformed", () => read("fiscal", "/sale", `data=${value}&sign=${sign}`));
  }
});

test("readHttpBody() takes data with the escaped line breaks of MIME encoders, and the sign over them", () => {
  const broken = `${data.slice(0, 20)}\n${data.slice(20)}\n`;
  const form = `data=${encodeURIComponent(broken)}&sign=${signOf(broken, merchantId)}`;
  assert.equal(textOf(read("fiscal", "/sale", form, strict).body), form);
});

test("readHttpBody() takes a sign over the escapes as they were sent, and one that ends with a line end, and relays both", () => {
  const escaped = encodeURIComponent(Buffer.from('{"a":"~~~???>>>"}').toString("base64"));
  for (const form of [
    `data=${escaped}&sign=${signOf(escaped, merchantId)}`,
    `data=${data}&sign=${sign}%0A`,
    `data=${data}&sign=${encodeURIComponent(`${sign}\r\n`)}`,
  ]) {
    assert.equal(textOf(read("fiscal", "/sale", form, strict).body), form);
    assertRefused("sign", () => read("fiscal", "/sale", form, { ...strict, merchantId: "MERCHANT-2" }));
  }
});

test("readHttpBody() refuses a wrong sign, and one that might be read as another pair, with or without merchantId", () => {
  assertRefused("sign", () => read("fiscal", "/sale", `data=${data}&sign=${sign.replace("O", "P")}`, strict));
  assertRefused("sign", () => read("fiscal", "/sale", `data=${data}&sign=x;command=/refund`));
  assertRefused("sign", () => read("fiscal", "/sale", `data=${data}&sign=%26command%3D/refund`));
  assert.equal(read("fiscal", "/sale", `data=${data}&sign=${sign.replace("O", "P")}`).key, "ORDER-1001");
});

test("readHttpBody() takes /supported_operations without a body, but a body there as strictly as elsewhere", () => {
  assert.deepEqual(read("fiscal", "/supported_operations", []).body, []);
  assert.deepEqual(read("fiscal", "/supported_operations", "\r\n").body, []);
  assertRefused("missing", () => read("fiscal", "/supported_operations", `data=${data}`));
});

test("readHttpBody() relays a fiscal form blindly with check none, but never bytes that could end a frame", () => {
  assert.equal(textOf(read("fiscal", "/sale", "data=???&sign=!&x=1", blind).body), "data=???&sign=!");
  assert.equal(textOf(read("fiscal", "/sale", "data=!~&sign=~!", blind).body), "data=!~&sign=~!");
  assert.equal(read("fiscal", "/sale", "data=!~&sign=~!", blind).key, undefined);
  const named = Buffer.from('{"documentExtID":"D-1","items":7}').toString("base64");
  assert.equal(read("fiscal", "/sale", `data=${encodeURIComponent(named)}&sign=x`, blind).key, "D-1");
  assertRefused("malformed", () => read("fiscal", "/sale", "data=\x02ab&sign=x", blind));
  assertRefused("malformed", () => read("fiscal", "/sale", "data=ab&sign=xy\x03", blind));
  for (const byte of ["\x00", "\x02", "\x03", "\x1f", " ", "\n", "\x7f", "\x80", "\xff"]) {
    assertRefused("malformed", () => read("fiscal", "/sale", `data=a${byte}b&sign=x`, blind));
    assertRefused("malformed", () => read("fiscal", "/sale", `data=ab&sign=x${byte}y`, blind));
  }
});

test("readHttpBody() lets no input put a byte outside printable ASCII, or another pair, into a fiscal body (property)", () => {
  // Mostly good characters, so that whole values pass and one bad character among them must be seen.
  const values = fc.string({
    unit: fc.oneof(
      { weight: 30, arbitrary: fc.constantFrom(..."aZ9+/%23") },
      fc.integer({ min: 0, max: 255 }).map((n) => String.fromCharCode(n)),
    ),
    maxLength: 12,
  });
  const any = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc
      .array(
        fc.oneof(
          fc.constantFrom("data=", "sign=", "command=", "&", "=", "\x02", "\x03", "%02", "%03", "e30=", "\n", ";", "\0"),
          fc.string({ maxLength: 4 }),
        ),
        { maxLength: 12 },
      )
      .map((words) => Buffer.from(words.join(""), "latin1")),
    fc.tuple(values, values).map(([one, two]) => Buffer.from(`data=${one}&sign=${two}`, "latin1")),
  );
  let taken = 0;
  fc.assert(
    fc.property(any, fc.constantFrom(blind, lenient), (bytes, rules) => {
      let body: readonly Buffer[];
      try {
        ({ body } = read("fiscal", "/sale", [bytes], rules));
      } catch (error) {
        assert.ok(error instanceof Fault);
        return;
      }
      taken++;
      assert.match(textOf(body), /^data=[!-%'-~]*&sign=[!-%'-~]*$/);
    }),
    { numRuns: 3_000 },
  );
  assert.ok(taken > 30, `only ${taken} inputs were taken, too few to prove anything`);
});

// Bank and qr

test("readHttpBody() passes the pieces of a text on untouched: the very same buffers", () => {
  const pieces = [
    Buffer.from('{"pay_id"'),
    Buffer.from(':"Ü').subarray(0, 3),
    Buffer.from("Ü").subarray(1),
    Buffer.from('","x":1}'),
  ];
  const { body, key } = read("bank", "/sale", pieces);
  assert.equal(body.length, pieces.length);
  body.forEach((piece, i) => {
    assert.equal(piece, pieces[i]);
  });
  assert.equal(key, "Ü");
});

test("readHttpBody() takes no body where the route has none, and a body there as it came", () => {
  assert.deepEqual(read("bank", "/terminals", []).body, []);
  for (const blank of [" \r\n", "\t", "\r", "\v\f"]) assert.deepEqual(read("bank", "/terminals", blank).body, []);
  for (const text of ["\x08", "\x0e", "!"]) assertRefused("malformed", () => read("bank", "/terminals", text));
  assert.equal(textOf(read("bank", "/terminals", ' {"x":1} ').body), ' {"x":1} ');
  assertRefused("malformed", () => read("bank", "/terminals", "x"));
});

test("readHttpBody() refuses a missing body as missing, and what is no JSON object as malformed", () => {
  for (const body of ["", " ", "\n"]) assertRefused("missing", () => read("qr", "/check", body));
  for (const body of ["[]", "1", "null", '"{}"', "{", "{}x", "\0", "\ufefff{}", "{'a':1}"]) {
    assertRefused("malformed", () => read("qr", "/check", body));
  }
  assert.throws(() => read("qr", "/check", "[]"), { message: /^Cannot accept \/check: .+ must be a JSON object$/ });
});

test("readHttpBody() with check none relays any text, also none", () => {
  for (const body of ["[]", "{", "\0\x02\x03", "x"]) assert.equal(textOf(read("bank", "/sale", body, blind).body), body);
  assert.deepEqual(read("bank", "/sale", "", blind), { body: [], key: undefined });
});

test("readHttpBody() with check contract holds the whole schema, and names the field", () => {
  const good = '{"pay_id":"A","amount":100,"currency_name":"AZN","unknown":1}';
  assert.equal(read("bank", "/sale", good, whole).key, "A");
  assertRefused("missing", () => read("bank", "/sale", '{"pay_id":"A","amount":100}', whole));
  const form = `data=${Buffer.from('{"items":[]}').toString("base64")}&sign=${sign}`;
  assertRefused("missing", () => read("fiscal", "/sale", form, whole));
  assert.equal(read("fiscal", "/sale", form).key, undefined);
});

for (const [json, key] of [
  ['{"pay_id":"A-1"}', "A-1"],
  ['{"pay_id":1001}', "1001"],
  ['{"pay_id":9007199254740993}', undefined],
  ['{"pay_id":""}', undefined],
  ['{"pay_id":null}', undefined],
  ['{"pay_id":{"a":1}}', undefined],
  ['{"__proto__":{"pay_id":"A-1"}}', undefined],
  [`{"pay_id":"${"x".repeat(100)}"}`, "x".repeat(64)],
  ["{}", undefined],
] as const) {
  test(`readHttpBody() finds the key ${key} in ${json.slice(0, 40)}`, () => {
    assert.equal(read("bank", "/check", json).key, key);
  });
}

// What two parsers would read in two ways

const invalidUtf8: readonly [name: string, bytes: Buffer][] = [
  ["a lone byte of Latin-1", Buffer.from([0xe9])],
  ["a sequence that is cut short", Buffer.from("☕").subarray(0, 2)],
  ["an overlong slash", Buffer.from([0xc0, 0xaf])],
  ["half of a surrogate pair", Buffer.from([0xed, 0xa0, 0x80])],
  ["a code point beyond the last", Buffer.from([0xf4, 0x90, 0x80, 0x80])],
  ["a byte that never occurs", Buffer.from([0xff])],
];

const dataForm = (json: Buffer) => {
  const encoded = json.toString("base64");
  return `data=${encoded}&sign=${signOf(encoded, merchantId)}`;
};

test("readHttpBody() says what to add to a request, and what to change in one", () => {
  const form = (json: string | Buffer) => dataForm(Buffer.from(json));
  for (const [service, body, message] of [
    ["bank", "", /body is empty: send the operation's JSON object/],
    ["bank", "[]", /the body must be a JSON object/],
    ["fiscal", form("[]"), /the decoded data must be a JSON object/],
    ["bank", '{"pay_id":1,"pay_id":2}', /the body has the field pay_id twice/],
    ["bank", '{"x":"\xe9"}', /the body is not UTF-8: encode it as UTF-8/],
    ["bank", "\xff\xfe{\x00}\x00", /the body is not UTF-8: encode it as UTF-8/],
    ["bank", "\xef\xbb\xbf{}", /the body begins with a byte order mark: encode it as UTF-8 without one/],
    ["fiscal", form("\ufeff{}"), /the decoded data begins with a byte order mark/],
    ["fiscal", form(Buffer.from([0x7b, 0xff, 0x7d])), /the decoded data/],
    ["fiscal", "sign=x", /no data: add data, the Base64 of the JSON object/],
    ["fiscal", "data=e30=", /no sign: add sign, Base64 of the SHA-1 of data and merchantId/],
    ["fiscal", "data=e30=&sign=x&command=/refund", /has a command: leave it out/],
    ["fiscal", "data=e30=&sign=x&sign=y", /has sign twice: send it once/],
    ["fiscal", "data=e30=&sign=\x02", /printable ASCII: percent-encode/],
    ["fiscal", "data=?&sign=x", /data is not Base64/],
    ["fiscal", "data=e30=&sign=?", /sign is not Base64/],
    ["fiscal", "data=e30=&sign=abcd", /sign does not match data and merchantId/],
  ] as const)
    assert.throws(() => read(service, "/sale", body, strict), { name: "Fault", message });
});

test("readHttpBody() with check envelope asks no schema, and with check contract needs none to read the rest", () => {
  const short = '{"pay_id":"A"}';
  assertRefused("missing", () => read("bank", "/sale", short, whole));
  assert.equal(read("bank", "/sale", short, { ...whole, check: "envelope" }).key, "A");
  assert.equal(read("bank", "/sale", short, { ...whole, validate: undefined }).key, "A");
});

for (const [name, bytes] of invalidUtf8) {
  const json = Buffer.concat([Buffer.from('{"pay_id":"A","documentExtID":"A","x":"'), bytes, Buffer.from('"}')]);

  test(`readHttpBody() refuses ${name} as malformed, in data as well, unless check is none`, () => {
    assertRefused("malformed", () => read("bank", "/sale", [json]));
    assertRefused("malformed", () => read("qr", "/check", [json.subarray(0, 40), json.subarray(40)]));
    assertRefused("malformed", () => read("fiscal", "/sale", dataForm(json), strict));
    assert.equal(read("bank", "/sale", [json], blind).key, "A");
    assert.deepEqual(read("bank", "/sale", [json], blind).body, [json]);
    assert.equal(textOf(read("fiscal", "/sale", dataForm(json), blind).body), dataForm(json));
  });
}

test("readHttpBody() takes every character of UTF-8, escaped and not", () => {
  const json = Buffer.from('{"pay_id":"Ä☕😀\\u00e9\\ud83d\\ude00","documentExtID":"ÄÖ"}');
  assert.equal(read("bank", "/check", [json]).key, "Ä☕😀é😀");
  assert.equal(read("fiscal", "/sale", dataForm(json), strict).key, "ÄÖ");
});

const twice: readonly [service: ContractName, path: string, json: string][] = [
  ["bank", "/sale", '{"pay_id":"A","amount":1,"pay_id":"B"}'],
  ["bank", "/sale", '{"pay_id":"A","amount":1,"amount":1000}'],
  ["bank", "/sale", '{"pay_id":"A","pay\\u005fid":"B"}'],
  ["bank", "/sale", '{"\\u0061mount":1,"pay_id":"A","a\\u006Dount":2}'],
  ["bank", "/refund", '{"pay_id":"A","rrn":"1","amount":1,"rrn":"2"}'],
  ["bank", "/terminals", '{"pay_id":"A","pay_id":"A"}'],
  ["qr", "/check", '{"pay_id":"A","trans":"1","pay_system":"X","trans":"2"}'],
  ["qr", "/showqrcode", '{"pay_system":"X","pay_id":"A","pay_system":"Y"}'],
  ["fiscal", "/sale", '{"documentExtID":"A","items":[],"documentExtID":"B"}'],
  ["fiscal", "/sale", '{"documentExtID":"A","items":[{"itemPrice":1}],"items":[{"itemPrice":2}]}'],
  ["fiscal", "/check_status", '{"documentID":1,"documentID":2}'],
  ["fiscal", "/deposit", '{"amount":1, "amount" : 2}'],
];

for (const [service, path, json] of twice) {
  test(`readHttpBody() refuses ${service} ${path} ${json} as malformed, unless check is none`, () => {
    const body = service === "fiscal" ? dataForm(Buffer.from(json)) : json;
    assertRefused("malformed", () => read(service, path, body));
    assertRefused("malformed", () => read(service, path, body, { ...whole, merchantId }));
    assert.equal(textOf(read(service, path, body, blind).body), body);
  });
}

/** Requests in which one amount is `value`, as JSON, by the path of the amount. */
const withAmount = (value: string): readonly [service: ContractName, path: string, amount: string, json: string][] => [
  ["bank", "/sale", "amount", `{"pay_id":"A","amount":${value},"currency_name":"AZN"}`],
  ["bank", "/confirm", "amount", `{"pay_id":"A","rrn":"1","amount":${value},"currency_name":"AZN"}`],
  ["bank", "/sale", "tips", `{"pay_id":"A","amount":1,"tips":${value},"currency_name":"AZN"}`],
  ["bank", "/preauth", "cashback", `{"pay_id":"A","amount":1,"cashback":${value},"currency_name":"AZN"}`],
  ["qr", "/showqrcode", "amount", `{"pay_id":"A","amount":${value},"currency":"AZN","currency_name":"AZN","pay_system":"X"}`],
  ["qr", "/refund", "amount", `{"trans":"T","pay_id":"A","rrn":"1","amount":${value},"currency":"AZN","pay_system":"X"}`],
  ["qr", "/final_confirm", "amount", `{"pay_system":"X","amount":${value}}`],
  ["fiscal", "/deposit", "amount", `{"documentExtID":"A","amount":${value}}`],
  ["fiscal", "/withdraw", "amount", `{"documentExtID":"A","amount":${value}}`],
  ["fiscal", "/abort", "amount", `{"documentExtID":"A","amount":${value}}`],
  ["fiscal", "/sale", "items[1].itemAmount", `{"items":[{"itemAmount":1},{"itemAmount":${value}}]}`],
  ["fiscal", "/refund", "payments.cashlessAmount", `{"items":[{}],"payments":{"cashlessAmount":${value}}}`],
  ["fiscal", "/sale", "extraPayments[0].amount", `{"items":[{}],"extraPayments":[{"code":"CARD","amount":${value}}]}`],
];

const bodyOf = (service: ContractName, json: string) => (service === "fiscal" ? dataForm(Buffer.from(json)) : json);

test("readHttpBody() refuses an amount that isn't a whole number, in each service, and names it", () => {
  for (const value of ["460.00000000005", "0.1", "-1.5", '"15.00"', '"15,5"', '"1e3"', '"x"', "1e400", "true", "{}", "[15]"]) {
    for (const [service, path, amount, json] of withAmount(value)) {
      const message = `Cannot accept ${path}: ${amount} is not a whole number: send it in minor units, without a fraction`;
      assert.throws(() => read(service, path, bodyOf(service, json)), { name: "Fault", kind: "malformed", message });
      assert.equal(textOf(read(service, path, bodyOf(service, json), blind).body), bodyOf(service, json));
    }
  }
});

test("readHttpBody() takes a whole amount of any sign and size, as a number or as text, and one that is left out", () => {
  for (const value of ["15", "15.00", "1e3", "0", "-15", "9223372036854775807", '"15"', '"-15"', '"+15"', "null", '""']) {
    for (const [service, path, , json] of withAmount(value)) {
      assert.equal(textOf(read(service, path, bodyOf(service, json)).body), bodyOf(service, json));
    }
  }
});

test("readHttpBody() reads the money that a request names, and none that another parser could read otherwise", () => {
  const amountOf = (json: string, path = "/sale", service: ContractName = "bank") =>
    read(service, path, bodyOf(service, json), blind).amount;
  assert.deepEqual(amountOf('{"amount":1500,"currency_name":"eur"}'), { digits: "1500", currency: "EUR" });
  assert.deepEqual(amountOf('{"amount":"0015","currency":"USD"}'), { digits: "0015", currency: "USD" });
  assert.deepEqual(amountOf('{"amount":1,"currency_name":"978","currency":"KWD"}'), { digits: "1", currency: "KWD" });
  assert.deepEqual(amountOf('{"documentExtID":"D","amount":7}', "/deposit", "fiscal"), { digits: "7", currency: undefined });
  for (const odd of ["-1", "1.5", '"1.5"', '"x"', "9007199254740993", "1e21", "null", '""', "{}"])
    assert.equal(amountOf(`{"amount":${odd}}`), undefined, odd);
});

test("readHttpBody() judges no number that is none of the route's amounts", () => {
  for (const [service, path, json] of [
    ["bank", "/sale", '{"pay_id":1.5,"txn_config":{"amount":1.5},"rate":0.5}'],
    ["bank", "/xreport", '{"amount":1.5}'],
    [
      "fiscal",
      "/sale",
      '{"amount":15.5,"items":[{"itemQty":1.5,"itemPrice":0.25,"discount":2.5,"amount":1.5}],"payments":[1.5]}',
    ],
    ["fiscal", "/check_status", '{"documentID":"17","documentExtID":5,"wsName":1}'],
  ] as const) {
    assert.equal(textOf(read(service, path, bodyOf(service, json)).body), bodyOf(service, json));
  }
});

test("readHttpBody() takes a field twice that decides nothing, or that stands within another", () => {
  assert.equal(
    read("bank", "/sale", '{"pay_id":"A","language":"a","language":"b","txn_config":{"pay_id":1,"pay_id":2}}').key,
    "A",
  );
  const json = Buffer.from('{"documentExtID":"A","items":[{"amount":1},{"amount":2}],"docTime":1,"docTime":2}');
  assert.equal(read("fiscal", "/sale", dataForm(json), strict).key, "A");
});

test("readHttpBody() takes a body of up to 64 levels, and finds what stands behind them", () => {
  for (const levels of [1, 30, 31]) {
    const nested = `{"x":${'[{"a":'.repeat(levels)}1${"}]".repeat(levels)},"pay_id":"A"`;
    assert.equal(read("bank", "/sale", `${nested}}`).key, "A");
    assertRefused("malformed", () => read("bank", "/sale", `${nested},"pay_id":"A"}`));
    assertRefused("malformed", () => read("bank", "/sale", `${nested}]`));
  }
  const deeper = `{"pay_id":"A","x":${'[{"a":'.repeat(32)}1${"}]".repeat(32)}}`;
  assert.throws(() => read("bank", "/sale", deeper), /the body is nested deeper than 64 levels, which is the limit/);
  assert.equal(read("bank", "/sale", deeper, blind).body.length, 1);
});
