import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { depthMax, entriesMax, parseBounded } from "../../src/envelope/bounded-json.ts";

const watched = ["pay_id", "amount"];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What JSON.parse makes of a text, where that is an object. */
function parsed(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "not a JSON object";
  }
  return isObject(value) ? value : "not a JSON object";
}

function assertSame(text: string): void {
  const bytes = Buffer.from(text);
  const got = parseBounded(bytes, watched);
  // Where a character was cut in two, the bytes have another in its place.
  assert.deepEqual(typeof got === "string" ? got : got.json, parsed(bytes.toString()), JSON.stringify(text));
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

test("parseBounded() gives the same values as JSON.parse, of all that is JSON", () => {
  fc.assert(fc.property(jsonText, assertSame), { numRuns: 3000 });
});

test("parseBounded() takes no text that JSON.parse doesn't take", () => {
  const damage = fc.record({
    text: jsonText,
    at: fc.nat(200),
    cut: fc.nat(3),
    put: fc.constantFrom("", ...'{}[],:"\\u0e+-.1tfn \t\0\x1f', "\u00a0", "\ufeff", "\x7f"),
  });
  fc.assert(
    fc.property(damage, ({ text, at, cut, put }) => assertSame(text.slice(0, at) + put + text.slice(at + cut))),
    { numRuns: 5000 },
  );
});

test("parseBounded() finds the first watched name that stands twice, of any members", () => {
  const name = fc.constantFrom("pay_id", "pay\\u005fid", "\\u0070ay_id", "amount", "other", "Pay_id", "", "päy_id");
  const inner = fc.constantFrom(
    "1",
    '"pay_id"',
    '"a\\"pay_id\\":1"',
    '{"pay_id":1,"pay_id":2}',
    '[{"amount":1},"amount"]',
    '"\\\\"',
  );
  const space = fc.constantFrom("", " ", "\r\n\t");
  const members = fc.array(fc.tuple(name, inner, space), { maxLength: 8 });
  fc.assert(
    fc.property(members, (all) => {
      const text = `{${all.map(([key, value, gap]) => `${gap}"${key}"${gap}:${gap}${value}${gap}`).join(",")}}`;
      const names = all.map(([key]) => String(JSON.parse(`"${key}"`)));
      const repeated = names.find((each, i) => watched.includes(each) && names.indexOf(each) < i);
      const got = parseBounded(Buffer.from(text), watched);
      assert.ok(typeof got !== "string", text);
      assert.equal(got.twice, repeated, text);
    }),
    { numRuns: 3000 },
  );
});

const within = (open: string, levels: number, close: string) => `{"a":${open.repeat(levels)}1${close.repeat(levels)}}`;

test("parseBounded() takes depthMax levels and not one more, whatever text and brackets stand beside them", () => {
  for (const [open, close] of [
    ["[", "]"],
    ['{"\\"":', "}"],
    ['["[[[",', "]"],
  ] as const) {
    assert.ok(typeof parseBounded(Buffer.from(within(open, depthMax - 1, close))) !== "string");
    assert.equal(parseBounded(Buffer.from(within(open, depthMax, close))), "nested deeper than 64 levels");
  }
});

test("parseBounded() takes entriesMax entries and not one more, and counts none within a text", () => {
  const list = (items: number, last = "0") => Buffer.from(`{"a":[${"0,".repeat(items - 1)}${last}]}`);
  // Beside the commas there are two that open, and one more where the last item is a list.
  assert.ok(typeof parseBounded(list(entriesMax - 1)) !== "string");
  assert.equal(parseBounded(list(entriesMax)), "made of more than 65536 entries");
  assert.ok(typeof parseBounded(list(entriesMax - 2, "[]")) !== "string");
  for (const last of ["[]", "{}"]) assert.equal(parseBounded(list(entriesMax - 1, last)), "made of more than 65536 entries");
  assert.ok(typeof parseBounded(Buffer.from(`{"a":"${",[{".repeat(entriesMax)}"}`)) !== "string");
});

test("parseBounded() finds the only name that is watched, and the first of several that stand twice", () => {
  const twice = (text: string, names: readonly string[]) => {
    const got = parseBounded(Buffer.from(text), names);
    assert.ok(typeof got !== "string");
    return got.twice;
  };
  assert.equal(twice('{"amount":1,"amount":2}', ["amount"]), "amount");
  assert.equal(twice('{"amount":1,"amount":2}', ["pay_id"]), undefined);
  assert.equal(twice('{"a":1,"b":2,"b":3,"a":4}', ["a", "b"]), "b");
  assert.equal(twice('{"amount":1,"amount":2}', []), undefined);
});
