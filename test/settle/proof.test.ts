import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { settlingRulesOf } from "../../src/contract/settling.ts";
import type { ContractName } from "../../src/core/call.ts";
import {
  type FollowedOperation,
  finalEndIn,
  goesOn,
  hasCode,
  isOwnRefusal,
  leavesOpen,
  namesOtherKey,
  saysAbsent,
  saysNothing,
  saysPending,
  saysUnprinted,
  statesEnd,
  verdictIn,
} from "../../src/settle/proof.ts";
import { saidToQuestion } from "../../src/settle/said.ts";
import { bad, good, operationOf } from "./judged.ts";

const rules = settlingRulesOf("bank", "/sale");
assert.ok(rules);
const sale: FollowedOperation = { contract: contracts.bank, rules, keyField: "pay_id", key: "A-1", asks: true };

test("goesOn() takes a question's success for an end only where it says one", () => {
  const data = { rrn: "1" };
  const ends: readonly [ContractName, string, object][] = [
    ["bank", "/check", { data: { status: "APPROVED" } }],
    ["qr", "/check", { data }],
    ["fiscal", "/check_status", { docStatus: 1 }],
  ];
  for (const [service, path, end] of ends) {
    const open = [{}, { data: {} }, { data: { status: "constructor" } }, { docStatus: 0 }];
    for (const reply of open) {
      assert.equal(
        goesOn(contracts[service], path, { status: "success", ...reply }),
        true,
        `${service} ${JSON.stringify(reply)}`,
      );
    }
    assert.equal(goesOn(contracts[service], path, { status: "success", ...end }), false, service);
  }
  assert.equal(goesOn(contracts.bank, "/check", { status: "success", data: { status: "ERROR" } }), true, "a contradiction");
  for (const [service, path] of [
    ["bank", "/terminals"],
    ["qr", "/check_connection"],
    ["fiscal", "/check_shift"],
  ] as const) {
    assert.equal(goesOn(contracts[service], path, { status: "success" }), false, path);
  }
});

test("goesOn() takes an operation's own success for an end only where its contract does, and its answer says one", () => {
  const success = { status: "success" };
  for (const [service, path, reply, expected] of [
    ["bank", "/sale", { data: { status: "APPROVED" } }, true],
    ["fiscal", "/sale", { docStatus: 1 }, false],
    ["fiscal", "/sale", { docStatus: 0 }, true],
    ["fiscal", "/deposit", {}, false],
    ["fiscal", "/deposit", { docStatus: 0 }, true],
    ["qr", "/refund", { data: { rrn: "1" } }, false],
    ["qr", "/refund", {}, true],
    ["qr", "/cancel", { data: {} }, true],
    ["qr", "/final_confirm", {}, false],
  ] as const) {
    assert.equal(goesOn(contracts[service], path, { ...success, ...reply }), expected, `${path} ${JSON.stringify(reply)}`);
  }
});

test("leavesOpen() of an error that is neither a refusal nor an end, answered to an operation or to a question about one", () => {
  for (const [service, path, code, reply, expected] of [
    ["bank", "/sale", -3, {}, true],
    ["bank", "/sale", -29, {}, false],
    ["bank", "/sale", -20, { data: { status: "ERROR" } }, false],
    ["bank", "/check", -20, { data: { status: "REVERSED" } }, false],
    ["bank", "/check", -15, {}, true],
    ["bank", "/terminals", -3, {}, false],
    ["fiscal", "/sale", 1, {}, false],
    ["fiscal", "/sale", 15, { code: 15, docStatus: 1 }, true],
    ["fiscal", "/check_status", 44, {}, true],
    ["fiscal", "/check_shift", 44, {}, false],
    ["qr", "/refund", 1, {}, true],
    // Its error ends the payment that was asked about (qr.md, Flow rules).
    ["qr", "/check", 1, {}, false],
  ] as const) {
    const open = leavesOpen(contracts[service], path, { status: "error", code, ...reply }, code);
    assert.equal(open, expected, `${service} ${path} ${code} ${JSON.stringify(reply)}`);
  }
});

test("verdictIn() takes no name that every object has for an end (found by fuzzing)", () => {
  for (const status of ["constructor", "toString", "hasOwnProperty", "__proto__"]) {
    for (const isSuccess of [true, false]) {
      const reply = { status: isSuccess ? "success" : "error", code: -20, data: { status } };
      assert.equal(verdictIn(sale, reply, isSuccess), undefined, status);
      assert.equal(finalEndIn(sale, reply), undefined, status);
    }
    const reply = { status: "success", data: { status } };
    const summary = { code: undefined, message: undefined, httpStatus: undefined, reason: undefined };
    assert.equal(saysPending(sale, { reply, summary }), true, status);
  }
});

test("verdictIn() takes the contract's own words for ends", () => {
  const ends = ["APPROVED", "ERROR", "REVERSED"].map((status) => verdictIn(sale, { data: { status } }, status === "APPROVED"));
  assert.deepEqual(ends, ["approved", "declined", "reversed"]);
});

const receipt = operationOf("fiscal", "/sale");
const payment = operationOf("qr", "/showqrcode");

test("verdictIn() takes no failure that comes with a success, and no success that comes with an error", () => {
  for (const status of ["ERROR", "REVERSED"]) assert.equal(verdictIn(sale, { data: { status } }, true), undefined);
  assert.equal(verdictIn(sale, { data: { status: "APPROVED" } }, false), undefined);
  for (const reply of [{}, { data: null }, { data: "APPROVED" }, { data: {} }, { status: "APPROVED" }])
    assert.equal(verdictIn(sale, reply, true), undefined);
});

test("verdictIn() takes a document for closed beside an error only where that says that it wasn't printed", () => {
  assert.equal(verdictIn(receipt, { docStatus: 1, code: 15 }, false), "closed");
  assert.equal(verdictIn(receipt, { docStatus: "1", code: "15" }, false), "closed");
  for (const code of [undefined, 0, 9, 44]) assert.equal(verdictIn(receipt, { docStatus: 1, code }, false), undefined);
  assert.equal(verdictIn(receipt, { docStatus: 1 }, true), "closed");
  assert.equal(verdictIn(receipt, { docStatus: 0 }, true), undefined);
});

test("verdictIn() takes any rrn for the end of a payment, and none of an error", () => {
  assert.equal(verdictIn(payment, { data: { rrn: "ERROR" } }, true), "approved");
  assert.equal(verdictIn(payment, { data: { rrn: "" } }, true), undefined);
  assert.equal(verdictIn(payment, { data: { rrn: "77" } }, false), undefined);
});

test("saysAbsent() needs an error with the contract's code: a success with it is no absence", () => {
  assert.equal(saysAbsent(sale, bad(-15)), true);
  for (const other of [good({ code: -15 }), bad(-3), bad(undefined)]) assert.equal(saysAbsent(sale, other), false);
  assert.equal(saysAbsent(payment, bad(-15)), false);
  assert.equal(hasCode([0, -15], undefined), false);
});

test("saysPending() finds a state that isn't final, or without one a code of progress", () => {
  for (const pending of [good({ docStatus: 0 }), good({ docStatus: -1 }), good({ code: 44 })])
    assert.equal(saysPending(receipt, pending), true);
  for (const over of [good({ docStatus: 1 }), good({ docStatus: 1, code: 44 }), good()])
    assert.equal(saysPending(receipt, over), false);
  assert.equal(saysPending(payment, good({ data: { rrn: "77" } })), false);
});

test("saysNothing() takes a payment's success with a message alone for a gateway's doubt, and no other answer", () => {
  const payment = operationOf("qr", "/showqrcode");
  for (const more of [{ message: "unknown" }, { data: null, message: "unknown" }]) {
    assert.equal(saysNothing(payment, good(more)), true);
    assert.equal(saysNothing(sale, good(more)), false, "bank's gateway says -3");
  }
  for (const answer of [good(), good({ message: "" }), good({ data: {}, message: "shown" }), bad(1, { message: "no" })])
    assert.equal(saysNothing(payment, answer), false);
  assert.equal(saysNothing(sale, good({ pay_id: "A-2" })), true);
  assert.equal(saysNothing(sale, bad(-3, { outcome: "unknown" })), true, "a posline gateway's word");
});

test("isOwnRefusal() takes a code that the contract lists, but not the one for anything that went wrong", () => {
  const { fiscal, bank, qr } = contracts;
  for (const code of [4, 7, 8, 9, 10, 11, 12, 13, 23]) assert.equal(isOwnRefusal(fiscal, code), true, String(code));
  for (const code of [-15, -20, -21, -54]) assert.equal(isOwnRefusal(bank, code), true, String(code));
  for (const code of [undefined, 16, 36, -999, 400, 504, 599]) {
    for (const contract of [fiscal, bank, qr]) assert.equal(isOwnRefusal(contract, code), false);
  }
  assert.deepEqual([isOwnRefusal(fiscal, 5), isOwnRefusal(bank, -3), isOwnRefusal(qr, 1)], [false, false, false]);
});

test("statesEnd() takes an error to a question for an end where the contract does, and none to an operation", () => {
  const payment = operationOf("qr", "/showqrcode");
  assert.equal(statesEnd(payment, "/check", bad(1)), true);
  assert.equal(statesEnd(payment, "/showqrcode", bad(1)), false);
  assert.equal(statesEnd(payment, "/check", good({ data: { rrn: "7" } })), true);
  assert.equal(statesEnd(payment, "/check", good()), false);
  assert.equal(statesEnd(sale, "/check", bad(-15)), false);
  assert.equal(statesEnd(sale, "/check", bad(-20, { data: { status: "ERROR" } })), true);
});

test("saidToQuestion() takes what tells one transaction or document from another, once it has ended, and no number that lost digits", () => {
  const idsOf = (operation: FollowedOperation, more: object) => saidToQuestion(operation, good(more), undefined).ids;
  const data = { txn_id: 7, status: "APPROVED", rrn: "77", auth: "1", print_data: "..." };
  assert.deepEqual(idsOf(sale, { data }), { txn_id: "7", status: "APPROVED", rrn: "77", auth: "1" });
  assert.deepEqual(idsOf(sale, { data: { ...data, txn_id: 1e20 } }), { status: "APPROVED", rrn: "77", auth: "1" });
  assert.equal(idsOf(sale, { data: { ...data, status: "IN_PROGRESS" } }), undefined);
  const document = { docStatus: 1, documentID: 12, fiscalID: "F-1" };
  assert.deepEqual(idsOf(receipt, document), { documentID: "12", fiscalID: "F-1", docStatus: "1" });
  assert.equal(idsOf(receipt, { ...document, docStatus: 0 }), undefined);
});

test("namesOtherKey() finds a key that isn't its own, however it is written, and none where either is missing", () => {
  for (const [key, named, isOther] of [
    ["K-1", "K-2", true],
    ["K-1", "K-1", false],
    ["007", 7, false],
    [7, "8", true],
    ["K-1", undefined, false],
    [null, "K-2", false],
  ] as const)
    assert.equal(namesOtherKey(operationOf("bank", "/sale", key), { pay_id: named }), isOther);
});

test("saysUnprinted() finds the code or the printer's error, where the contract has them", () => {
  for (const told of [bad(15), good({ printError: 3 }), good({ printError: "3" })])
    assert.equal(saysUnprinted(receipt, told), true);
  for (const told of [good(), good({ printError: 0 }), bad(9), bad(undefined)])
    assert.equal(saysUnprinted(receipt, told), false);
  for (const told of [bad(15), bad(undefined), good({ printError: 3 })]) assert.equal(saysUnprinted(sale, told), false);
});
