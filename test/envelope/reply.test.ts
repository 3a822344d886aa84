import assert from "node:assert/strict";
import { test } from "node:test";
import type { Contract } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type ReadReply, readReply } from "../../src/envelope/reply.ts";

const tried = (...pieces: readonly (string | Buffer)[]) => readReply(pieces.map((piece) => Buffer.from(piece)));

function read(...pieces: readonly (string | Buffer)[]): ReadReply {
  const reply = tried(...pieces);
  assert.ok(typeof reply !== "string", String(reply));
  return reply;
}

test("readReply() reads status and code from pieces cut anywhere, also within a character", () => {
  const text = Buffer.from('{"status":"success","code":0,"message":"Ünï ☕"}');
  for (let cut = 0; cut <= text.length; cut++) {
    const reply = read(text.subarray(0, cut), text.subarray(cut));
    assert.equal(reply.status, "success");
    assert.equal(reply.code, 0);
    assert.equal(reply.json["message"], "Ünï ☕");
  }
});

test("readReply() takes a reply without code or status, or with null in them", () => {
  assert.deepEqual(read("{}"), { json: {}, status: undefined, code: undefined });
  const nulls = read('{"status":null,"code":null,"data":null}');
  assert.equal(nulls.status, undefined);
  assert.equal(nulls.code, undefined);
});

test("readReply() takes of a status as much as a log line needs, 16 characters, and of a code an integer, also as text", () => {
  const { status, code } = read(`{"status":"${"abcdefgh".repeat(3)}","code":"-15"}`);
  assert.deepEqual([status, code], ["abcdefghabcdefgh", -15]);
  for (const other of ["1.5", '"E1"', "true", "[]"]) assert.equal(read(`{"code":${other}}`).code, undefined);
});

test("readReply() takes nothing that is no JSON object", () => {
  for (const text of ["", "null", "1", "[]", '"x"', "{", "ERROR"]) {
    assert.equal(tried(text), "not a JSON object");
  }
});

test("readReply() takes a reply of 64 levels and none of 65, wherever they are, and says so", () => {
  const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  assert.equal(read(`{"status":"success","data":${nested(63)}}`).status, "success");
  assert.equal(read(`{"status":"success","a":"${"[".repeat(1000)}"}`).status, "success");
  assert.equal(tried(`{"status":"success","data":${nested(64)}}`), "nested deeper than 64 levels");
  assert.equal(tried(`{"status":"success","a":1,"b":${"[".repeat(4_000_000)}`), "nested deeper than 64 levels");
});

test("readReply() gives what probes are known by, however large the reply around it", () => {
  const padding = `"pad":"${"x".repeat(4_000_000)}"`;
  const { bank, fiscal, qr } = contracts;
  const answers = (contract: Contract, text: string) => contract.probe.isAnswer(read(text).json);
  assert.ok(answers(bank, `{${padding},"data":{"x":[{}],"operations":["sale"],${padding}},"status":"success"}`));
  assert.ok(answers(fiscal, `{"status":"success",${padding},"operations":["sale"]}`));
  assert.ok(answers(qr, `{"status":"success","data":{${padding},"systems":[{"name":"A","operations":["check"]}]}}`));
  assert.ok(!answers(qr, `{"status":"success","data":{"data":{"systems":[]}}}`));
});
