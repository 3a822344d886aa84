import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readCapabilities } from "../../src/admin/capabilities.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { probeReplies } from "../support/terminal.ts";

test("readCapabilities() reads the answer to each contract's probe", () => {
  assert.deepEqual(readCapabilities(JSON.parse(probeReplies.supported)), { operations: ["sale", "check_status"] });
  assert.deepEqual(readCapabilities(JSON.parse(probeReplies.bankSupported)), { operations: ["sale", "check"] });
  assert.deepEqual(readCapabilities(JSON.parse(probeReplies.connection)), {
    systems: [{ name: "PALM", operations: ["showqrcode", "check"] }],
  });
});

test("readCapabilities() of 10,000 operations keeps 64 and says how many are left out", () => {
  const operations = Array.from({ length: 10_000 }, (_, n) => `operation${n}`);
  const capabilities = readCapabilities({ operations });
  assert.deepEqual(capabilities, {
    operations: operations.slice(0, 64),
    leftOut: "9936 of 10000 operations aren't shown: 64 is the limit",
  });
  const systems = Array.from({ length: 40 }, () => ({ name: "PALM", operations }));
  const many = readCapabilities({ data: { systems } });
  assert.ok(many !== undefined && "systems" in many);
  assert.equal(many.systems.length, 32);
  assert.equal(many.leftOut, "8 of 40 systems aren't shown: 32 is the limit");
  assert.equal(many.systems[0]?.leftOut, "9936 of 10000 operations aren't shown: 64 is the limit");
});

test("readCapabilities() cuts a name of a megabyte, and masks a card number", () => {
  const capabilities = readCapabilities({ operations: ["x".repeat(1_000_000), "sale 4111111111111111"] });
  assert.deepEqual(capabilities, { operations: [`${"x".repeat(63)}…`, "sale 411111******1111"] });
});

test("readCapabilities() returns undefined for an answer that has neither, and ? for a name that is not text", () => {
  for (const answer of [{}, { operations: "sale" }, { data: null }, { data: [] }, { data: { systems: {} } }]) {
    assert.equal(readCapabilities(answer), undefined);
  }
  assert.deepEqual(readCapabilities({ data: { systems: [1, null, { operations: 1 }] } }), {
    systems: [{ name: "?", operations: [] }],
  });
});

test("readCapabilities() reads something from each answer that a contract takes for its probe's, at most 300 kB (property)", () => {
  const anything = fc.dictionary(fc.constantFrom("status", "operations", "data", "systems"), fc.jsonValue());
  const texts = fc.array(fc.string({ maxLength: 300 }), { maxLength: 200 });
  const real = fc.oneof(
    fc.record({ status: fc.constant("success"), operations: texts }),
    fc.record({ status: fc.constant("success"), data: fc.record({ operations: texts }) }),
    fc.record({
      status: fc.constant("success"),
      data: fc.record({ systems: fc.array(fc.record({ name: fc.string(), operations: texts }), { maxLength: 60 }) }),
    }),
  );
  fc.assert(
    fc.property(fc.oneof(anything, real), (answer: JsonObject) => {
      const capabilities = readCapabilities(answer);
      assert.ok(JSON.stringify(capabilities ?? null).length < 300_000);
      if (Object.values(contracts).some(({ probe }) => probe.isAnswer(answer))) assert.notEqual(capabilities, undefined);
    }),
    { numRuns: 50 },
  );
});
