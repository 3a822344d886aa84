import assert from "node:assert/strict";
import { test } from "node:test";
import { bank } from "../../src/contract/bank.ts";
import type { Contract } from "../../src/contract/contract.ts";
import { contracts, noSuchRoute, routeOf } from "../../src/contract/contracts.ts";
import { fiscal } from "../../src/contract/fiscal.ts";
import { qr } from "../../src/contract/qr.ts";
import { schemas, validateRequest } from "../../src/contract/schema.ts";
import { settlingRules } from "../../src/contract/settling.ts";
import { isObject } from "../../src/core/json-object.ts";
import { packagesLoadedBy } from "./imports.ts";
import { shapeOf, walk } from "./shape.ts";

const pathsWhere = (contract: Contract, has: (route: Contract["routes"][number]) => boolean) =>
  contract.routes.filter(has).map((route) => route.path);

test("noSuchRoute() names the path, masked, bounded and escaped, with the nearest route only where one is near", () => {
  for (const [path, words] of [
    ["/sael", '"/sael": did you mean /sale?'],
    ["/a\r\n\u009b2J\u202e", '"/a\\r\\n\\u009b2J\\u202e"'],
    ["/4111111111111111", '"/411111******1111"'],
    ["x".repeat(100_000), `"${"x".repeat(255)}…"`],
    ["/", '"/"'],
    ["", '""'],
  ] as const) {
    assert.equal(noSuchRoute(bank, path), `bank has no route ${words}`);
  }
  for (const { routes } of [fiscal, bank, qr])
    for (const { path } of routes) assert.match(noSuchRoute(bank, path), /^bank has/);
  assert.equal(noSuchRoute(fiscal, "/check-status"), 'fiscal has no route "/check-status": did you mean /check_status?');
});

test("routeOf() finds every route by its path and nothing else", () => {
  for (const contract of Object.values(contracts)) {
    for (const route of contract.routes) {
      assert.equal(routeOf(contract, route.path), route);
      assert.equal(routeOf(contract, route.path.slice(1)), undefined);
      assert.equal(routeOf(contract, `${route.path}/`), undefined);
    }
    for (const path of ["", "/", "/__proto__", "__proto__", "constructor", "/SALE"]) {
      assert.equal(routeOf(contract, path), undefined, path);
    }
  }
});

test("each route's amounts are the fields of its request that the contract has in minor units", () => {
  for (const { service, routes } of Object.values(contracts)) {
    for (const { path, amounts } of routes) {
      const fields = [...walk(shapeOf(schemas[service][path]?.request ?? {}))];
      const inMinorUnits = fields.filter(([, { description = "" }]) => description.includes("minor units"));
      const stated = inMinorUnits.map(([field]) => field.slice(1).replaceAll("[]", ""));
      assert.deepEqual([...amounts].sort(), stated.sort(), `${service} ${path}`);
    }
  }
});

// Written out, so that no edit makes a route resendable by accident: these and no others may ever be sent twice
test("effect none is given to what is surely read-only and to nothing else", () => {
  const none = (contract: Contract) => pathsWhere(contract, (route) => route.effect === "none");
  assert.deepEqual(none(fiscal), ["/supported_operations", "/check_status", "/check_shift", "/get_info"]);
  assert.deepEqual(none(bank), ["/supported_operations", "/terminals", "/check"]);
  assert.deepEqual(none(qr), ["/check_connection", "/check"]);
});

test("effect money is given to what moves or registers money", () => {
  const money = (contract: Contract) => pathsWhere(contract, (route) => route.effect === "money");
  assert.deepEqual(money(fiscal), ["/sale", "/refund", "/deposit", "/withdraw"]);
  assert.deepEqual(money(bank), ["/sale", "/preauth", "/confirm", "/cancel", "/refund"]);
  assert.deepEqual(money(qr), ["/showqrcode", "/cancel", "/refund"]);
});

function fieldsOf(schema: object | undefined): string[] {
  const properties: unknown = schema !== undefined && "properties" in schema ? schema.properties : {};
  return isObject(properties) ? Object.keys(properties) : [];
}

test("decisive fields are those that the contract's requests have, with every key and whatever a polling goes by among them", () => {
  for (const contract of Object.values(contracts)) {
    const { service, routes, decisive } = contract;
    const named = routes.flatMap(({ key, polling }) => [...(key === undefined ? [] : [key]), ...(polling?.keys ?? [])]);
    for (const name of named) assert.ok(decisive.includes(name), `${service} ${name}`);
    const fields = new Set(Object.values(schemas[service]).flatMap(({ request }) => fieldsOf(request)));
    for (const name of decisive) assert.ok(fields.has(name), `${service} has no field ${name}`);
    assert.equal(new Set(decisive).size, decisive.length);
  }
});

test("polling and probes lead to read-only routes of the same contract", () => {
  for (const contract of Object.values(contracts)) {
    const asked = [contract.probe.route, ...contract.routes.flatMap((route) => route.polling?.route ?? [])];
    for (const path of asked) {
      assert.equal(routeOf(contract, path)?.effect, "none", `${contract.service} ${path}`);
    }
    assert.equal(routeOf(contract, contract.probe.route)?.body, "none");
    assert.equal(routeOf(contract, contract.secondProbe.route)?.effect, "none");
    for (const path of contract.secondProbe.alikeRoutes) assert.ok(routeOf(contract, path), path);
  }
});

test("secondProbe.isAnswer() knows the answer of its own service, and no receipt's that also tells the shift", () => {
  const shift = { status: "success", code: 0, isShiftOpen: "true" };
  const terminals = { status: "success", data: { terminals: [] } };
  assert.ok(fiscal.secondProbe.isAnswer(shift));
  assert.ok(bank.secondProbe.isAnswer(terminals));
  for (const reply of [
    { ...shift, documentID: 7 },
    { ...shift, status: "error" },
    { status: "success", code: 0 },
    terminals,
    fiscalAnswer,
  ]) {
    assert.ok(!fiscal.secondProbe.isAnswer(reply), JSON.stringify(reply));
  }
  for (const reply of [
    { ...terminals, status: "error" },
    { status: "success", terminals: [] },
    { status: "success", data: { terminals: {} } },
    { status: "success", data: null },
    shift,
    bankAnswer,
  ]) {
    assert.ok(!bank.secondProbe.isAnswer(reply), JSON.stringify(reply));
  }
});

test("qr.secondProbe asks for a payment that nobody made, whose answer is known by not being the probe's", () => {
  const { body, isAnswer } = qr.secondProbe;
  assert.ok(body !== undefined);
  assert.equal(validateRequest("qr", qr.secondProbe.route, JSON.parse(body)), undefined);
  for (const reply of [{ status: "error", code: 1 }, qrAnswer]) assert.ok(!isAnswer(reply));
  assert.ok(!qr.probe.isAnswer({ status: "error", code: 1 }));
});

test("settlingRules believe no bank operation to be absent before the reply time-out of its start is over", () => {
  for (const { route, absentsAfterMs } of settlingRules.bank) {
    assert.equal(absentsAfterMs, routeOf(bank, route)?.replyTimeoutMs, route);
  }
});

test("keys name the operation wherever the contract has a field for it", () => {
  const keyed = (contract: Contract) => pathsWhere(contract, (route) => route.key !== undefined);
  assert.deepEqual(keyed(fiscal), ["/sale", "/refund", "/check_status", "/abort", "/deposit", "/withdraw"]);
  assert.ok(fiscal.routes.every((route) => route.key === undefined || route.key === "documentExtID"));
  assert.deepEqual(
    pathsWhere(bank, (route) => route.key !== "pay_id"),
    ["/supported_operations", "/terminals", "/terminate"],
  );
  assert.deepEqual(
    pathsWhere(qr, (route) => route.key !== "pay_id"),
    ["/check_connection"],
  );
});

const fiscalAnswer = { status: "success", code: 0, operations: ["sale"] };
const bankAnswer = { status: "success", data: { operations: ["sale"] } };
const qrAnswer = { status: "success", data: { systems: [{ name: "A", operations: ["check"] }] } };

test("probe.isAnswer() knows the answer of its own service, also an empty list and one without code", () => {
  assert.ok(fiscal.probe.isAnswer(fiscalAnswer));
  assert.ok(fiscal.probe.isAnswer({ status: "success", operations: [] }));
  assert.ok(bank.probe.isAnswer(bankAnswer));
  assert.ok(bank.probe.isAnswer(fiscalAnswer), "operations at the top level");
  assert.ok(bank.probe.isAnswer({ status: "success", data: null, operations: ["sale"] }));
  assert.ok(qr.probe.isAnswer(qrAnswer));
});

test("probe.isAnswer() takes no other service's answer on a line with the same framing", () => {
  assert.ok(!bank.probe.isAnswer(qrAnswer));
  assert.ok(!qr.probe.isAnswer(bankAnswer));
  assert.ok(!fiscal.probe.isAnswer(bankAnswer));
});

test("probe.isAnswer() takes no late result, no refusal and no broken list", () => {
  const others: Readonly<Record<string, unknown>>[] = [
    {},
    { status: "success" },
    { status: "success", data: null },
    { status: "success", code: 0 },
    { status: "success", data: { status: "APPROVED", rrn: "1", data: { operations: ["sale"] } } },
    { status: "success", data: { rrn: "1" } },
    { status: "success", data: { trans: "1" } },
    { status: "error", code: -80, message: "operation not supported" },
    { status: "error", operations: ["sale"], data: { operations: ["sale"], systems: [] } },
    { status: "success", operations: "sale", data: { operations: "sale", systems: "A" } },
    { status: "success", operations: [1], data: { operations: [1], systems: {} } },
    { operations: ["sale"], data: { operations: ["sale"], systems: [] } },
  ];
  for (const reply of others) {
    for (const contract of Object.values(contracts)) {
      assert.ok(!contract.probe.isAnswer(reply), `${contract.service}: ${JSON.stringify(reply)}`);
    }
  }
});

test("faultCodes and faultsInOk follow the design: content faults alone travel in 200, and never for qr", () => {
  const { fiscal: f, bank: b, qr: q } = contracts;
  assert.deepEqual([f.faultCodes.sign, f.faultCodes.malformed, f.faultCodes.missing, f.faultCodes.size], [1, 2, 3, 2]);
  assert.deepEqual([f.faultCodes.date, f.faultCodes.amount, b.faultCodes.date, b.faultCodes.amount], [14, 4, -29, -29]);
  assert.deepEqual([f.faultCodes.unavailable, f.faultCodes.timeout, f.faultCodes.broken, f.faultCodes.route], [5, 5, 5, 5]);
  assert.deepEqual([b.faultCodes.malformed, b.faultCodes.missing, b.faultCodes.route, b.faultCodes.key], [-29, -29, -80, -29]);
  assert.deepEqual([b.faultCodes.unavailable, b.faultCodes.timeout, b.faultCodes.broken], [-3, -3, -3]);
  assert.deepEqual(new Set(Object.values(q.faultCodes)), new Set([1]));
  assert.deepEqual(
    [f.faultsInOk, b.faultsInOk, q.faultsInOk],
    [["sign", "malformed", "missing", "date", "amount"], ["sign", "malformed", "missing", "date", "amount"], []],
  );
});

test("contracts.ts loads no package at all, so that a bridge that only relays pays for no schema library", () => {
  const source = (name: string) => new URL(`../../src/contract/${name}`, import.meta.url);
  assert.deepEqual([...packagesLoadedBy(source("contracts.ts"))], []);
  // The same search finds what schema.ts loads, so it would find it here
  assert.ok(packagesLoadedBy(source("schema.ts")).has("typebox"));
});

test("noSuchRoute() names each service that has the route", () => {
  assert.equal(noSuchRoute(contracts.qr, "/sale"), 'qr has no route "/sale": fiscal and bank have it, on other ports');
  assert.equal(noSuchRoute(contracts.qr, "/x_report"), 'qr has no route "/x_report": fiscal has it, on another port');
});
