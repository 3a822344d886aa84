import assert from "node:assert/strict";
import { test } from "node:test";
import { settlingRules } from "../../src/contract/settling.ts";
import { contractNames } from "../../src/core/call.ts";
import type { SentRecord } from "../../src/journal/record.ts";
import { chosenBy, endBy, readOperatorSettle } from "../../src/operations/operator-settle.ts";

const operation = (service: string, route: string, key: string | undefined, requestId = "r-1") => {
  const sent: SentRecord = { kind: "sent", timeMs: 0, requestId, service, route, key, digest: "d" };
  return { sent };
};

test("chosenBy() finds the operation of a key, refuses to choose among several, and takes --service and --route", () => {
  const open = [
    operation("bank", "/sale", "A"),
    operation("bank", "/sale", "A"),
    operation("bank", "/refund", "B"),
    operation("fiscal", "/refund", "B"),
    operation("fiscal", "/open_shift", undefined, "6fcc1715-4"),
    operation("bank", "/sale", "411111******1111"),
  ];
  const wanted = (key: string, more: object = {}) => chosenBy(open, { key, as: "done", note: "x", ...more });
  assert.deepEqual(wanted("A"), open.slice(0, 2));
  assert.throws(
    () => wanted("B"),
    /"B": it names several operations \(bank \/refund, fiscal \/refund\): choose with --service/,
  );
  assert.deepEqual(wanted("B", { service: "fiscal" }), [open[3]]);
  const slip = (key: string) => chosenBy(open.slice(2), { key, as: "not-done", note: "x" }, open.slice(0, 2));
  assert.deepEqual(slip("A"), open.slice(0, 2), "a person's own word is corrected");
  assert.deepEqual(slip("6fcc1715-4"), [open[4]]);
  assert.deepEqual(wanted("6fcc1715-4"), [open[4]], "one without a key is named by its request");
  assert.deepEqual(wanted("4111111111111111"), [open[5]]);
  assert.throws(() => wanted("C"), /"C": no operation of this key is unknown: see posline journal --unknown/);
  assert.throws(
    () => wanted("B", { route: "/sale" }),
    /is another one \(bank \/refund, fiscal \/refund\): check --service and/,
  );
  assert.throws(() => wanted("A", { route: "/refund" }), /its unknown operation is another one \(bank \/sale\)/);
});

test("chosenBy() refuses to choose among several bodies under one key, and takes one's request in place of the key", () => {
  const refund = (amount: string, digest: string, requestId: string) => {
    const { sent } = operation("qr", "/refund", "P", requestId);
    return { sent: { ...sent, amount, digest } };
  };
  const [five, three, again] = [refund("500", "a", "r-1"), refund("300", "b", "r-2"), refund("500", "a", "r-3")];
  const open = [five, three, again, operation("fiscal", "/open_shift", undefined, "r-4")];
  const wanted = (key: string) => chosenBy(open, { key, as: "done", note: "x" });
  assert.throws(
    () => wanted("P"),
    /"P": it names several operations \(requests r-1 of 500, r-2 of 300, r-3 of 500\): name one by that, in place of the key$/,
  );
  assert.deepEqual(wanted("r-2"), [three]);
  assert.deepEqual(wanted("r-3"), [five, again], "the same was sent twice");
  assert.throws(() => wanted("r-9"), /no operation of this key is unknown/);
  // A till may give all its requests one id.
  const alike = [refund("500", "a", "r-1"), refund("300", "b", "r-1")];
  const among = (key: string) => chosenBy(alike, { key, as: "done", note: "x" });
  for (const key of ["P", "r-1"]) assert.throws(() => among(key), /\(digests a of 500, b of 300\): name one by that/);
  assert.deepEqual(among("b"), [alike[1]]);
  // Or the key of another operation, which would be settled in place of the one that is meant.
  const beside = [refund("500", "a", "r-1"), refund("300", "b", "A-2"), operation("bank", "/sale", "A-2")];
  const which = () => chosenBy(beside, { key: "P", as: "done", note: "x" });
  assert.throws(which, /\(digests a of 500, b of 300\): name one by that/);
  const keyless = [operation("fiscal", "/open_shift", undefined), operation("fiscal", "/open_shift", undefined)];
  assert.deepEqual(chosenBy(keyless, { key: "r-1", as: "done", note: "x" }), keyless);
});

test("endBy() records the contract's good end for what was done, and failed for what was not", () => {
  assert.deepEqual(
    (["bank", "qr", "fiscal", undefined] as const).map((contract) => endBy("done", contract)),
    ["approved", "approved", "closed", "approved"],
  );
  for (const contract of contractNames) {
    for (const { route, ends } of settlingRules[contract]) {
      const end = endBy("done", contract);
      assert.ok(Object.values<string>(ends).includes(end), `${contract} ${route} ends as ${end}`);
    }
    assert.equal(endBy("not-done", contract), "failed");
  }
});

test("readOperatorSettle() names what is wrong with a request", () => {
  for (const [text, said] of [
    ["", /the body must be a JSON object/],
    ["[]", /the body must be a JSON object/],
    ['{"key":"A","key":"B","as":"done","note":"n"}', /key: set twice/],
    ["{}", /key is missing/],
    ['{"key":"A"}', /as must be "done" or "not-done"/],
    ['{"key":"A","as":"maybe"}', /as must be "done" or "not-done"/],
    ['{"key":"A","as":"done"}', /note is missing: say how you know/],
  ] as const) {
    assert.throws(() => readOperatorSettle(text), said);
  }
  const read = readOperatorSettle('{"key":"A","as":"not-done","note":"n","route":"/sale"}');
  assert.deepEqual({ ...read }, { key: "A", as: "not-done", note: "n", service: undefined, route: "/sale", folder: undefined });
});
