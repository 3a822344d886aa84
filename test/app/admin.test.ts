import assert from "node:assert/strict";
import { test } from "node:test";
import { openAdmin } from "../../src/app/admin.ts";
import { openLog } from "../../src/core/log.ts";
import { ask } from "../http/served.ts";

const silent = openLog("silent");
const routes = { "GET /thing": () => ({ status: 200, text: "{}" }) };
const anyPort = { host: "127.0.0.1", port: 0 };

test("openAdmin() listens where the configuration says, and on what was opened elsewhere in place of that", async () => {
  const own = await openAdmin(anyPort, routes, silent);
  assert.ok(own);
  assert.equal((await ask(own.port, "GET", "/thing")).status, 200);
  const given = await openAdmin({ host: "127.0.0.1", port: own.port }, routes, silent, anyPort);
  assert.ok(given);
  assert.notEqual(given.port, own.port);
  assert.equal((await ask(given.port, "GET", "/thing")).status, 200);
  await Promise.all([own.close(), given.close()]);
});

test("openAdmin() rejects when what was configured, or opened elsewhere, can't be had", async () => {
  const first = await openAdmin(anyPort, routes, silent);
  assert.ok(first);
  const taken = { host: "127.0.0.1", port: first.port };
  await assert.rejects(openAdmin(taken, routes, silent), { code: "EADDRINUSE" });
  await assert.rejects(openAdmin(undefined, routes, silent, taken), { code: "EADDRINUSE" });
  await first.close();
});
