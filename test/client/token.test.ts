import assert from "node:assert/strict";
import { test } from "node:test";
import { contractOfToken, isTokenOld, keyFieldOf, newToken, readToken } from "../../src/client/token.ts";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { kept, knownBy } from "./scripted.ts";

const { bank, fiscal, qr } = contracts;

test("newToken() begins with nothing known, and with what is there under the key to be asked where it may be another's", () => {
  const nextOf = (...given: Parameters<typeof newToken>) => knownBy(newToken(...given)).next;
  assert.equal(nextOf(bank, "/sale", { pay_id: "P-1" }), "start");
  assert.equal(nextOf(bank, "/cancel", { pay_id: "P-1" }), "ask");
  assert.equal(nextOf(fiscal, "/refund", { documentExtID: "D-1" }), "ask");
  // A key that was just made is nobody else's.
  assert.equal(nextOf(bank, "/cancel", { amount: 1 }), "start");
});

test("newToken() makes a key where none is given, and leaves a body that has one, or a refund by QR, as it is", () => {
  const bodyOf = (...given: Parameters<typeof newToken>) => JSON.parse(newToken(...given).body) as object;
  assert.match(newToken(bank, "/sale", { amount: 1 }).body, /^\{"amount":1,"pay_id":"[0-9A-Z]{26}"\}$/);
  assert.match(newToken(bank, "/sale", { pay_id: "" }).body, /^\{"pay_id":"[0-9A-Z]{26}"\}$/);
  assert.deepEqual(bodyOf(bank, "/sale", { pay_id: 7 }), { pay_id: 7 });
  assert.deepEqual(bodyOf(qr, "/refund", { amount: 1 }), { amount: 1 });
});

test("newToken() takes the key as the body writes it, so that the same order is the same operation when it is settled again", () => {
  const objectId = { toJSON: () => "66F0C0FFEE" };
  class Order {
    readonly id = "A-1";
    toJSON() {
      return { pay_id: this.id, amount: 1 };
    }
  }
  assert.equal(newToken(bank, "/sale", { pay_id: objectId, amount: 1 }).body, '{"pay_id":"66F0C0FFEE","amount":1}');
  assert.equal(newToken(bank, "/sale", new Order()).body, '{"pay_id":"A-1","amount":1}');
  assert.equal(knownBy(newToken(bank, "/refund", new Order())).next, "ask", "it may be another's key");
  const token = newToken(qr, "/showqrcode", { pay_id: objectId, trans: objectId });
  assert.deepEqual([token.body, knownBy(token).name], ['{"pay_id":"66F0C0FFEE","trans":"66F0C0FFEE"}', "66F0C0FFEE"]);
});

test("newToken() refuses a key that is given and can't name an operation, and what is no JSON object", () => {
  class Order {
    readonly amount = 1;
    get pay_id() {
      return "A-1";
    }
  }
  const message = "Cannot settle /sale: its pay_id is not text: pass it as a field of the body's own, as a string";
  for (const given of [{ pay_id: {} }, { pay_id: true }, { pay_id: ["A-1"] }, { pay_id: () => "A-1" }, new Order()])
    assert.throws(() => newToken(bank, "/sale", given), { name: "TypeError", message });
  for (const given of [undefined, null, [], "A-1", 7, new Date()])
    assert.throws(() => newToken(bank, "/xreport", given as object), {
      name: "TypeError",
      message: "Cannot write the body: it must be a JSON object",
    });
});

test("newToken() asks about a payment by its trans, else by its key", () => {
  const nameOf = (...given: Parameters<typeof newToken>) => knownBy(newToken(...given)).name;
  assert.equal(nameOf(qr, "/showqrcode", { pay_id: "P-1", trans: "T-1" }), "T-1");
  assert.equal(nameOf(qr, "/showqrcode", { pay_id: "P-1" }), "P-1");
  const made = newToken(qr, "/showqrcode", {});
  assert.ok(made.body.includes(knownBy(made).name ?? "no name"));
  assert.equal(nameOf(qr, "/refund", { pay_id: "P-1", trans: "T-1" }), undefined);
});

test("newToken() refuses what can't be followed, and names it", () => {
  for (const path of ["/terminals", "/nowhere"])
    assert.throws(() => newToken(bank, path, {}), {
      name: "TypeError",
      message: `Cannot settle ${path}: bank has no operation of this name that can be followed`,
    });
});

test("newToken() of a service of another name says its contract, and of the contract's own doesn't", () => {
  const named = newToken(bank, "/sale", { pay_id: "P-1" }, "till-2");
  assert.deepEqual([named.service, named.contract, contractOfToken(named)], ["till-2", "bank", "bank"]);
  assert.deepEqual(readToken(kept(named)).token, named);
  const own = newToken(bank, "/sale", { pay_id: "P-1" });
  assert.deepEqual([own.service, "contract" in own, contractOfToken(own)], ["bank", false, "bank"]);
  assert.deepEqual(readToken(kept(own)).token, own);
  assert.equal(contractOfToken({ ...own, service: "till-2" }), undefined);
});

test("newToken() makes a key where the body has none, whatever other numbers it has, and keyFieldOf() wants a route that has one", () => {
  for (const body of [{}, { documentID: 12 }, { documentExtID: "" }, { documentExtID: null }]) {
    const { body: text, facts } = newToken(fiscal, "/sale", body);
    assert.match(String(JSON.parse(text).documentExtID), /^[0-9A-Z]{26}$/);
    assertMapped(facts, ["new"], ({ is }) => is);
  }
  assert.equal(JSON.parse(newToken(fiscal, "/sale", { documentExtID: "A", documentID: 12 }).body).documentExtID, "A");
  const terminals = routeOf(bank, "/terminals");
  assert.ok(terminals !== undefined);
  assert.throws(() => keyFieldOf(terminals), { name: "TypeError", message: /Cannot settle \/terminals: it has no key/ });
});

test("readToken() brings back its facts, and the name that they prove", () => {
  const facts = [
    { is: "sent", atMs: 1 },
    { is: "answered", atMs: 2, said: { says: "going", name: "T-1" } },
  ] as const;
  const token = { v: 2, service: "qr", route: "/showqrcode", body: '{"pay_id":"P-1"}', madeMs: 1, trans: "T-1", facts };
  const read = readToken(token);
  assert.deepEqual(read.token, token);
  assert.deepEqual([read.body, read.route.path, read.rules.route], [{ pay_id: "P-1" }, "/showqrcode", "/showqrcode"]);
  assert.equal("trans" in readToken({ ...token, facts: facts.slice(0, 1) }).token, false, "what is known decides");
});

const good = { ...newToken(bank, "/sale", { pay_id: "P-1" }) };

for (const [name, value, said] of [
  ["text", "{}", /is not an object: pass the token itself, parsed if it was kept as text/],
  ["another version", { ...good, v: 1 }, /its v is 1, and this client reads v 2/],
  ["an unknown service", { ...good, service: "cash" }, /there is no service cash/],
  ["a service that is no name", { ...good, service: 7, contract: "bank" }, /there is no service 7/],
  ["an unknown contract", { ...good, contract: "cash" }, /there is no service bank/],
  ["a route that is no text", { ...good, route: 7 }, /bank has no operation 7 to be followed/],
  ["a route that isn't followed", { ...good, route: "/check" }, /bank has no operation \/check to be followed/],
  ["a body that is no text", { ...good, body: {} }, /its body is not the text of a JSON object/],
  ["a body that is broken", { ...good, body: "{" }, /its body is not the text of a JSON object/],
  ["nothing", undefined, /is not an object/],
  ["a body that is no object", { ...good, body: "[]" }, /its body is not the text of a JSON object/],
  ["no time", { ...good, madeMs: undefined }, /its madeMs is not a number/],
  ["no facts", { ...good, facts: null }, /its facts are not those that a client writes/],
  ["a fact that is none", { ...good, facts: [{ is: "sold", atMs: 1 }] }, /its facts are not/],
] as const) {
  test(`readToken() refuses ${name}, and says what is wrong with it`, () => {
    assert.throws(
      () => readToken(value),
      (thrown) =>
        thrown instanceof TypeError &&
        thrown.message.startsWith("Cannot resume: this is not a token of a settled operation: ") &&
        said.test(thrown.message),
    );
  });
}

test("isTokenOld() of a token after a day, or where the clock was set back by more than an hour since", () => {
  const token = newToken(bank, "/sale", { pay_id: "P-1" });
  const day = 86_400_000;
  const at = (ms: number) => isTokenOld(token, token.madeMs + ms);
  assert.deepEqual([at(0), at(day - 1), at(day), at(-3_599_999), at(-3_600_000)], [false, false, true, false, true]);
  const { token: read } = readToken({ ...token, byBridge: true });
  assert.deepEqual([read.madeMs, read.byBridge], [token.madeMs, true]);
});
