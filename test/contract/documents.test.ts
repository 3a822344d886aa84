import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bank } from "../../src/contract/bank.ts";
import type { Contract } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { fiscal } from "../../src/contract/fiscal.ts";
import { qr } from "../../src/contract/qr.ts";
import { schemas } from "../../src/contract/schema.ts";
import { contractNames } from "../../src/core/call.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { after, section, table } from "./markdown.ts";

/**
 * Tests src/contract/bank.ts, src/contract/fiscal.ts, src/contract/qr.ts.
 *
 * The tables of the contracts against the documents they come from. The fields of bodies have files of their own.
 */

const documents = Object.fromEntries(
  contractNames.map((name) => [name, readFileSync(new URL(`../vectors/contracts/${name}.md`, import.meta.url), "utf8")]),
);
const text = (contract: Contract) => documents[contract.service] ?? "";
const endpoints = (contract: Contract) => table(section(text(contract), "Endpoints"));

function columns(contract: Contract, pick: (path: string) => unknown) {
  return Object.fromEntries(contract.routes.map((route) => [route.path, pick(route.path)]));
}

for (const contract of Object.values(contracts)) {
  const { service } = contract;

  test(`${service}.routes are the document's endpoints, no more and no fewer`, () => {
    assert.deepEqual(
      contract.routes.map((route) => route.path).sort(),
      endpoints(contract)
        .map((row) => row["Route"])
        .sort(),
    );
  });

  test(`${service}.routes have a schema each, and no schema is without a route`, () => {
    assert.deepEqual(Object.keys(schemas[service]).sort(), contract.routes.map((route) => route.path).sort());
  });

  test(`${service} schemas ask for a request exactly where the route has a body`, () => {
    const asked = columns(contract, (path) => schemas[service][path]?.request !== undefined);
    assert.deepEqual(asked, Object.fromEntries(contract.routes.map((route) => [route.path, route.body === "required"])));
  });
}

test("fiscal.routes accept the document's methods", () => {
  assert.match(section(text(fiscal), "Endpoints"), /All routes accept POST/);
  const stated = endpoints(fiscal).map((row) => [
    row["Route"],
    row["Method"]?.startsWith("GET or POST") ? ["GET", "POST"] : [row["Method"]],
  ]);
  assert.deepEqual(Object.fromEntries(fiscal.routes.map((route) => [route.path, route.methods])), Object.fromEntries(stated));
});

test("bank.routes accept the document's methods", () => {
  const stated = endpoints(bank).map((row) => [row["Route"], row["HTTP method"]?.split(" or ")]);
  assert.deepEqual(Object.fromEntries(bank.routes.map((route) => [route.path, route.methods])), Object.fromEntries(stated));
});

test("qr.routes accept POST alone, as the document says of every route", () => {
  assert.match(section(text(qr), "Endpoints"), /method POST for every route/);
  assert.ok(qr.routes.every((route) => route.methods.join() === "POST"));
});

for (const contract of [bank, qr]) {
  test(`${contract.service}.routes have a body where the document has one`, () => {
    const stated = endpoints(contract).map((row) => [row["Route"], row["Body"] === "none" ? "none" : "required"]);
    const own = contract.routes.map((route) => [route.path, route.body]);
    assert.deepEqual(Object.fromEntries(own), Object.fromEntries(stated));
  });

  test(`${contract.service}.routes are polled via /check where the document says so`, () => {
    const stated = endpoints(contract).map((row) => [row["Route"], row["Poll via /check"] === "yes" ? "/check" : undefined]);
    const own = contract.routes.map((route) => [route.path, route.polling?.route]);
    assert.deepEqual(Object.fromEntries(own), Object.fromEntries(stated));
  });

  test(`${contract.service} polling and time-outs are those of the document's limits`, () => {
    const limits = new Map(table(section(text(contract), "Limits")).map((row) => [row["Item"], row["Value"]]));
    assert.equal(limits.get("initial command response timeout (recommended)"), "30 s");
    assert.ok(contract.routes.every((route) => route.replyTimeoutMs === 30_000));
    assert.equal(limits.get("/check polling interval (recommended)"), "1000-2000 ms");
    for (const { polling } of contract.routes.filter((route) => route.polling !== undefined)) {
      assert.deepEqual(polling?.intervalMs, { min: 1000, max: 2000 });
    }
  });

  test(`${contract.service} frames are length frames with the document's routes in front`, () => {
    assert.match(text(contract), /Length \(4 bytes, unsigned big-endian/);
    assert.deepEqual([contract.framing, contract.envelope], ["length", "text"]);
    assert.match(text(contract), /content type application\/json/);
    assert.equal(contract.replyContentType, "application/json");
  });
}

test("fiscal frames are STX frames with a form in them", () => {
  const stated = section(text(fiscal), "Endpoints");
  assert.match(stated, /one byte STX \(0x02\)/);
  assert.match(stated, /form-encoded fields command/);
  assert.deepEqual([fiscal.framing, fiscal.envelope, fiscal.linePrefix], ["stx", "form", ""]);
  assert.equal(after(stated, "The response content type is ").split(". ")[0], fiscal.replyContentType);
});

test("fiscal polling is that of the document's limits", () => {
  const limits = new Map(table(section(text(fiscal), "Limits")).map((row) => [row["Item"], row["Value"]]));
  assert.match(limits.get("/check_status polling (recommended)") ?? "", /interval 1-2 s/);
  const polled = fiscal.routes.filter((route) => route.polling !== undefined);
  assertMapped(polled, ["/sale", "/refund", "/deposit", "/withdraw"], (route) => route.path);
  assert.ok(polled.every((route) => route.polling?.intervalMs.min === 1000 && route.polling.intervalMs.max === 2000));
});

test("contracts have the documents' ports and line prefixes", () => {
  assert.equal(Number(/default port (\d+)/.exec(text(fiscal))?.[1]), fiscal.port);
  assert.equal(Number(/HTTP: port (\d+)/.exec(text(bank))?.[1]), bank.port);
  assert.equal(Number(/HTTP: port (\d+)/.exec(text(qr))?.[1]), qr.port);
  assert.equal(/the default is (:\d+)/.exec(text(qr))?.[1], qr.linePrefix);
  assert.match(text(bank), /Request payload: <route> without a body/);
  assert.equal(bank.linePrefix, "");
});

test("fiscal.codes are the document's codes, names and meanings", () => {
  const stated = table(section(text(fiscal), "Errors"));
  const own = fiscal.codes.map(({ code, name, meaning }) => ({ Code: String(code), Name: name, Meaning: meaning }));
  assert.deepEqual(own, stated);
});

test("bank.codes are the document's codes and meanings", () => {
  const stated = table(section(text(bank), "Errors"));
  assertMapped(bank.codes, stated, ({ code, meaning }) => ({ Code: String(code), Meaning: meaning }));
});

test("qr.codes are the document's only code", () => {
  assert.match(section(text(qr), "Errors"), /code \(typically 1\)/);
  assertMapped(qr.codes, [1], ({ code }) => code);
});

for (const contract of Object.values(contracts)) {
  test(`${contract.service}.faultCodes are codes of the document`, () => {
    const known = new Set(contract.codes.map(({ code }) => code));
    for (const [kind, code] of Object.entries(contract.faultCodes)) {
      assert.ok(known.has(code), `${kind}: ${code}`);
    }
  });
}

test("finals are the documents' final states", () => {
  const statuses = after(text(bank), "Transaction result statuses returned in data.status by /check: ").split(", ");
  assert.deepEqual(bank.finals.values, statuses);
  assert.match(after(text(fiscal), "Document docStatus values: "), /1 = closed \(final\)/);
  assert.deepEqual(fiscal.finals.values, [1]);
  assert.match(text(fiscal), /Code 44, or docStatus 0: do not resend/);
  assert.deepEqual(fiscal.finals.pendingCodes, [44]);
  assert.match(text(qr), /stop on a final rrn or status error/);
  assert.deepEqual([qr.finals.field, qr.finals.values, qr.finals.errorIsFinal], [["data", "rrn"], [], true]);
  assert.deepEqual([fiscal.finals.absentCodes, bank.finals.absentCodes, qr.finals.absentCodes], [[9], [-15], []]);
});
