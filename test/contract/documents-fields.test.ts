import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { schemas } from "../../src/contract/schema.ts";
import { after, type DocumentedField, fields, type Row, section, table, tableFields, typeIn } from "./markdown.ts";
import { assertFields, propertyOf, type Shape, shapeOf } from "./shape.ts";

/**
 * Tests src/contract/schema.ts.
 *
 * Every field of every body against the documents, both ways: a field dropped on either side fails.
 */

const read = (name: string) => readFileSync(new URL(`../vectors/contracts/${name}.md`, import.meta.url), "utf8");
const fiscal = read("fiscal");
const bank = read("bank");
const qr = read("qr");

function request(service: keyof typeof schemas, path: string): Shape {
  const schema = schemas[service][path]?.request;
  assert.ok(schema, `${service} ${path} has no request schema`);
  return shapeOf(schema);
}

function reply(service: keyof typeof schemas, path: string): Shape {
  return shapeOf(schemas[service][path]?.reply);
}

const cell = (rows: readonly Row[], path: string, column: string) => {
  const found = rows.find((row) => row["Route"] === path)?.[column];
  assert.ok(found, `${path} has no ${column}`);
  return found;
};

const optional = { required: false } as const;
const text = { type: "string", required: false } as const;

// Fiscal

const fiscalRoutes = table(section(fiscal, "Endpoints"));
const fiscalDocument = tableFields(table(section(fiscal, "Document"))).map((field) => ({ ...field, ...optional }));
const fiscalShift = fields(after(section(fiscal, "Shift"), "Fields: "), text);
const fiscalMetrics = tableFields(table(section(fiscal, "Shift metrics"))).map((field) => ({ ...field, ...optional }));
const fiscalEnvelope = [
  ...fields(after(section(fiscal, "Endpoints"), "flat JSON object with ")),
  ...fields(after(section(fiscal, "Endpoints"), "Error responses may also carry ").replace(" and ", ", "), optional),
];
const nested = section(fiscal, "Shared nested objects");

/** Fields of a list by names alone, with the types that another place gives them. */
function typed(list: readonly DocumentedField[], types: readonly DocumentedField[]): readonly DocumentedField[] {
  return list.map((field) => ({
    ...field,
    type: field.type ?? types.find(({ name }) => name === field.name)?.type ?? "string",
  }));
}

// Success answers without `code` are real, so it isn't asked for although the document requires it
const envelopeLeniency = { optional: ["code"] };

function assertFiscalReply(path: string, stated: readonly DocumentedField[], besides: readonly string[] = []): void {
  const own = stated.filter(({ name }) => !fiscalEnvelope.some((field) => field.name === name));
  assertFields(reply("fiscal", path), [...fiscalEnvelope, ...own], `${path} reply`, { ...envelopeLeniency, besides });
}

for (const path of fiscalRoutes.map((row) => row["Route"] ?? "").filter((path) => path !== "/supported_operations")) {
  test(`fiscal ${path} request has the document's fields`, () => {
    const stated = cell(fiscalRoutes, path, "Request fields");
    const list = /^same as (\/\w+)$/.exec(stated)?.[1];
    const found = fields(list === undefined ? stated : cell(fiscalRoutes, list, "Request fields"), optional);
    // What /refund shares with /sale is typed where /sale lists it
    const sale = fields(cell(fiscalRoutes, "/sale", "Request fields")).filter(({ type }) => type !== undefined);
    assertFields(request("fiscal", path), typed(found, [...fiscalDocument, ...sale]), path);
  });
}

test("fiscal nested request objects have the document's fields", () => {
  const sale = request("fiscal", "/sale");
  assertFields(
    propertyOf(sale, "items", "[]"),
    tableFields(table(nested)).map((field) => ({ ...field, ...optional })),
    "item",
  );
  assertFields(propertyOf(sale, "items", "[]", "itemTaxes", "[]"), fields(after(nested, "Tax object: ")), "tax");
  const split = fields(after(nested, "Payment split object (all optional int64, default 0): "), { type: "int64", ...optional });
  assertFields(propertyOf(sale, "payments"), split, "payments");
  const extra = fields(after(nested, "Extra payment object (optional fields): "), optional);
  assertFields(propertyOf(sale, "extraPayments", "[]"), extra, "extraPayments");
  const params = fields(after(nested, "\ntrxParams (optional fields): "), optional);
  assertFields(propertyOf(sale, "extraPayments", "[]", "trxParams"), params, "trxParams");
  assert.deepEqual(propertyOf(request("fiscal", "/refund"), "items"), propertyOf(sale, "items"));
  assert.deepEqual(propertyOf(request("fiscal", "/refund"), "payments"), propertyOf(sale, "payments"));
  assert.deepEqual(propertyOf(request("fiscal", "/refund"), "extraPayments"), propertyOf(sale, "extraPayments"));
});

test("fiscal /sale, /refund, /check_status replies have the document's response fields", () => {
  assert.match(section(fiscal, "Document"), /Response fields for \/sale, \/refund, \/check_status \(all optional/);
  for (const path of ["/sale", "/refund", "/check_status"]) {
    assertFiscalReply(path, fiscalDocument);
  }
});

test("fiscal /check_copy reply has the document's fields", () => {
  const list = fields(after(section(fiscal, "Document"), "Response of /check_copy: "), optional);
  assertFiscalReply("/check_copy", typed(list, fiscalDocument));
});

test("fiscal shift replies have the document's fields", () => {
  for (const path of ["/open_shift", "/check_shift"]) {
    assertFiscalReply(path, typed(fields(cell(fiscalRoutes, path, "Response"), optional), fiscalShift));
  }
});

test("fiscal /close_shift and /x_report replies have the document's metrics", () => {
  assert.equal(cell(fiscalRoutes, "/close_shift", "Response"), "shift metrics");
  assertFiscalReply("/close_shift", fiscalMetrics);
  assert.equal(cell(fiscalRoutes, "/x_report", "Response"), "shift metrics without fiscalShiftID and fiscalShiftNum");
  assertFiscalReply(
    "/x_report",
    fiscalMetrics.filter(({ name }) => !["fiscalShiftID", "fiscalShiftNum"].includes(name)),
  );
  const vat = fields(after(nested, "VAT entry: "));
  for (const name of ["saleVatAmounts", "moneyBackVatAmounts"]) {
    assertFields(propertyOf(reply("fiscal", "/x_report"), name, "[]"), vat, name);
  }
});

test("fiscal cash replies have the document's fields", () => {
  assert.equal(cell(fiscalRoutes, "/withdraw", "Response"), "same as /deposit");
  for (const path of ["/deposit", "/withdraw"]) {
    assertFiscalReply(path, typed(fields(cell(fiscalRoutes, "/deposit", "Response"), optional), fiscalDocument));
  }
});

test("fiscal replies of the other routes have the document's fields", () => {
  const operations = cell(fiscalRoutes, "/supported_operations", "Response");
  assert.match(operations, /^operations: array of strings/);
  assertFiscalReply("/supported_operations", [{ name: "operations", type: typeIn(operations), required: false }]);
  assert.match(cell(fiscalRoutes, "/get_info", "Response"), /^fiscalData: raw JSON value/);
  assertFiscalReply("/get_info", [{ name: "fiscalData", type: undefined, required: false }]);
  assert.match(cell(fiscalRoutes, "/abort", "Response"), /^status success and code 0 only/);
  assertFiscalReply("/abort", []);
  assert.match(cell(fiscalRoutes, "/dates_report", "Response"), /shape not shown/);
  assertFiscalReply("/dates_report", []);
});

// Bank

const bankEnvelope = tableFields(table(section(bank, "Response envelope"))).map((field) => ({
  ...field,
  required: field.name === "status",
}));

test("bank operation requests have the document's fields", () => {
  const stated = tableFields(table(section(bank, "Financial operation request")));
  for (const path of ["/sale", "/preauth", "/confirm", "/cancel", "/refund"]) {
    assertFields(request("bank", path), stated, path);
  }
});

test("bank report requests have the document's fields", () => {
  const stated = fields(after(section(bank, "Report request"), "Fields, all optional: "), optional);
  for (const path of ["/xreport", "/close-shift"]) {
    assertFields(request("bank", path), stated, path);
  }
});

test("bank /check and /abort requests have the document's fields", () => {
  assertFields(request("bank", "/check"), fields(after(section(bank, "Status query request"), "")), "/check");
  assertFields(request("bank", "/abort"), fields(after(section(bank, "Abort request"), "")), "/abort");
});

test("bank replies have the document's envelope", () => {
  for (const path of Object.keys(schemas.bank)) {
    const besides = path === "/supported_operations" ? ["operations"] : [];
    assertFields(reply("bank", path), bankEnvelope, path, { besides });
  }
});

test("bank data of replies has the document's fields", () => {
  const result = fields(after(section(bank, "Transaction result"), "Fields: "), optional);
  for (const path of ["/check", "/abort"]) {
    assertFields(propertyOf(reply("bank", path), "data"), result, path);
  }
  const terminals = propertyOf(reply("bank", "/terminals"), "data", "terminals", "[]");
  const stated = tableFields(table(section(bank, "Terminal object"))).map((field) => ({ ...field, ...optional }));
  assertFields(terminals, stated, "terminal");
  const routes = table(section(bank, "Endpoints"));
  assert.match(cell(routes, "/supported_operations", "Response data"), /^operations: array of strings/);
  assert.match(cell(routes, "/terminals", "Response data"), /^terminals: array of terminal objects/);
  assert.deepEqual(Object.keys(propertyOf(reply("bank", "/supported_operations"), "data").properties ?? {}), ["operations"]);
});

// Qr

const qrEndpoints = section(qr, "Endpoints");
const qrEnvelope = tableFields(table(section(qr, "Response envelope"))).map((field) => ({
  ...field,
  required: field.name === "status",
}));

for (const row of table(qrEndpoints, 1)) {
  const path = row["Route"] ?? "";
  test(`qr ${path} request has the document's fields`, () => {
    assertFields(request("qr", path), fields(row["Fields"] ?? "", text), path);
  });
}

test("qr request bodies are listed for every route with a body", () => {
  const listed = table(qrEndpoints, 1).map((row) => row["Route"]);
  const asked = Object.entries(schemas.qr).filter(([, { request: schema }]) => schema !== undefined);
  assert.deepEqual(
    listed,
    asked.map(([path]) => path),
  );
});

test("qr requests use every field of a payment, with the document's types, and pay_system besides", () => {
  const payment = tableFields(table(section(qr, "Payment")));
  const used = new Map<string, Shape>();
  for (const row of table(qrEndpoints, 1)) {
    for (const [name, property] of Object.entries(request("qr", row["Route"] ?? "").properties ?? {})) {
      used.set(name, property);
    }
  }
  assertFields(
    { type: "object", properties: Object.fromEntries(used) },
    [...payment, { name: "pay_system", type: "string", required: undefined }],
    "payment",
  );
});

test("qr replies have the document's envelope", () => {
  for (const path of Object.keys(schemas.qr)) {
    assertFields(reply("qr", path), qrEnvelope, path);
  }
});

test("qr data of replies has the document's fields", () => {
  const data = (path: string) => propertyOf(reply("qr", path), "data");
  const stated = (path: string) =>
    [...after(qrEndpoints, `\n- ${path}: `).matchAll(/data\.(\w+)/g)].map(([, name = ""]) => ({
      name,
      type: undefined,
      ...optional,
    }));
  for (const path of ["/showqrcode", "/check", "/final_confirm"]) {
    assertFields(data(path), stated(path), path);
  }
  for (const path of ["/cancel", "/refund"]) {
    assertFields(data(path), stated("/cancel and /refund"), path);
  }
  const systems = stated("/check_connection").map((field) => ({ ...field, type: "array", required: true }));
  assertFields(data("/check_connection"), systems, "/check_connection");
  const entry = after(section(qr, "System entry"), "").replace(" and operations", ", operations");
  const fieldsOfEntry = fields(entry, { required: true });
  assertFields(propertyOf(data("/check_connection"), "systems", "[]"), fieldsOfEntry, "system entry");
});
