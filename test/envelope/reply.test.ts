import assert from "node:assert/strict";
import { test } from "node:test";
import { readReply } from "../../src/envelope/reply.ts";

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
