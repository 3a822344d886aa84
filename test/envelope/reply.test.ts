import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { type FaultKind, faultClasses } from "../../src/core/fault.ts";
import { faultPayload, readReply } from "../../src/envelope/reply.ts";

const read = (...pieces: readonly (string | Buffer)[]) => readReply(pieces.map((piece) => Buffer.from(piece)));

test("readReply() reads status and code from pieces cut anywhere, also within a character", () => {
  const text = Buffer.from('{"status":"success","code":0,"message":"Ünï ☕"}');
  for (let cut = 0; cut <= text.length; cut++) {
    const reply = read(text.subarray(0, cut), text.subarray(cut));
    assert.equal(reply?.status, "success");
    assert.equal(reply?.code, 0);
    assert.equal(reply?.json["message"], "Ünï ☕");
  }
});

test("readReply() takes a reply without code or status, or with null in them", () => {
  assert.deepEqual(read("{}"), { json: {}, status: undefined, code: undefined });
  const nulls = read('{"status":null,"code":null,"data":null}');
  assert.equal(nulls?.status, undefined);
  assert.equal(nulls?.code, undefined);
});

test("readReply() takes nothing that is no JSON object", () => {
  for (const text of ["", "null", "1", "[]", '"x"', "{", "ERROR", "[".repeat(100_000)]) assert.equal(read(text), undefined);
});

test("faultPayload() writes the service's own error envelope for every kind", () => {
  for (const contract of Object.values(contracts)) {
    // Its keys are the kinds.
    for (const kind of Object.keys(faultClasses) as FaultKind[]) {
      const payload = JSON.parse(faultPayload(contract, kind, 'says "why"\u0002').toString());
      assert.deepEqual(payload, { status: "error", code: contract.faultCodes[kind], message: 'says "why"\u0002' });
      assert.ok(!faultPayload(contract, kind, "\u0002\u0003").includes(2), "a frame's text holds no STX");
    }
  }
});
