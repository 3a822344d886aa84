import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { Fault, type FaultKind, faultClasses } from "../../src/core/fault.ts";
import { faultBody, faultHttpStatus, faultOnLine } from "../../src/envelope/fault.ts";

const { bank, fiscal, qr } = contracts;

// Its keys are the kinds.
const kinds = Object.keys(faultClasses) as FaultKind[];

const textOf = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString();

test("faultBody() writes the service's own error envelope for every kind, where a fault can be no end", () => {
  for (const contract of Object.values(contracts)) {
    for (const kind of kinds) {
      const { word, status, code, payload } = faultBody(contract, contract.probe.route, new Fault(kind, 'says "why"\u0002'));
      assert.deepEqual([word, status, code], ["error", "error", contract.faultCodes[kind]]);
      assert.deepEqual(JSON.parse(payload.toString()), { status, code, message: 'says "why"\u0002' });
      assert.ok(!payload.includes(2) && !payload.includes(3), "a frame's text holds no STX");
    }
  }
});

test("faultBody() writes each contract's word for what isn't known, to the letter", () => {
  const text = (contract: typeof qr, path: string | undefined, kind: FaultKind) =>
    faultBody(contract, path, new Fault(kind, "why")).payload.toString();
  assert.equal(text(qr, "/check", "timeout"), '{"status":"success","message":"why"}');
  assert.equal(text(qr, "/check", "unavailable"), '{"status":"success","message":"why"}');
  assert.equal(text(qr, "/showqrcode", "broken"), '{"status":"success","message":"why"}');
  assert.equal(text(qr, "/showqrcode", "unavailable"), '{"status":"error","code":1,"message":"why"}');
  assert.equal(text(qr, "/refund", "timeout"), '{"message":"why"}');
  assert.equal(text(qr, "/refund", "unavailable"), '{"status":"error","code":1,"message":"why"}');
  assert.equal(text(fiscal, "/deposit", "timeout"), '{"status":"error","code":44,"message":"why"}');
  assert.equal(text(fiscal, "/sale", "timeout"), '{"status":"error","code":5,"message":"why"}');
  assert.equal(text(bank, "/confirm", "timeout"), '{"status":"error","code":-3,"message":"why"}');
});

test("faultBody() never says that an operation goes on to a request that its till must fix, and that would be sent so for ever", () => {
  for (const contract of Object.values(contracts)) {
    for (const { path } of contract.routes) {
      for (const kind of kinds.filter((each) => faultClasses[each].httpStatus < 500)) {
        const fault = new Fault(kind, "why");
        const { word, status } = faultBody(contract, path, fault);
        assert.notEqual(status, "success", `${contract.service} ${path} ${kind}`);
        const isCheck = contract === qr && path === "/check";
        // An error there would end a payment that may go on.
        assert.equal(word, isCheck ? "none" : "error", `${contract.service} ${path} ${kind}`);
        assert.deepEqual(faultOnLine(contract, path, fault).length, isCheck ? 0 : 1);
        assert.equal(faultHttpStatus(contract, word, fault, 200), isCheck ? fault.httpStatus : 200);
      }
    }
  }
});

test("faultBody() answers a path that the contract doesn't have with an error, and what is no request by what all routes allow", () => {
  const wordOf = (contract: typeof qr, path: string | undefined) => faultBody(contract, path, new Fault("http", "why")).word;
  for (const path of ["/nowhere", "/check/", "/CHECK", "/__proto__", ""]) assert.equal(wordOf(qr, path), "error", path);
  assert.deepEqual([wordOf(qr, undefined), wordOf(bank, undefined), wordOf(fiscal, undefined)], ["none", "error", "error"]);
});

test("faultHttpStatus() is 200 where tills throw others away, but for a body without a word", () => {
  const [timeout, sign] = [new Fault("timeout", ""), new Fault("sign", "")];
  assert.deepEqual(
    [faultHttpStatus(fiscal, "error", timeout, undefined), faultHttpStatus(fiscal, "error", sign, undefined)],
    [504, 200],
  );
  assert.deepEqual(
    [faultHttpStatus(qr, "error", sign, undefined), faultHttpStatus(qr, "in progress", timeout, 200)],
    [400, 200],
  );
  assert.deepEqual([faultHttpStatus(qr, "none", timeout, 200), faultHttpStatus(qr, "none", timeout, undefined)], [504, 504]);
});

test("faultOnLine() writes nothing where there is no word, and otherwise what HTTP has, with an unknown outcome", () => {
  const fault = new Fault("broken", "why");
  assert.deepEqual(faultOnLine(qr, "/final_confirm", fault), []);
  assert.equal(textOf(faultOnLine(qr, "/check", fault)), '{"status":"success","message":"why","outcome":"unknown"}');
  assert.equal(
    textOf(faultOnLine(fiscal, undefined, new Fault("malformed", "why"))),
    '{"status":"error","code":2,"message":"why"}',
  );
});

test("faultOnLine() passes an upstream posline's own error on, but no other words of it, and none where an error might be an end", () => {
  const line = (contract: typeof qr, path: string, payload: string) =>
    textOf(faultOnLine(contract, path, new Fault("unavailable", "why", { payload: [Buffer.from(payload)] })));
  const theirs = '{"status":"error","code":-3,"message":"theirs"}';
  const own = '{"status":"error","code":-3,"message":"why"}';
  assert.equal(line(bank, "/sale", theirs), theirs);
  for (const other of ['{"status":"success"}', "{}", "<html>", "[]", ""]) assert.equal(line(bank, "/sale", other), own, other);
  assert.equal(line(qr, "/check", theirs), '{"status":"success","message":"why"}');
  assert.equal(line(qr, "/refund", theirs), theirs);
  const unknown = new Fault("timeout", "why", { payload: [Buffer.from(theirs)] });
  assert.equal(textOf(faultOnLine(bank, "/sale", unknown)), '{"status":"error","code":-3,"message":"why","outcome":"unknown"}');
  assert.equal(textOf(faultOnLine(qr, "/refund", unknown)), "");
});
