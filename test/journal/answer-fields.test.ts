import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call } from "../../src/core/call.ts";
import { answerFields, leavesUnknown } from "../../src/journal/answer-fields.ts";
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
    // One that has lost digits, and a till's own that can't be kept: no name at all, not another one.
    [{ status: "success", data: { trans: 2 ** 60 } }, {}, undefined],
    [{ status: "success", data: {} }, undefined, undefined],
    [{ status: "success", data: {} }, {}, "P-1"],
    [{ status: "success" }, { trans: "MINE" }, "MINE"],
    [{ status: "success", data: { trans: "x".repeat(65) } }, {}, undefined],
    [{ status: "success", data: { trans: "4111111111111111" } }, {}, undefined],
  ] as const) {
    const fields = answerFields(qrCode, answered(reply), ask);
    assert.deepEqual(fields, { begun: true, learned }, JSON.stringify(reply));
  }
});

test("answerFields() takes nothing from a success with a message alone: a gateway's word for what it lost looks so", () => {
  const doubt = answered({ status: "success", message: "in progress" });
  assert.deepEqual(answerFields(qrCode, doubt, {}), {});
  assert.equal(leavesUnknown({ ...qrCode, followMs: 1_000 }, doubt, {}), true);
  // bank's gateway says -3.
  assert.deepEqual(answerFields(callOf("A"), doubt, {}), { begun: true, learned: undefined });
});

test("answerFields() keeps the name that a refusal gives, and says that it leaves the end open", () => {
  const refused = answered({ status: "error", code: 1, data: { trans: "T-9" } });
  assert.deepEqual(answerFields(qrCode, refused, {}), { learned: "T-9" });
  assert.equal(leavesUnknown({ ...qrCode, followMs: 1_000 }, refused, { learned: "T-9" }), true);
  assert.deepEqual(answerFields(qrCode, answered({ status: "error", code: 1 }), {}), {});
});

test("answerFields() takes a success that is an end for that, but not one with a document that is open", () => {
  const deposit: Call = { ...receipt, route: "/deposit" };
  assert.deepEqual(answerFields(deposit, answered({ status: "success", docStatus: 1 }), {}), { end: "closed" });
  assert.deepEqual(answerFields(deposit, answered({ status: "success" }), {}), { end: "closed" });
  assert.deepEqual(answerFields(deposit, answered({ status: "success", docStatus: 0 }), {}), { begun: true });
  const cancel: Call = { ...qrCode, route: "/cancel" };
  assert.deepEqual(answerFields(cancel, answered({ status: "success", data: { rrn: "1" } }), {}), { end: "approved" });
  // qr.md, Endpoints: on success data.rrn; without it nothing is proven, nor is there a question that could
  assert.deepEqual(answerFields(cancel, answered({ status: "success" }), {}), {});
});

test("answerFields() takes a receipt that was closed and not printed for begun", () => {
  assert.deepEqual(answerFields(receipt, answered({ status: "error", code: 15 }), {}), { begun: true });
});

test("answerFields() knows a key that is cut in an answer that has it whole", () => {
  const key = "K".repeat(70);
  const call = callOf(key.slice(0, 64));
  const own = { begun: true, learned: undefined };
  assert.deepEqual(answerFields(call, answered({ status: "success", pay_id: key }), undefined), own);
  assert.deepEqual(answerFields(call, answered({ status: "success", pay_id: `L${key}` }), undefined), {});
});

test("answerFields() takes nothing from an answer that names another operation, or has only a code of progress", () => {
  const deposit: Call = { ...receipt, route: "/deposit" };
  const other = answered({ status: "success", docStatus: 1, documentExtID: "F-2" });
  assert.deepEqual(answerFields(deposit, other, {}), {});
  assert.deepEqual(answerFields(callOf("A"), answered({ status: "success", pay_id: "B" }), {}), {});
  assert.deepEqual(answerFields(callOf("007"), answered({ status: "success", pay_id: 7 }), {}), {
    begun: true,
    learned: undefined,
  });
  assert.deepEqual(answerFields(deposit, answered({ status: "success", code: 44 }), {}), { begun: true });
});

test("leavesUnknown() of a followed operation whose answer proves nothing, and of no other", () => {
  const isUnknown = (call: Call, json: object, asked: Partial<Call> = { followMs: 1_000 }) => {
    const answer = answered(json);
    return leavesUnknown({ ...call, ...asked }, answer, answerFields({ ...call, ...asked }, answer, {}));
  };
  const open = { status: "error", code: -3 };
  const refund: Call = { ...qrCode, route: "/refund" };
  assert.equal(isUnknown(callOf("A"), open), true);
  assert.equal(isUnknown(callOf("A"), { status: "error" }), true);
  assert.equal(isUnknown(callOf("A"), { status: "success", pay_id: "B" }), true, "another one's");
  assert.equal(isUnknown(refund, { status: "error", code: 1 }), true);
  assert.equal(isUnknown(refund, { status: "success" }), true);
  assert.equal(isUnknown(refund, { status: "success", data: { rrn: "1" } }), false);
  assert.equal(isUnknown(callOf("A"), { status: "success" }), false, "it goes on");
  assert.equal(isUnknown(callOf("A"), { status: "error", code: -16 }), false, "its follower takes it for declined");
  assert.equal(isUnknown(receipt, { status: "error", code: 44 }), false, "it goes on");
  assert.equal(isUnknown({ ...callOf("A"), route: "/supported_operations" }, open), false);
  assert.equal(isUnknown(callOf("A"), open, {}), false, "whose caller was told the answer, and no more");
  assert.equal(leavesUnknown({ ...callOf("A"), followMs: 1_000 }, { outcome: "not-sent" }, {}), false);
});
