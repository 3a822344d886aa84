import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "../../src/config/check.ts";
import { checkObject } from "../../src/config/check-object.ts";

const node: Node = {
  type: "object",
  additionalProperties: false,
  properties: { service: { type: "string" }, sale: { type: "object", properties: { amount: { type: "integer" } } } },
};

const problemsOf = (text: string) => {
  const problems: string[] = [];
  checkObject(node, text, problems);
  return problems;
};

test("checkObject() refuses a key that is there twice, wherever and however it is written, since JSON.parse takes the last", () => {
  for (const [text, key] of [
    ['{"service":"bank","service":"qr"}', "service"],
    ['{"sale":{"amount":100,"amount":900}}', "sale.amount"],
    ['{"sale":{"amount":100,"\\u0061mount":900}}', "sale.amount"],
    ['{"sale":{"amount":100,"amount":100}}', "sale.amount"],
  ] as const) {
    assert.deepEqual(problemsOf(text), [`${key}: set twice, on line 1 and on line 1: keep only one`], text);
  }
  assert.deepEqual(problemsOf('{"service":"amount","sale":{"amount":100}}'), []);
});

test("checkObject() names what is no JSON object, and what is nested too deeply", () => {
  assert.match(problemsOf("[]").join(), /must be a JSON object: its keys are service, sale/);
  assert.match(problemsOf("{").join(), /^line 1, column 2: /);
  assert.match(problemsOf(`${'{"a":'.repeat(100)}1${"}".repeat(100)}`).join(), /nested more than 64 deep/);
});
