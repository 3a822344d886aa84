import assert from "node:assert/strict";
import { test } from "node:test";
import { adminDocument, isAt, usualAdmin } from "../../src/openapi/admin.ts";
import { adminPaths } from "../../src/openapi/admin-paths.ts";
import { operationsOf, validDocument } from "./documented.ts";

test("adminDocument() is OpenAPI 3.1, and has each path with its own id", async () => {
  const document = await validDocument(adminDocument(usualAdmin));
  const operations = operationsOf(document);
  assert.deepEqual(operations.map(({ method, path }) => `${method} ${path}`).sort(), Object.keys(adminPaths).sort());
  const ids = operations.map(({ operation }) => operation["operationId"]);
  assert.deepEqual(ids.sort(), [
    "getEmulator",
    "getEvents",
    "getHealthz",
    "getMetrics",
    "getOpenapiDocument",
    "getReadyz",
    "getRecording",
    "getStatus",
    "getTap",
    "postEmulator",
    "postJournalSettle",
  ]);
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

test("isAt() knows a path with a parameter, and no other", () => {
  assert.ok(isAt("GET /openapi/{document}.json", "GET /openapi/bank.json"));
  assert.ok(isAt("GET /status", "GET /status"));
  assert.ok(!isAt("GET /status", "GET /status/x"));
  assert.ok(!isAt("GET /openapi/{document}.json", "POST /openapi/bank.json"));
});
