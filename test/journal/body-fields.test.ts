import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { contracts } from "../../src/contract/contracts.ts";
import { amountIn, bodyFields } from "../../src/journal/body-fields.ts";
import { routeTo } from "./records.ts";

test("amountIn() gives the digits as they were written, of the object itself alone", () => {
  assert.equal(amountIn('{"pay_id":"1","amount":9007199254740993}'), "9007199254740993");
  assert.equal(amountIn('{ "amount" : "0100" , "x":1}'), "0100");
  assert.equal(amountIn('{"amount":-1.50}'), "-1.50");
  assert.equal(amountIn('{"data":{"amount":5},"list":[{"amount":6}]}'), undefined);
  assert.equal(amountIn('{"type":"amount","note":"\\"amount\\":7"}'), undefined);
  assert.equal(amountIn('{"amount":1,"amount":2}'), "2");
  assert.equal(amountIn('{"amount":null}'), undefined);
  assert.equal(amountIn('{"amount":[1]}'), undefined);
  for (const odd of ["", "{", '{"amount"', '{"amount":', '"amount":1}', '{"a\\', "]]]}"])
    assert.equal(amountIn(odd), undefined);
});

test("amountIn() finds in any JSON object what JSON.parse finds", () => {
  const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.maxSafeInteger());
  fc.assert(
    fc.property(fc.dictionary(fc.oneof(fc.string(), fc.constant("amount")), value), fc.nat({ max: 3 }), (object, space) => {
      const { amount } = object;
      const expected = typeof amount === "number" && Number.isSafeInteger(amount) ? amount : undefined;
      const found = amountIn(JSON.stringify(object, undefined, space));
      // JSON has no -0
      if (expected !== undefined) assert.equal(Number(found), expected + 0);
      else if (typeof amount !== "number" && typeof amount !== "string") assert.equal(found, undefined);
    }),
  );
});

test("bodyFields() of a key that isn't UTF-8 has nothing that it could be asked by", () => {
  const body = Buffer.from('{"pay_id":"P-\xe9","amount":1}', "latin1");
  const { ask } = bodyFields(contracts.bank, "pay_id", [body], routeTo("/sale"));
  assert.equal(ask, undefined);
  assert.deepEqual(bodyFields(contracts.bank, "pay_id", [Buffer.from('{"pay_id":"P-é"}')], routeTo("/sale")).ask, {});
});

test("bodyFields() reads bank and qr bodies in pieces, and the data of a fiscal form", () => {
  const text = '{"amount":12345,"pay_id":"P-1","documentExtID":"D-1"}';
  const read = bodyFields(contracts.bank, "pay_id", [Buffer.from(text.slice(0, 9)), Buffer.from(text.slice(9))]);
  assert.deepEqual(read, { amount: "12345", key: "P-1" });
  assert.equal(bodyFields(contracts.bank, undefined, [Buffer.from(text)]).key, undefined, "it is known already");
  const data = encodeURIComponent(Buffer.from(text).toString("base64"));
  const form = [Buffer.from("data="), Buffer.from(data), Buffer.from("&sign=abc")];
  assert.deepEqual(bodyFields(contracts.fiscal, "documentExtID", form), { amount: "12345", key: "D-1" });
});

test("bodyFields() adds up a receipt to the digit, and keeps none of what it isn't sure of", () => {
  const of = (json: object) => {
    const data = encodeURIComponent(Buffer.from(JSON.stringify({ documentExtID: "D", ...json })).toString("base64"));
    return bodyFields(contracts.fiscal, undefined, [Buffer.from(`data=${data}&sign=x`)], routeTo("/sale", "fiscal")).receipt;
  };
  const items = [{ itemAmount: "9007199254740993" }, { itemAmount: 7 }];
  const extraPayments = [{ amount: 30 }, { amount: 5, trxParams: { rrn: 12 } }];
  const whole = { amount: "9007199254741000", cashless: "135", rrn: "12" };
  assert.deepEqual(of({ items, payments: { cashAmount: 9, cashlessAmount: 100 }, extraPayments }), whole);
  for (const itemAmount of [1.5, 2 ** 60, "1e9", "1".repeat(20), [1], undefined])
    assert.deepEqual(of({ items: [{ itemAmount }] }), { amount: undefined, cashless: "0" });
  assert.equal(of({ items, payments: { cashlessAmount: "x" } })?.cashless, undefined);
});

test("bodyFields() keeps for a question a key that is a number, and none that is a string: the record has it already", () => {
  const askOf = (text: string) => bodyFields(contracts.bank, undefined, [Buffer.from(text)], routeTo()).ask;
  assert.deepEqual(askOf('{"pay_id":"7"}'), {});
  assert.deepEqual(askOf('{"pay_id":7}'), { pay_id: 7 });
});

test("bodyFields() keeps for a question each of its fields that is there, and nothing where one can't be kept or the key is missing", () => {
  const askOf = (text: string) => bodyFields(contracts.qr, undefined, [Buffer.from(text)], routeTo("/showqrcode", "qr")).ask;
  assert.deepEqual(askOf('{"pay_id":"P","trans":"T","pay_system":3,"amount":1}'), { trans: "T", pay_system: 3 });
  for (const none of ["null", '""']) {
    assert.deepEqual(askOf(`{"pay_id":"P","trans":${none}}`), {});
    assert.equal(askOf(`{"pay_id":${none},"trans":"T"}`), undefined);
  }
  assert.equal(askOf('{"trans":"T"}'), undefined);
  for (const odd of [
    ...["true", "[]", "{}", "1.5", "9007199254740993", '"4111111111111111"', `"${"x".repeat(65)}"`, '"a\uFFFDb"'],
  ]) {
    assert.equal(askOf(`{"pay_id":"P","trans":${odd}}`), undefined, odd);
    assert.equal(askOf(`{"pay_id":${odd}}`), undefined, odd);
  }
  assert.equal(askOf('"P"'), undefined);
  const unasked = bodyFields(contracts.qr, "pay_id", [Buffer.from('{"pay_id":"P"}')], routeTo("/refund", "qr"));
  assert.deepEqual(unasked, { amount: undefined, key: "P" });
});

test("amountIn() looks no further than 128 characters behind the name, and 31 into the number", () => {
  const spaced = (count: number) => `{"amount"${" ".repeat(count)}:1}`;
  assert.deepEqual([amountIn(spaced(125)), amountIn(spaced(126))], ["1", undefined]);
  const long = (count: number) => `{"amount":${"1".repeat(count)}}`;
  assert.deepEqual([amountIn(long(31)), amountIn(long(32))], ["1".repeat(31), undefined]);
});

test("bodyFields() takes whatever a body is where nothing is checked", () => {
  const none = { amount: undefined, key: undefined };
  for (const body of ["sign=abc", "data=%ZZ%&sign=x", "data=%E0%A4%A&sign=x", "data=&sign=x", ""]) {
    assert.deepEqual(bodyFields(contracts.fiscal, "documentExtID", [Buffer.from(body)]), none);
  }
  for (const body of ["", "[]", "null", "{", '{"pay_id":{}}', '"pay_id"']) {
    assert.deepEqual(bodyFields(contracts.qr, "pay_id", [Buffer.from(body)]), none);
  }
});
