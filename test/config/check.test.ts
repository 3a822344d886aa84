import assert from "node:assert/strict";
import { test } from "node:test";
import { check, type Node } from "../../src/config/check.ts";

function problemsOf(node: Node, value: unknown, path = "at"): string[] {
  const problems: string[] = [];
  check(node, value, path, problems);
  return problems;
}

const shape: Node = {
  type: "object",
  additionalProperties: false,
  required: ["path"],
  properties: {
    path: { type: "string", pattern: "^/", $comment: "write the whole path" },
    baudRate: { type: "integer", minimum: 50, maximum: 100, $comment: "no chip is faster" },
    parity: { enum: ["none", "odd"] },
    key: { type: "string", pattern: "^[a-z]+$", maxLength: 4, writeOnly: true },
    names: { type: "array", maxItems: 2, items: { type: "string", pattern: "^[a-z]+$" } },
    timeouts: {
      anyOf: [
        { type: "integer", minimum: 5 },
        {
          type: "object",
          propertyNames: { enum: ["/sale"] },
          patternProperties: { "^/": { type: "integer" } },
          additionalProperties: false,
        },
      ],
    },
  },
};

test("check() tells an unknown key with the key it was meant to be", () => {
  assert.deepEqual(problemsOf(shape, { path: "/a", baudRte: 60 }), ["at.baudRte: unknown key: did you mean baudRate?"]);
});

test("check() tells an unknown key that resembles none with all there are", () => {
  assert.deepEqual(problemsOf(shape, { path: "/a", zzzzzzzz: 60 }), [
    "at.zzzzzzzz: unknown key: use one of path, baudRate, parity, key, names, timeouts",
  ]);
});

test("check() tells a missing key with what it is for", () => {
  assert.deepEqual(problemsOf(shape, {}), ["at.path: missing: write the whole path"]);
});

test("check() tells a number outside its bounds with the bounds and the reason", () => {
  assert.deepEqual(problemsOf(shape, { path: "/a", baudRate: 49 }), [
    "at.baudRate: must be from 50 to 100, not 49: no chip is faster",
  ]);
  assert.deepEqual(problemsOf(shape, { path: "/a", baudRate: 50 }), []);
  assert.deepEqual(problemsOf(shape, { path: "/a", baudRate: 100 }), []);
  assert.deepEqual(problemsOf(shape, { path: "/a", baudRate: 50.5 }), ["at.baudRate: must be a whole number, not 50.5"]);
  assert.deepEqual(problemsOf(shape, { path: "/a", baudRate: Number.NaN }), ["at.baudRate: must be a whole number, not NaN"]);
});

test("check() tells a value that is none of the choices with the choices", () => {
  assert.deepEqual(problemsOf(shape, { path: "/a", parity: "even" }), ['at.parity: must be "none" or "odd", not "even"']);
});

test("check() never shows a secret, whatever is wrong with it", () => {
  for (const value of ["GEHEIM", "toolong", "", 987_654_321, ["GEHEIM"], { GEHEIM: 1 }]) {
    const problems = problemsOf(shape, { path: "/a", key: value });
    assert.equal(problems.length, 1);
    assert.doesNotMatch(problems.join(), /GEHEIM|toolong|987/);
  }
});

test("check() checks the arm whose type the value has", () => {
  assert.deepEqual(problemsOf(shape, { path: "/a", timeouts: "30s" }), [
    'at.timeouts: must be a whole number or an object, not the text "30s"',
  ]);
  assert.deepEqual(problemsOf(shape, { path: "/a", timeouts: { "/sal": 5 } }), [
    "at.timeouts./sal: unknown route: did you mean /sale?",
  ]);
  assert.deepEqual(problemsOf(shape, { path: "/a", timeouts: { "/sale": 5 } }), []);
});

test("check() tells the place of a bad entry in a list, and a list that is too long", () => {
  assert.deepEqual(problemsOf(shape, { path: "/a", names: ["a", "B"] }), ['at.names[1]: "B" is not valid']);
  assert.deepEqual(problemsOf(shape, { path: "/a", names: ["a", "b", "c"] }), [
    "at.names: has 3 entries, and at most 2 are allowed",
  ]);
});

test("check() tells all problems at once and hands back what is right", () => {
  const problems: string[] = [];
  const kept = check(shape, { path: "/a", baudRate: 1, parity: "odd", names: ["a", "B"], wrong: 1 }, "", problems);
  assert.deepEqual(kept, { path: "/a", parity: "odd", names: ["a"] });
  assert.equal(problems.length, 3);
});

test("check() shows a key with line breaks on one line, and a long value cut short", () => {
  assert.deepEqual(problemsOf({ type: "object", additionalProperties: false, properties: { a: {} } }, { "x\ny": 1 }), [
    'at."x\\ny": unknown key: use one of a',
  ]);
  assert.ok(problemsOf({ type: "integer" }, "x".repeat(5000)).join().length < 200);
});

test("check() treats names of Object.prototype as unknown keys", () => {
  assert.equal(problemsOf(shape, JSON.parse('{"path":"/a","__proto__":1,"constructor":2,"toString":3}')).length, 3);
});
