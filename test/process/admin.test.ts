import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openLog } from "../../src/core/log.ts";
import { PageKey } from "../../src/http/page-key.ts";
import { openAdmin } from "../../src/process/admin.ts";
import { ask } from "../http/served.ts";
import { scratchFolder } from "../support/bridge-process.ts";

const silent = openLog("silent");
const routes = { "GET /thing": () => ({ status: 200, text: "{}" }) };
const anyPort = { host: "127.0.0.1", port: 0 };

test("openAdmin() listens where the configuration says, and on what was opened elsewhere in place of that", async () => {
  const own = await openAdmin(anyPort, routes, silent);
  assert.ok(own);
  assert.equal((await ask(own.port, "GET", "/thing")).status, 200);
  const given = await openAdmin({ host: "127.0.0.1", port: own.port }, routes, silent, { on: anyPort });
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
  await assert.rejects(openAdmin(undefined, routes, silent, { on: taken }), { code: "EADDRINUSE" });
  await first.close();
});

const changing = { ...routes, "POST /thing": () => ({ status: 200, text: "{}" }) };
const factsOf = async (port: number) => JSON.parse((await ask(port, "GET", "/page/paths.json")).text);

test("openAdmin() lets nothing be changed but by who reads its key's file, which its owner and group alone can", async () => {
  const admin = await openAdmin(anyPort, changing, silent);
  assert.ok(admin);
  const { keyFile } = await factsOf(admin.port);
  assert.equal(statSync(keyFile).mode & 0o777, 0o640);
  assert.equal(statSync(join(keyFile, "..")).mode & 0o777, 0o700);
  const key = new PageKey(readFileSync(keyFile, "utf8"));
  assert.equal((await ask(admin.port, "POST", "/thing")).status, 401);
  const code = JSON.stringify({ code: key.code() });
  const { status, text } = await ask(admin.port, "POST", "/page/session", code);
  assert.equal(status, 200);
  const session = { Authorization: `Bearer ${JSON.parse(text).session}` };
  assert.equal((await ask(admin.port, "POST", "/thing", "", session)).status, 200);
  // With other routes it is the same.
  admin.replace(changing);
  assert.equal((await ask(admin.port, "POST", "/thing", "", session)).status, 200);
  for (const body of [code, "{}", "[", JSON.stringify({ code: 7 })]) {
    const again = await ask(admin.port, "POST", "/page/session", body);
    assert.equal(again.status, 403, body);
    assert.match(again.text, /the code is wrong, was used, or is over: run posline page again/);
  }
  await admin.close();
});

test("openAdmin() keeps its key in systemd's folder, and takes no old one there for its own", async (t) => {
  const folder = scratchFolder();
  process.env["RUNTIME_DIRECTORY"] = folder.path;
  t.after(() => delete process.env["RUNTIME_DIRECTORY"]);
  writeFileSync(join(folder.path, "key"), "old");
  const admin = await openAdmin(anyPort, changing, silent);
  assert.ok(admin);
  assert.equal((await factsOf(admin.port)).keyFile, join(folder.path, "key"));
  assert.match(readFileSync(join(folder.path, "key"), "utf8"), /^[0-9a-f]{48}$/);
  await admin.close();
  process.env["RUNTIME_DIRECTORY"] = join(folder.path, "gone");
  const keyless = await openAdmin(anyPort, changing, silent);
  assert.ok(keyless);
  assert.equal((await factsOf(keyless.port)).keyFile, null);
  assert.equal((await ask(keyless.port, "POST", "/thing")).status, 401, "only the token proves anything");
  await keyless.close();
});

test("openAdmin() has no key where nothing can be changed, or every terminal is emulated", async () => {
  for (const [own, more] of [
    [routes, {}],
    [changing, { isPlay: true }],
  ] as const) {
    const admin = await openAdmin(anyPort, own, silent, more);
    assert.ok(admin);
    assert.deepEqual(await factsOf(admin.port), { paths: ["/thing"] });
    assert.equal((await ask(admin.port, "POST", "/thing")).status, own === routes ? 405 : 200);
    await admin.close();
  }
});
