import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call } from "../../src/core/call.ts";
import { answerFields } from "../../src/journal/answer-fields.ts";
import { callOf } from "./records.ts";

const answered = (json: object) => {
  const { status, code } = json as { readonly status?: string; readonly code?: number };
  return { outcome: "answered", status, code, payload: [Buffer.from(JSON.stringify(json))] } as const;
};

const qrCode: Call = { ...callOf("P-1", { service: "qr" }), route: "/showqrcode" };
const receipt: Call = callOf("F-1", { service: "fiscal" });

test("answerFields() takes a success, and a code of progress, for the terminal's having it", () => {
  assert.deepEqual(answerFields(callOf("A"), answered({ status: "success" }), {}), { begun: true, learned: undefined });
  assert.deepEqual(answerFields(receipt, answered({ status: "error", code: 44 }), {}), { begun: true });
});

test("answerFields() takes a code of refusal for nothing begun, but of a call that is followed", () => {
  const refused = answered({ status: "error", code: -16 });
  assert.deepEqual(answerFields(callOf("A"), refused, {}), { begun: false });
  assert.deepEqual(answerFields({ ...callOf("A"), followMs: 1_000 }, refused, {}), {});
});

test("answerFields() says nothing of an error that leaves it open, of what wasn't answered, and of other routes", () => {
  assert.deepEqual(answerFields(callOf("A"), answered({ status: "error", code: -3 }), {}), {});
  assert.deepEqual(answerFields(callOf("A"), { outcome: "unknown" }, {}), {});
  assert.deepEqual(answerFields({ ...callOf("A"), route: "/abort" }, answered({ status: "success" }), {}), {});
});

test("answerFields() keeps the name that a code's answer gives, else the till's own, where it can be kept whole", () => {
  for (const [reply, ask, learned] of [
    [{ status: "success", data: { trans: "T-9" } }, {}, "T-9"],
    [{ status: "success", data: { trans: 77 } }, {}, "77"],
    [{ status: "success", data: {} }, {}, "P-1"],
    [{ status: "success" }, { trans: "MINE" }, "MINE"],
    // A gateway's word for an outcome that it doesn't know looks so.
    [{ status: "success", message: "in progress" }, {}, undefined],
    [{ status: "success", data: { trans: "x".repeat(65) } }, {}, undefined],
    [{ status: "success", data: { trans: "4111111111111111" } }, {}, undefined],
  ] as const) {
    const fields = answerFields(qrCode, answered(reply), ask);
    assert.deepEqual(fields, { begun: true, learned }, JSON.stringify(reply));
  }
});
