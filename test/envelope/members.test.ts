import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Names, readMembers } from "../../src/envelope/members.ts";

const names = new Names({ pay_id: true, amount: true, list: true, data: { rrn: true, list: true, data: true } });

/** What is read of a text: the wanted members as an object and the name that stands twice, or why it isn't read. */
function read(text: string | Buffer) {
  const members = readMembers(Buffer.from(text), names);
  return typeof members === "string" ? members : { json: members.json, twice: members.twice };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The same by JSON.parse. */
function expected(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "no JSON object";
  }
  if (!isObject(value)) return "no JSON object";
  const of = (object: Record<string, unknown>, wanted: readonly string[]) =>
    Object.fromEntries(wanted.filter((name) => Object.hasOwn(object, name)).map((name) => [name, object[name]]));
  const json = of(value, ["pay_id", "amount", "list", "data"]);
  if (isObject(json["data"])) json["data"] = of(json["data"], ["rrn", "list", "data"]);
  return json;
}

function assertSame(text: string): void {
  const bytes = Buffer.from(text);
  const got = read(bytes);
  // Where a character was cut in two, the bytes have another in its place.
  assert.deepEqual(typeof got === "string" ? got : got.json, expected(bytes.toString()), JSON.stringify(text));
}

const keys = fc.constantFrom("pay_id", "amount", "list", "data", "rrn", "x", "", "päy", "__proto__", "pay\\u005fid", 'a"b');

/** JSON texts of all that the grammar has, keys twice and white space included. */
const { text: jsonText } = fc.letrec<{ text: string; object: string }>((tie) => {
  const space = fc.constantFrom("", "", " ", "\n", "\t\r ");
  const padded = (value: fc.Arbitrary<string>) => fc.tuple(space, value, space).map((parts) => parts.join(""));
  const texts = fc.oneof(
    fc.string().map((value) => JSON.stringify(value)),
    fc.string({ unit: "binary" }).map((value) => JSON.stringify(value)),
    fc.constantFrom('"\\u00e9\\/\\b\\f\\"\\\\"', '"\\uD83D\\ude00"', '"\\ud800"'),
  );
  const scalars = fc.oneof(
    fc.constantFrom("true", "false", "null", "0", "-0", "1e999", "-1.5E-3", "9007199254740993", "0.1e+2", "12"),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
    texts,
  );
  const list = fc.array(tie("text"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`);
  const key = keys.map((name) => (name.includes("\\") ? `"${name}"` : JSON.stringify(name)));
  const member = fc.tuple(padded(key), tie("text")).map(([name, value]) => `${name}:${value}`);
  const object = fc.array(member, { maxLength: 6 }).map((members) => `{${members.join(",")}}`);
  return {
    object: padded(object),
    text: padded(fc.oneof({ depthSize: "small", withCrossShrink: true }, scalars, list, object, tie("object"))),
  };
});

test("readMembers() gives the same values as JSON.parse, of all that is JSON", () => {
  fc.assert(fc.property(jsonText, assertSame), { numRuns: 3000 });
});

test("readMembers() takes no text that JSON.parse doesn't take, and takes all that it does", () => {
  const damage = fc.record({
    text: jsonText,
    at: fc.nat(200),
    cut: fc.nat(3),
    put: fc.constantFrom("", ...'{}[],:"\\u0e+-.1tfn \t\0\x1f', "\u00a0", "\ufeff", "\x7f"),
  });
  fc.assert(
    fc.property(damage, ({ text, at, cut, put }) => assertSame(text.slice(0, at) + put + text.slice(at + cut))),
    { numRuns: 10_000 },
  );
});

for (const text of [
  ...['{"a":01}', '{"a":1.}', '{"a":.1}', '{"a":1e}', '{"a":-}', '{"a":+1}', '{"a":truE}', '{"a":nul', '{"a":1,}', "{,}"],
  ...['{"a"}', '{"a":}', "{a:1}", '{"a":[1,]}', '{"a":[}', '{"a":{]}', '{"a":"\\x"}', '{"a":"\\u12g4"}', '{"a":"\n"}', "{}}"],
  ...['{"a":1}x', "\ufeff{}", '{"a":"', '{"a":"\\', '{"a":"\\u00', '{"pay_id":', "{", '{"a":[1 2]}', '{"a":{"b":1 "c":2}}'],
]) {
  test(`readMembers() refuses ${JSON.stringify(text)}, as JSON.parse does`, () => {
    assert.throws(() => JSON.parse(text));
    assert.equal(read(text), "no JSON object");
  });
}

for (const [text, twice] of [
  ['{"pay_id":1,"amount":2}', undefined],
  ['{"pay_id":1,"amount":2,"pay_id":1}', "pay_id"],
  ['{"pay\\u005fid":"A","pay_id":"B"}', "pay_id"],
  ['{"pay_id":"A","\\u0070\\u0061\\u0079\\u005F\\u0069\\u0064":"B"}', "pay_id"],
  ['{"amount":1,"pay_id":"A","amount" : 2,"pay_id":"B"}', "amount"],
  ['{"pay_id":"A","x":{"pay_id":"B","pay_id":"C"},"y":[{"pay_id":1}]}', undefined],
  ['{"pay_id":"{\\"pay_id\\":1}","x":"\\"pay_id\\":"}', undefined],
  ['{"x":1,"x":2,"pay_idd":1,"pay_i":1,"Pay_id":1,"pay_id":1}', undefined],
  ['{"pay\\u015fid":1,"pay_id":1}', undefined],
] as const) {
  test(`readMembers() finds ${twice ?? "nothing"} twice at the top of ${text}`, () => {
    const members = read(text);
    assert.ok(typeof members !== "string");
    assert.equal(members.twice, twice);
  });
}
