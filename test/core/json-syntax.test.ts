import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonError, parseJson, repeatedKeys, withoutComments } from "../../src/core/json-syntax.ts";

function errorOf(text: string): JsonError {
  try {
    parseJson(text);
  } catch (error) {
    assert.ok(error instanceof JsonError);
    return error;
  }
  throw new assert.AssertionError({ message: `${JSON.stringify(text)} was accepted` });
}

const needs = "keys and texts need double quotes, and true, false and null small letters";

const broken: readonly [name: string, text: string, message: string][] = [
  ["an empty file", "", "line 1, column 1: the text ends where a value belongs"],
  ["a comma after the last key", '{\n  "a": 1,\n}', "line 2, column 9: a comma after the last entry: take it out"],
  ["a comma after the last entry", "[1, 2,]", "line 1, column 6: a comma after the last entry: take it out"],
  ["a missing comma", '{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: there is a double quote where a comma belongs"],
  ["a missing colon", '{"a" 1}', 'line 1, column 6: there is "1" where a colon belongs'],
  ["a key without quotes", "{a: 1}", `line 1, column 2: there is "a", which is not JSON: ${needs}`],
  ["single quotes", "{'a': 1}", "line 1, column 2: JSON has no single quotes: use double ones"],
  ["a comment", '{\n  // here\n  "a": 1}', "line 2, column 3: JSON has no comments: take this one out"],
  ["a file cut short", '{"a": [1, 2', "line 1, column 12: the text ends where a comma or ] belongs"],
  ["a text without an end", '{"a": "b\n}', "line 1, column 7: this text has no closing double quote on its line"],
  ["something after the end", "{} x", `line 1, column 4: there is "x", which is not JSON: ${needs}`],
  ["a second value after the end", "{} []", 'line 1, column 4: there is "[" where the end of the text belongs'],
  ["a missing closer", '{"a": [1]', "line 1, column 10: the text ends where a comma or } belongs"],
  ["a comma alone", '{"a": ,}', 'line 1, column 7: there is "," where a value belongs'],
  ["a value for a key", "{1: 2}", 'line 1, column 2: there is "1" where a key in double quotes belongs'],
  ["an open comment", "{} /*", "line 1, column 4: JSON has no comments: take this one out"],
  ["a number cut short", "[1.]", "line 1, column 2: this number is not complete"],
  [
    "a backslash",
    '["C:\\x"]',
    "line 1, column 2: this text holds a backslash that JSON does not know: write \\\\ for one backslash",
  ],
  ["a tab in a text", '["a\tb"]', "line 1, column 2: this text holds a tab or another control character: write \\t for a tab"],
  ["a space of a web page", "{\u00a0}", `line 1, column 2: there is the character U+00A0, which is not JSON: ${needs}`],
  ["a bad number", '{"a": 01}', "line 1, column 8: a number must not begin with 0: take the 0 out"],
  ["a bad word", '{"a": True}', `line 1, column 7: there is "T", which is not JSON: ${needs}`],
  ["the wrong closer", '{"a": [1}', 'line 1, column 9: there is "}" where a comma or ] belongs'],
];

for (const [name, text, message] of broken) {
  test(`parseJson() places ${name}`, () => {
    assert.equal(errorOf(text).message, message);
  });
}

test("parseJson() takes a byte order mark", () => {
  assert.deepEqual(parseJson('\uFEFF{"a":1}'), { a: 1 });
});

test("parseJson() quotes one character at most, so that no secret gets into a message", () => {
  assert.doesNotMatch(errorOf('{"merchantId": GEHEIM}').message, /GE/);
  assert.doesNotMatch(errorOf('{"merchantId": "GEHEIM}').message, /GE/);
});

test("parseJson() takes what JSON.parse takes and places every other text within it", () => {
  const pieces = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"',
    "1",
    "-",
    ".5",
    "true",
    "nul",
    " ",
    "\n",
    "'",
    "\\",
    "/",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join("")),
      ),
      (text) => {
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          const { line, column } = errorOf(text);
          const lines = text.split("\n");
          assert.ok(line >= 1 && line <= lines.length && column >= 1 && column <= (lines[line - 1] ?? "").length + 1);
          return;
        }
        assert.deepEqual(parseJson(text), expected);
      },
    ),
    { numRuns: 2_000 },
  );
});

test("parseJson() places an error that one inserted character makes no later than it", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 3 }), fc.nat(), (text, where) => {
      const at = where % (text.length + 1);
      const bad = `${text.slice(0, at)}\u0001${text.slice(at)}`;
      // A raw control character is never JSON; a text or a number that it cuts is told where it begins.
      assert.ok(errorOf(bad).column <= at + 1);
    }),
  );
});

test("parseJson() survives any depth of nesting", () => {
  assert.equal(errorOf("[".repeat(200_000)).message, "line 1, column 65: objects and lists are nested more than 64 deep");
  assert.equal(errorOf("[".repeat(64)).message, "line 1, column 65: the text ends where a comma or ] belongs");
  assert.throws(() => repeatedKeys(`${"[".repeat(100_000)}${"]".repeat(100_000)}`), JsonError);
});

for (const [text, repeated] of [
  ['{"a":{"a":1},"b":[{"a":1},{"a":2}],"c":"a"}', []],
  ['{"a":1,"a":2}', [{ path: "a", lines: [1, 1] }]],
  ['{\n"a": 1,\n"b": 2,\n"a": 3,\n"a": 4}', ["2,4", "2,5"].map((at) => ({ path: "a", lines: at.split(",").map(Number) }))],
  ['{"a":{"b":[0,{"c":"x\\n\\"","d":{},\n"\\u0063":[]}]}}', [{ path: "a.b[1].c", lines: [1, 2] }]],
  ['{"a":{"x":1,"y":[",","{"],"x":2},"a":{"x":3}}', ["a.x", "a"].map((path) => ({ path, lines: [1, 1] }))],
  ['{"":1,"":2,"two words":1,"two words":2}', ['""', '"two words"'].map((path) => ({ path, lines: [1, 1] }))],
  ['{"__proto__":1,"__proto__":2}', [{ path: "__proto__", lines: [1, 1] }]],
  ["[1,2]", []],
  ['"a"', []],
] as const) {
  test(`repeatedKeys() finds ${repeated.length} in ${JSON.stringify(text)}`, () => {
    JSON.parse(text);
    assert.deepEqual(repeatedKeys(text), repeated);
  });
}

test("withoutComments() blanks comments of both kinds, keeps each place, and leaves texts alone", () => {
  const text = '{ // one\n// at the line\'s beginning\n  "a": "// two", /* three\r\n four */ "b": "/* five */"\n} // six';
  const blanked = withoutComments(text);
  assert.deepEqual(JSON.parse(blanked), { a: "// two", b: "/* five */" });
  for (const word of ['"a"', '"// two"', '"b"', "}"]) assert.equal(blanked.indexOf(word), text.indexOf(word), word);
  assert.equal(blanked.length, text.length);
  assert.equal(withoutComments('{ "a": 1 }'), '{ "a": 1 }');
  assert.throws(() => parseJson(withoutComments("{ /")), JsonError);
});
