import assert from "node:assert/strict";
import { test } from "node:test";
import { Status } from "../../../src/admin/status.ts";
import { contractNames } from "../../../src/core/call.ts";
import { faultReasons } from "../../../src/core/fault.ts";
import { isObject, type JsonObject } from "../../../src/core/json-object.ts";
import described from "../../../src/lab/openapi/admin.json" with { type: "json" };
import { adminDocument, isAt, usualAdmin } from "../../../src/lab/openapi/admin.ts";
import { oneLineSources, played, recordOf } from "../../admin/worlds.ts";
import { Documented, operationsOf, validDocument } from "./documented.ts";

test("adminDocument() is OpenAPI 3.1, and has each path with its own id", async () => {
  const document = await validDocument(adminDocument(usualAdmin));
  const operations = operationsOf(document);
  const ids = operations.map(({ operation }) => operation["operationId"]);
  assert.deepEqual(ids.sort(), [
    ...[
      "getEmulator",
      "getEvents",
      "getExplain",
      "getHealthz",
      "getMetrics",
      "getOpenapiDocument",
      "getReadyz",
      "getRecording",
    ],
    ...["getSetup", "getStatus", "getTap", "getTest", "postEmulator", "postJournalSettle", "postSetup", "postTest"],
  ]);
});

test("admin.json has each reason of a fault and each contract", () => {
  const { Reason, Service } = described.components.schemas;
  assert.deepEqual(Reason.enum, Object.keys(faultReasons));
  assert.deepEqual(Service.properties.contract.enum, contractNames);
});

test("adminDocument() of a port has what that port answers, and is reached from where it came", async () => {
  const routes = ["GET /status", "GET /openapi/bank-2.json", "GET /elsewhere"];
  const document = await validDocument(adminDocument({ host: "127.0.0.1", port: 8880, routes }));
  assert.deepEqual(
    operationsOf(document).map(({ path }) => path),
    ["/status", "/openapi/{document}.json"],
  );
  assert.match(JSON.stringify(document["servers"]), /^\[\{"url":"\.\."/);
});

/** Where a value has fields that its schema doesn't name, one that allows others by a schema of theirs aside. */
function undescribed(part: unknown, value: unknown, at = ""): readonly string[] {
  if (!isObject(part)) return [];
  const schemas: JsonObject = described.components.schemas;
  const schema = schemas[String(part["$ref"]).replace("#/components/schemas/", "")] ?? part;
  assert.ok(isObject(schema));
  const { properties, items, additionalProperties: others } = schema;
  if (Array.isArray(value)) return value.flatMap((each, index) => undescribed(items, each, `${at}/${index}`));
  if (!isObject(value) || (!isObject(properties) && !isObject(others))) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const known = isObject(properties) ? properties[name] : undefined;
    return known === undefined && !isObject(others) ? [`${at}/${name}`] : undescribed(known ?? others, field, `${at}/${name}`);
  });
}

test("adminDocument() names each field of /status", async () => {
  const live = played("idle", {
    device: "/dev/ttyUSB0",
    waiting: 2,
    liveness: () => [{ service: "bank", state: "unheard", heardMs: 1, cause: { cause: "silent", cure: "wait" } }],
  });
  const tried = { asked: 2, lastAsked: "2026-11-20T10:33:09.000Z", lastAnswer: "success", cannotAsk: "none" };
  const operation = {
    time: "2026-11-20T10:33:09.000Z",
    requestId: "r-1",
    service: "bank",
    route: "/sale",
    cause: "no outcome",
  };
  const unknown = () => [{ ...operation, key: "A-1", amount: "1500", currency: "EUR", tried }];
  const status = new Status("1.2.3");
  const observer = status.line("till");
  const [service] = oneLineSources(live).services;
  assert.ok(service !== undefined);
  status.setSources({
    ...oneLineSources(live),
    services: [{ ...service, contract: "bank", upstream: "http://terminal.lan" }],
    journal: { folder: "/x", onFailure: "refuse", live: { state: "full", isReadable: false, unknown } },
  });
  observer.state("idle", "clean");
  status.exchange(recordOf("bank", "unknown", { reason: "no-reply" }));
  observer.probeAnswered("bank", { operations: ["sale"] });
  const { text } = status.status();
  const documented = new Documented(await validDocument(adminDocument(usualAdmin)));
  const headers = { "content-type": "application/json" };
  assert.deepEqual(documented.answerProblems("GET", "/status", { status: 200, headers, text }), []);
  const { schema } = described.paths["/status"].get.responses["200"].content["application/json"];
  assert.deepEqual(undescribed(schema, JSON.parse(text)), []);
});

test("adminDocument() lets the emulator's control name a service of a name of its own", async () => {
  const documented = new Documented(await validDocument(adminDocument(usualAdmin)));
  const next = { service: "bank-2", route: "/sale", outcome: "declined" };
  assert.deepEqual(documented.requestProblems("POST", "/emulator", "application/json", { next }), []);
  const text = JSON.stringify({ now: "2026-11-20T10:33:09.000Z", forced: [next], chances: {}, endings: {} });
  const headers = { "content-type": "application/json" };
  assert.deepEqual(documented.answerProblems("GET", "/emulator", { status: 200, headers, text }), []);
});

test("isAt() knows a path with a parameter, and no other", () => {
  assert.ok(isAt("GET /openapi/{document}.json", "GET /openapi/bank.json"));
  assert.ok(isAt("GET /status", "GET /status"));
  assert.ok(!isAt("GET /status", "GET /status/x"));
  assert.ok(!isAt("GET /openapi/{document}.json", "POST /openapi/bank.json"));
});
