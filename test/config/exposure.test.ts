import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ConfigError } from "../../src/config/config.ts";
import { type Flags, loadConfig } from "../../src/config/load.ts";
import { assertMapped } from "../support/assert-mapped.ts";

/** Files as they lie on a box: in folders that every user may pass, unless a test says otherwise. */
const root = mkdtempSync(join(tmpdir(), "posline-exposed-"));
chmodSync(root, 0o755);
after(() => rmSync(root, { recursive: true }));
let count = 0;

const installed = join(root, "group");
writeFileSync(installed, "root:x:0:\nposline:x:990:\n");
const byHand = join(root, "group-without");
writeFileSync(byHand, "root:x:0:\n");

function fileOf(content: string | object, mode: number): string {
  const path = join(root, `file ${count++}`);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  chmodSync(path, mode);
  return path;
}

const lines = { till: { path: "/dev/ttyUSB0" } };
const upstream = "http://127.0.0.1:1";
const withSecrets = {
  lines,
  services: {
    fiscal: { line: "till", merchantId: "GEHEIM-M", upstream },
    bank: { line: "till", apiKey: "GEHEIM-K", upstream },
  },
};

async function warningsOf(
  file: string,
  { groups = installed, env = {}, flags = {} }: { groups?: string; env?: Record<string, string>; flags?: Flags } = {},
) {
  const { warnings } = await loadConfig({ env: { STATE_DIRECTORY: "/s", ...env }, flags: { config: file, ...flags }, groups });
  assert.doesNotMatch(warnings.join(), /GEHEIM/);
  return warnings;
}

test("loadConfig() warns once of a configuration with secrets that every user may read, with the command", async () => {
  const file = fileOf(withSecrets, 0o644);
  for (const flags of [{}, { gateway: {} }] satisfies Flags[]) {
    assert.deepEqual(await warningsOf(file, { flags }), [
      `services.fiscal.merchantId, services.bank.apiKey: every user of this box can read ${file}: ` +
        `sudo chgrp posline '${file}' && sudo chmod 640 '${file}'`,
    ]);
  }
  assert.deepEqual(await warningsOf(file, { groups: byHand }), [
    `services.fiscal.merchantId, services.bank.apiKey: every user of this box can read ${file}: chmod 600 '${file}'`,
  ]);
});

test("loadConfig() warns of a secret's own file that every user may read", async () => {
  const [key, id] = [fileOf("GEHEIM-K\n", 0o644), fileOf("GEHEIM-M\n", 0o604)];
  const services = { fiscal: { line: "till", merchantIdFile: id }, bank: { line: "till", apiKeyFile: key } };
  const warnings = await warningsOf(fileOf({ lines, services }, 0o644));
  assert.deepEqual(warnings, [
    `services.fiscal.merchantIdFile: every user of this box can read ${id}: sudo chgrp posline '${id}' && sudo chmod 640 '${id}'`,
    `services.bank.apiKeyFile: every user of this box can read ${key}: sudo chgrp posline '${key}' && sudo chmod 640 '${key}'`,
  ]);
});

test("loadConfig() is silent about files that some may read, that lie where others can't go, or that hold no secret", async () => {
  assert.deepEqual(await warningsOf(fileOf(withSecrets, 0o640)), []);
  assert.deepEqual(await warningsOf(fileOf({ lines, services: { bank: { line: "till" } } }, 0o644)), []);
  const folder = join(root, "closed");
  mkdirSync(folder, { mode: 0o700 });
  const key = join(folder, "key");
  writeFileSync(key, "GEHEIM-K\n", { mode: 0o644 });
  const link = join(root, "link");
  symlinkSync(key, link);
  for (const apiKeyFile of [key, link]) {
    assert.deepEqual(await warningsOf(fileOf({ lines, services: { bank: { line: "till", apiKeyFile } } }, 0o644)), []);
  }
  chmodSync(folder, 0o711);
  const [warning = ""] = await warningsOf(fileOf({ lines, services: { bank: { line: "till", apiKeyFile: link } } }, 0o644));
  assert.match(warning, /^services\.bank\.apiKeyFile: every user of this box can read .*link: sudo chgrp posline /);
});

test("loadConfig() warns of an admin port and of a key on an address that the network reaches, with the way around", async () => {
  const tokenFile = fileOf("GEHEIM-T-0123456789", 0o600);
  const services = { bank: { line: "till", apiKey: "GEHEIM-K", host: "10.0.0.7", port: 9888 } };
  const file = fileOf({ lines, services, admin: { host: "0.0.0.0", tokenFile } }, 0o640);
  const [key = "", admin = "", ...others] = await warningsOf(file);
  assert.match(
    key,
    /^services\.bank\.host: .* API key to 10\.0\.0\.7 unencrypted.* ssh -N -L 9888:127\.0\.0\.1:9888 USER@BOX$/,
  );
  assert.match(admin, /^admin\.host: the token is sent to 0\.0\.0\.0 unencrypted.* ssh -N -L 8880:127\.0\.0\.1:8880 USER@BOX$/);
  assert.deepEqual(others, []);
  for (const host of ["127.0.0.1", "localhost", "::1"]) {
    assert.deepEqual(await warningsOf(fileOf({ lines, services: { bank: { line: "till" } }, admin: { host } }, 0o640)), []);
  }
  const admins = { host: "10.0.0.7", tokenFile };
  const relaying = { lines, services: { bank: { line: "till", upstream, host: "0.0.0.0" } }, admin: admins };
  const gateway = await warningsOf(fileOf(relaying, 0o640), { flags: { gateway: {} } });
  assertMapped(gateway, ["admin.host"], (each) => each.split(":")[0]);
});

test("loadConfig() names what protects a terminal that the network reaches: a key by bank's contract, else an address or a firewall", async () => {
  const open = { line: "till", host: "10.0.0.7" };
  for (const [name, contract, fix] of [
    ["bank", undefined, "set apiKey"],
    ["second-till", "bank", "set apiKey"],
    ["qr", undefined, "set it to 127.0.0.1, or use a firewall"],
  ] as const) {
    const services = { [name]: contract === undefined ? open : { ...open, contract, port: 9888 } };
    assert.deepEqual(await warningsOf(fileOf({ lines, services }, 0o640)), [
      `services.${name}.host: anyone on the network who can reach 10.0.0.7 can use the terminal: ${fix}`,
    ]);
  }
});

test("loadConfig() warns of the admin port's token that every user may read", async () => {
  const token = fileOf("GEHEIM-T-0123456789", 0o644);
  const file = fileOf({ lines, services: { bank: { line: "till", upstream } }, admin: { tokenFile: token } }, 0o644);
  const command = `sudo chgrp posline '${token}' && sudo chmod 640 '${token}'`;
  const warning = `admin.tokenFile: every user of this box can read ${token}: ${command}`;
  assert.deepEqual(await warningsOf(file), [warning]);
  assert.deepEqual(await warningsOf(file, { flags: { gateway: {} } }), [warning]);
});

test("loadConfig() tells a user who may not read the file to use sudo, and how the service gets it back", async (t) => {
  const file = fileOf(withSecrets, 0);
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  t.after(async () => {
    if (isRoot) process.seteuid?.(0);
  });
  await assert.rejects(warningsOf(file), (error) => {
    assert.ok(error instanceof ConfigError);
    assert.equal(
      error.message,
      `Cannot use the configuration of ${file}: permission denied: run this command with sudo; if the service itself reports this, run ` +
        `sudo chgrp posline '${file}' && sudo chmod 640 '${file}'`,
    );
    return true;
  });
});
