import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../src/config/load.ts";
import { serviceEnvironment } from "../../src/config/service-environment.ts";
import { fileOf, folder } from "./loading.ts";

const etc = join(folder, "etc");
const state = join(folder, "state");

test("serviceEnvironment() is the shell's own where posline isn't installed", () => {
  const env = { POSLINE_HOST: "::1" };
  assert.equal(serviceEnvironment(env, { etc, state }), env);
});

test("serviceEnvironment() has what systemd gives the installed service: nothing that it has is warned of as missing", async () => {
  const credentials = join(etc, "posline", "credentials");
  mkdirSync(credentials, { recursive: true });
  writeFileSync(join(etc, "passwd"), "root:x:0:0::/root:/bin/sh\nposline:x:999:999::/var/lib/posline:/usr/sbin/nologin\n");
  writeFileSync(join(credentials, "merchant-id"), "MERCHANT-1\n", { mode: 0o600 });
  const file = fileOf({ lines: { till: { path: "/dev/ttyUSB0" } }, services: { fiscal: { line: "till" } } });
  const env = serviceEnvironment({}, { etc, state });
  const { config, warnings } = await loadConfig({ file, env, flags: {} });
  assert.equal(config.services.fiscal?.merchantId, "MERCHANT-1");
  assert.deepEqual(config.journal, { folder: state, bytes: 8_388_608, onFailure: "relay", resolve: "ask" });
  assert.deepEqual(warnings, []);
  const given = { STATE_DIRECTORY: "/srv/posline", CREDENTIALS_DIRECTORY: "/run/credentials/posline.service" };
  assert.deepEqual(serviceEnvironment(given, { etc, state }), given, "the service's own comes first");
});

test("serviceEnvironment() gives the service's secrets to no other file than its own", () => {
  const own = join(etc, "posline", "posline.json");
  assert.ok("CREDENTIALS_DIRECTORY" in serviceEnvironment({ POSLINE_CONFIG: own }, { etc, state }));
  const elsewhere = { POSLINE_CONFIG: join(folder, "posline.json") };
  assert.equal(serviceEnvironment(elsewhere, { etc, state }), elsewhere);
});
