import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Problem, schemas, schemasOf, validateReply, validateRequest } from "../../src/contract/schema.ts";
import type { ContractName } from "../../src/core/call.ts";

const bankSale = { pay_id: "P-1", amount: 1000, currency_name: "AZN" };
const sale = { documentExtID: "ORDER-1", items: [{ itemName: "Bread", itemQty: 1000, itemAmount: 150 }] };

/** Bodies as the contracts document them. */
const accepted: readonly (readonly [ContractName, string, unknown])[] = [
  ["fiscal", "/sale", sale],
  ["fiscal", "/sale", { ...sale, docTime: "2024-05-06 07:08:09", anUnknownField: { a: [1] } }],
  ["fiscal", "/sale", { items: [{}] }],
  ["fiscal", "/check_status", { documentID: 1 }],
  ["fiscal", "/check_status", { documentExtID: "ORDER-1" }],
  ["fiscal", "/check_status", { documentID: Number("9223372036854775807") }],
  ["fiscal", "/deposit", { amount: 1 }],
  ["fiscal", "/close_shift", { openOrdersOperation: "anything behaves as check" }],
  ["fiscal", "/dates_report", { dateFrom: "2026-11-20", dateFor: null }],
  ["fiscal", "/sale", { ...sale, documentID: "", payments: null, extraPayments: [{ amount: 5 }], docTime: "" }],
  ["fiscal", "/supported_operations", undefined],
  ["bank", "/sale", bankSale],
  ["bank", "/sale", { ...bankSale, tips: 5, cashback: 0 }],
  ["bank", "/sale", { ...bankSale, tips: 0, cashback: 5 }],
  ["bank", "/sale", { amount: 1000, currency_name: "AZN", txn_config: { any: "thing" } }],
  ["bank", "/xreport", {}],
  ["bank", "/terminate", { anything: 1 }],
  ["qr", "/final_confirm", { pay_system: "A" }],
  ["qr", "/unknown", 1],
];

test("validateRequest() accepts what the contracts document", () => {
  for (const [service, route, value] of accepted) {
    assert.equal(validateRequest(service, route, value), undefined, `${service} ${route}`);
  }
});

/** Bodies with one thing wrong, and what is said of it. */
const refused: readonly (readonly [ContractName, string, unknown, Problem["kind"], string])[] = [
  ["fiscal", "/sale", {}, "missing", "Cannot accept /sale: items is missing"],
  ["fiscal", "/sale", { items: [] }, "missing", "Cannot accept /sale: items must not be empty"],
  ["fiscal", "/sale", { items: {} }, "malformed", "Cannot accept /sale: items must be of type array"],
  ["fiscal", "/sale", [], "malformed", "Cannot accept /sale: the body must be of type object"],
  [
    "fiscal",
    "/sale",
    { items: [{}, { itemQty: 1.5 }] },
    "malformed",
    "Cannot accept /sale: items[1].itemQty must be of type integer",
  ],
  [
    "fiscal",
    "/sale",
    { items: [{ itemQty: 2 ** 31 }] },
    "malformed",
    "Cannot accept /sale: items[0].itemQty must be <= 2147483647",
  ],
  [
    "fiscal",
    "/sale",
    { ...sale, docTime: "06.05.2024" },
    "date",
    "Cannot accept /sale: docTime must be written as yyyy-MM-dd HH:mm:ss",
  ],
  ["fiscal", "/dates_report", { dateFor: 5 }, "date", "Cannot accept /dates_report: dateFor must be written as yyyy-MM-dd"],
  ["fiscal", "/sale", { items: null }, "missing", "Cannot accept /sale: items is missing"],
  ["fiscal", "/abort", { documentExtID: "" }, "missing", "Cannot accept /abort: documentExtID is missing"],
  ["fiscal", "/sale", { items: [null] }, "malformed", "Cannot accept /sale: items[0] must be of type object"],
  ["fiscal", "/check_status", {}, "missing", "Cannot accept /check_status: documentID or documentExtID is missing"],
  ["fiscal", "/check_copy", { documentExtID: "A" }, "missing", "Cannot accept /check_copy: documentID is missing"],
  ["fiscal", "/deposit", {}, "missing", "Cannot accept /deposit: amount is missing"],
  ["fiscal", "/deposit", { amount: 0 }, "amount", "Cannot accept /deposit: amount must be greater than 0"],
  ["fiscal", "/deposit", { amount: "10" }, "malformed", "Cannot accept /deposit: amount must be of type integer"],
  ["bank", "/sale", { amount: 1 }, "missing", "Cannot accept /sale: currency_name is missing"],
  ["bank", "/sale", { ...bankSale, amount: 9.5 }, "malformed", "Cannot accept /sale: amount must be of type integer"],
  [
    "bank",
    "/sale",
    { ...bankSale, tips: 1, cashback: 1 },
    "malformed",
    "Cannot accept /sale: tips and cashback must not both be greater than 0",
  ],
  ["bank", "/check", {}, "missing", "Cannot accept /check: pay_id is missing"],
  ["qr", "/check", { pay_id: "P", pay_system: "A" }, "missing", "Cannot accept /check: trans is missing"],
  ["qr", "/showqrcode", null, "malformed", "Cannot accept /showqrcode: the body must be of type object"],
];

test("validateRequest() names the first problem by kind, path and rule", () => {
  for (const [service, route, value, kind, message] of refused) {
    assert.deepEqual(validateRequest(service, route, value), { kind, message });
  }
});

test("validateRequest() never repeats a value or a field that the contract doesn't know", () => {
  const secret = "4111111111111111";
  const values = fc.oneof(
    fc.constant(secret),
    fc.constant(Number(secret) / 10),
    fc.constant([secret]),
    fc.constant({ [secret]: secret }),
  );
  const routes = Object.entries(schemas).flatMap(([service, byRoute]) =>
    Object.entries(byRoute).map(([route, { request }]) => ({
      // Object.entries forgets that the keys are service names
      service: service as ContractName,
      route,
      names: Object.keys(request !== undefined && "properties" in request ? (request.properties ?? {}) : {}),
    })),
  );
  let problems = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...routes),
      fc.array(values, { minLength: 1, maxLength: 4 }),
      ({ service, route, names }, filling) => {
        const body = Object.fromEntries([...names, secret].map((name, i) => [name, filling[i % filling.length]]));
        const problem = validateRequest(service, route, body);
        problems += problem === undefined ? 0 : 1;
        assert.ok(problem === undefined || !problem.message.includes("4111"), problem?.message);
      },
    ),
  );
  assert.ok(problems > 0);
});

test("schemasOf() knows no route of Object's own", () => {
  assert.equal(schemasOf("bank", "constructor"), undefined);
  assert.equal(schemasOf("bank", "__proto__"), undefined);
  assert.notEqual(schemasOf("bank", "/sale"), undefined);
});

/** Replies that real terminals send though no document says so. */
const heard: readonly (readonly [ContractName, string, unknown])[] = [
  ["fiscal", "/sale", { status: "success", documentID: "900719925474099312", documentExtID: 17, docStatus: -1, extra: {} }],
  ["fiscal", "/check_status", { status: "error", code: 44, message: null }],
  ["fiscal", "/check_shift", { status: "success", code: 0, isShiftOpen: true }],
  ["fiscal", "/check_copy", { status: "success", code: 0, items: [{ itemPrice: "150", taxName: "A" }], totalPayments: null }],
  ["fiscal", "/supported_operations", { status: "error", code: 5 }],
  ["bank", "/check", { status: "success", code: null, data: null, message: null }],
  ["bank", "/check", { status: "error", code: -20, data: { status: "ERROR", error: "declined" } }],
  ["bank", "/supported_operations", { status: "success", operations: ["sale"] }],
  ["bank", "/supported_operations", { status: "success", data: { operations: ["sale"] } }],
  ["qr", "/cancel", { status: "error", code: 1, data: null }],
];

test("validateReply() takes what real terminals send", () => {
  for (const [service, route, value] of heard) {
    assert.equal(validateReply(service, route, value), undefined, `${service} ${route}`);
  }
});

test("validateReply() refuses what can be no reply of the route", () => {
  const replies: readonly (readonly [ContractName, string, unknown, string])[] = [
    ["bank", "/sale", {}, "Cannot take the reply to /sale: status is missing"],
    ["bank", "/sale", { status: "ok" }, "Cannot take the reply to /sale: status must be one of success, error"],
    [
      "bank",
      "/terminals",
      { status: "success" },
      "Cannot take the reply to /terminals: what the route returns on success is missing",
    ],
    [
      "bank",
      "/check",
      { status: "success", data: [] },
      "Cannot take the reply to /check: data is not what the contract documents",
    ],
    [
      "bank",
      "/supported_operations",
      { status: "success" },
      "Cannot take the reply to /supported_operations: what the route returns on success is missing",
    ],
    [
      "fiscal",
      "/sale",
      { status: "success", documentID: "A" },
      "Cannot take the reply to /sale: documentID is not what the contract documents",
    ],
    [
      "qr",
      "/check_connection",
      { status: "success", data: {} },
      "Cannot take the reply to /check_connection: data is not what the contract documents",
    ],
  ];
  for (const [service, route, value, message] of replies) {
    assert.equal(validateReply(service, route, value)?.message, message);
  }
});
