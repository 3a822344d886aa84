import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../../src/core/json-object.ts";
import { emulatedBank } from "../../../../src/lab/emulator/bank/bank.ts";
import { builtInWorld } from "../../../../src/lab/emulator/world.ts";
import { dataOf, innerOf, ServiceUnderTest } from "../service-under-test.ts";
import { bank, finalOf, sale } from "./bank-till.ts";

test("/check answers success without data once, then APPROVED with a masked card, rrn, auth and print_data", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, tips: 5n });
  under.accepted("/check", { pay_id: "P-1" });
  const final = under.ask("/check", { pay_id: "P-1" });
  assert.equal(final.status, "success");
  const { print_data, ...data } = dataOf(final);
  assert.ok(print_data);
  assert.deepEqual(data, {
    txn_id: "EMU000000000001",
    card_num: "411111******1111",
    rrn: "000000000001",
    status: "APPROVED",
    auth: "000001",
    data: { operation: "sale", terminal: 1n, merchant: 1n, amount: 1000n, tips: 5n, cashback: 0n, currency_name: "AZN" },
  });
  assert.deepEqual(under.ask("/check", { pay_id: "P-1" }), final);
  assert.deepEqual(dataOf(under.ask("/check", { pay_id: "P-1", no_print_data: true })), data);
});

for (const [digits, status, code] of [
  [20n, "ERROR", -20],
  [21n, "ERROR", -21],
  [54n, "ERROR", -54],
  [30n, "REVERSED", -20],
] as const) {
  test(`/check answers ${status} ${code} with data and message for an amount that ends in ${digits}`, () => {
    const under = bank();
    under.accepted("/sale", { ...sale, amount: 1000n + digits });
    under.accepted("/check", { pay_id: "P-1" });
    const final = under.ask("/check", { pay_id: "P-1" });
    assert.deepEqual([final.status, final.code, dataOf(final)["status"]], ["error", code, status]);
    assert.equal(dataOf(final)["error"], final["message"]);
    assert.equal(dataOf(final)["auth"], undefined);
    assert.equal("card_num" in dataOf(final), digits === 20n || digits === 30n);
  });
}

test("/check words its message in the language that is asked for, in English by default", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, amount: 20n });
  finalOf(under, "P-1");
  const message = (language?: string) => under.ask("/check", { pay_id: "P-1", ...(language && { language }) })["message"];
  assert.match(String(message("ru")), /отклонена/);
  assert.equal(message("ru-RU"), message("ru"));
  assert.match(String(message()), /declined/);
  assert.equal(message("az"), message());
});

test("/check answers in progress as often as the amount asks for", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, amount: 44n });
  for (let asked = 0; asked < 3; asked += 1) under.accepted("/check", { pay_id: "P-1" });
  assert.equal(dataOf(under.ask("/check", { pay_id: "P-1" }))["status"], "APPROVED");
});

test("an operation that nobody asks about ends 2 s after its start for each question", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, amount: 62n });
  under.context.nowMs += 3999;
  under.accepted("/check", { pay_id: "P-1" });
  under.context.nowMs += 1;
  assert.equal(dataOf(under.ask("/check", { pay_id: "P-1" }))["status"], "APPROVED");
});

test("/sale of a known pay_id begins nothing, whatever its amount: /check has the first one's result, with its amount", () => {
  const under = bank();
  under.accepted("/sale", sale);
  const first = finalOf(under, "P-1");
  under.accepted("/sale", { ...sale, amount: 99_000n });
  const again = under.ask("/check", { pay_id: "P-1" });
  assert.deepEqual(again, first);
  assert.deepEqual([dataOf(again)["status"], innerOf(again)["amount"]], ["APPROVED", sale.amount]);
});

test("/check counts no question that it refuses", () => {
  const under = bank();
  under.accepted("/sale", sale);
  assert.equal(under.refused("/check", { pay_id: "P-1", language: {} }), -29);
  under.accepted("/check", { pay_id: "P-1" });
});

test("the same pay_id on the same route starts nothing new, running or ended", () => {
  const under = bank();
  under.accepted("/sale", sale);
  under.accepted("/sale", sale);
  const first = finalOf(under, "P-1");
  under.accepted("/sale", sale);
  assert.deepEqual(finalOf(under, "P-1"), first);
  assert.deepEqual(under.context.begun, ["/sale"]);
});

test("a pay_id may be an integer, which is the same as its digits", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, pay_id: 77n });
  under.accepted("/check", { pay_id: "77" });
  assert.equal(under.refused("/sale", { ...sale, pay_id: {} }), -29);
});

test("an operation without pay_id runs, and can't be asked about", () => {
  const under = bank();
  const { pay_id, ...unnamed } = sale;
  under.accepted("/sale", unnamed);
  under.accepted("/sale", unnamed);
  under.context.nowMs += 2000;
  under.accepted("/xreport", { pay_id: "X" });
  const { totals } = innerOf(finalOf(under, "X"));
  assert.deepEqual(totals, [{ kind: "sale", currency: "AZN", count: 2n, sum: 2000n }]);
});

for (const [why, field, code] of [
  ["without amount", { amount: undefined }, -29],
  ["with amount null", { amount: null }, -29],
  ["with amount 0", { amount: 0n }, -29],
  ["with a negative amount", { amount: -1n }, -29],
  ["with a fractional amount", { amount: 1.5 }, -29],
  ["with an amount in quotes", { amount: "1000" }, -29],
  ["with an amount beyond 64 bits", { amount: 2n ** 63n }, -29],
  ["without currency_name", { currency_name: undefined }, -29],
  ["with an unsupported currency", { currency_name: "CHF" }, -47],
  ["with a currency in lower case", { currency_name: "azn" }, -47],
  ["with negative tips", { tips: -1n }, -29],
  ["with tips and cashback", { tips: 1n, cashback: 1n }, -29],
  ["with an unknown terminal", { terminal: 9n }, -29],
  ["with a terminal in quotes", { terminal: "1" }, -29],
  ["with a merchant of another terminal", { terminal: 1n, merchant: 3n }, -29],
  ["with a flag in quotes", { headless: "true" }, -29],
  ["with a flag that is a number", { no_printing: 1n }, -29],
  ["with a txn_config that is a text", { txn_config: "{}" }, -29],
  ["with a txn_config that is a list", { txn_config: [] }, -29],
  ["with a package_name that is an object", { package_name: {} }, -29],
  ["with a doc_number that is a list", { doc_number: [] }, -29],
  ["with a language that is an object", { language: {} }, -29],
  ["with an rrn that is an object", { rrn: {} }, -29],
] as const) {
  test(`/sale refuses ${why} with ${code}, and begins nothing`, () => {
    const under = bank();
    const { [Object.keys(field)[0] ?? ""]: _, ...rest } = { ...sale } as JsonObject;
    const given = Object.values(field)[0] === undefined ? {} : field;
    assert.equal(under.refused("/sale", { ...rest, ...given }), code);
    assert.equal(under.refused("/check", { pay_id: "P-1" }), -15);
    assert.deepEqual(under.context.begun, []);
    assert.equal(under.context.changes, 0);
  });
}

test("/sale takes every optional field of the contract, and null for each", () => {
  const under = bank();
  const texts = { package_name: "p", doc_number: 7n, language: "ru", rrn: "000000000001" };
  under.accepted("/sale", { ...sale, ...texts, headless: true, no_printing: false, txn_config: { any: 1n } });
  const none = { package_name: null, doc_number: null, language: null, headless: null, no_printing: null, txn_config: null };
  under.accepted("/sale", { ...sale, ...none, pay_id: "P-2" });
});

test("/sale names every currency that it supports when it refuses one", () => {
  const { message } = bank().ask("/sale", { ...sale, currency_name: "eur" });
  assert.match(String(message), /: send one of EUR, USD, .*XTS, or its number$/);
});

test("/sale takes amounts up to the largest int64, and a currency by its number", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, amount: 2n ** 63n - 1n, currency_name: "860" });
  const { amount, currency_name } = innerOf(finalOf(under, "P-1"));
  assert.deepEqual([amount, currency_name], [2n ** 63n - 1n, "UZS"]);
});

test("the terminal is the request's, else the one last named, else the first; the merchant the terminal's default", () => {
  const under = bank();
  const placeOf = (payId: string, more: JsonObject) => {
    under.accepted("/sale", { ...sale, ...more, pay_id: payId });
    const { terminal, merchant } = innerOf(finalOf(under, payId));
    return [terminal, merchant];
  };
  assert.deepEqual(placeOf("A", {}), [1n, 1n]);
  assert.deepEqual(placeOf("B", { merchant: 2n }), [1n, 2n]);
  assert.deepEqual(placeOf("C", { terminal: 2n }), [2n, 3n]);
  assert.deepEqual(placeOf("D", {}), [2n, 3n]);
  assert.equal(under.refused("/sale", { ...sale, merchant: 1n }), -29);
  under.restart();
  assert.deepEqual(placeOf("E", {}), [2n, 3n]);
  assert.deepEqual(placeOf("F", { terminal: 1n }), [1n, 1n]);
});

test("/terminals lists the valid pairs with all their fields", () => {
  const { terminals } = dataOf(bank().ask("/terminals"));
  assert.ok(Array.isArray(terminals));
  assert.deepEqual(
    terminals.map(({ terminal, merchant }) => [terminal, merchant]),
    [
      [1, 1],
      [1, 2],
      [2, 3],
    ],
  );
  const fields = ["terminal", "terminalId", "name", "merchant", "merchantId", "merchantName", "mcc", "fiscalId"];
  for (const terminal of terminals) assert.deepEqual(Object.keys(terminal), fields);
});

test("/supported_operations lists what is enabled, and every other route answers -80", () => {
  const under = new ServiceUnderTest("bank", (context) =>
    emulatedBank(context, { ...builtInWorld.bank, operations: ["sale", "check"] }),
  );
  assert.deepEqual(dataOf(under.ask("/supported_operations")), { operations: ["sale", "check"] });
  under.accepted("/sale", sale);
  for (const route of ["/preauth", "/refund", "/terminals", "/abort", "/terminate"]) assert.equal(under.refused(route), -80);
  const { operations } = dataOf(bank().ask("/supported_operations"));
  assert.ok(Array.isArray(operations) && operations.length === 11 && operations.includes("close-shift"));
});
