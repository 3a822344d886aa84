import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileOf, folder, load, plain, problemsOf } from "./loading.ts";

const upstreams = {
  ...plain,
  services: {
    fiscal: { line: "till", upstream: "http://127.0.0.1:8008" },
    bank: { line: "till", upstream: "https://terminal.lan/bank" },
  },
};

test("loadConfig() for a gateway on a line needs no file: three services, each asked on this box at its contract's port", async () => {
  const { config, origins, file, warnings } = await load(undefined, {}, { line: "/dev/ttyS1", gateway: {} });
  assert.equal(file, undefined);
  assert.equal(config.lines["till"]?.path, "/dev/ttyS1");
  assert.deepEqual(
    Object.entries(config.services).map(([name, { upstream }]) => [name, upstream]),
    [
      ["fiscal", "http://127.0.0.1:8008"],
      ["bank", "http://127.0.0.1:8888"],
      ["qr", "http://127.0.0.1:8887"],
    ],
  );
  assert.equal(origins.get("services.bank.upstream"), "default");
  assert.deepEqual(warnings, []);
});

test("loadConfig() for a gateway on a line reads no file unless one is named", async () => {
  const wrong = { file: fileOf("{"), env: {} };
  const { loadConfig } = await import("../../src/config/load.ts");
  const { config } = await loadConfig({ ...wrong, flags: { line: "/dev/ttyS1", gateway: {} } });
  assert.equal(config.lines["till"]?.path, "/dev/ttyS1");
  await assert.rejects(loadConfig({ ...wrong, flags: { gateway: {} } }));
  await assert.rejects(loadConfig({ ...wrong, flags: { line: "/dev/ttyS1" } }));
});

test("loadConfig() takes upstreams from the file, then the flags", async () => {
  const gateway = { upstreams: { bank: "http://flag" } };
  const { config, origins } = await load(upstreams, {}, { gateway });
  assert.equal(config.services.bank?.upstream, "http://flag");
  assert.equal(origins.get("services.bank.upstream"), "flag --upstream-bank");
  assert.equal((await load(upstreams, {}, { gateway: {} })).config.services.bank?.upstream, "https://terminal.lan/bank");
  assert.match(
    (await problemsOf(upstreams, {}, { gateway: { upstreams: { bank: "bank" } } }))[0] ?? "",
    /^--upstream-bank: "bank" is not valid: it must be a URL/,
  );
  assert.deepEqual(await problemsOf(upstreams, {}, { gateway: { upstreams: { qr: "http://a" } } }), [
    "--upstream-qr: the file has no service qr: add services.qr to it, or remove --upstream-qr",
  ]);
});

test("loadConfig() tells each service of a file that a gateway can't ask, and how to mend it", async () => {
  assert.deepEqual(await problemsOf(plain, {}, { gateway: {} }), [
    'services.fiscal.upstream: missing: add the URL at which posline gateway reaches the service, such as "http://127.0.0.1:8008", or use --upstream-fiscal',
    'services.bank.upstream: missing: add the URL at which posline gateway reaches the service, such as "http://127.0.0.1:8888", or use --upstream-bank',
  ]);
  assert.deepEqual(await problemsOf(plain), []);
  assert.deepEqual(await problemsOf(upstreams), [], "serve leaves upstreams aside");
});

test("loadConfig() tells an upstream that has a URL's form and is none", async () => {
  assert.deepEqual(await problemsOf({ ...plain, services: { bank: { line: "till", upstream: "http://a:99999" } } }), [
    'services.bank.upstream: "http://a:99999" is not a URL: write it as http://127.0.0.1:8888',
  ]);
});

test("loadConfig() lets a gateway give up before the till would, unless the time-out is set", async () => {
  const { config } = await load(upstreams, {}, { gateway: {} });
  assert.equal(config.services.bank?.replyTimeoutMs["/sale"], 25_000);
  assert.equal(config.services.fiscal?.replyTimeoutMs["/sale"], 175_000);
  assert.equal(config.services.fiscal?.replyTimeoutMs["/get_info"], 55_000);
  assert.equal(
    (await load(upstreams)).config.services.bank?.replyTimeoutMs["/sale"],
    30_000,
    "the bridge keeps the contract's",
  );
  const set = { ...upstreams, services: { bank: { ...upstreams.services.bank, replyTimeoutMs: { "/sale": 9_000 } } } };
  const { replyTimeoutMs } = (await load(set, {}, { gateway: {} })).config.services.bank ?? {};
  assert.deepEqual([replyTimeoutMs?.["/sale"], replyTimeoutMs?.["/check"]], [9_000, 25_000]);
});

test("loadConfig() warns of a gateway that would answer after the till gave up, once for a service and not for fiscal", async () => {
  const of = async (bankMs: number, fiscalMs: number) => {
    const services = {
      fiscal: { ...upstreams.services.fiscal, replyTimeoutMs: fiscalMs },
      bank: { ...upstreams.services.bank, replyTimeoutMs: bankMs },
    };
    return (await load({ ...upstreams, services }, {}, { gateway: {} })).warnings;
  };
  assert.deepEqual(await of(29_999, 600_000), []);
  const warnings = await of(30_000, 600_000);
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? "",
    /^services\.bank\.replyTimeoutMs: 30000 for \/supported_operations is too long: .*: set it to 25000 or less$/,
  );
});

test("loadConfig() warns of an API key that a gateway would send in the clear, and takes it from a file that a flag names", async () => {
  const key = join(folder, "key");
  writeFileSync(key, "KEY\n");
  const of = (upstream: string) => load(upstreams, {}, { gateway: { upstreams: { bank: upstream }, apiKeyFile: key } });
  const { config, warnings } = await of("http://10.0.0.7:8888");
  assert.equal(config.services.bank?.apiKey, "KEY");
  assert.match(warnings[0] ?? "", /^services\.bank\.upstream: the API key crosses the network unencrypted/);
  for (const upstream of ["https://10.0.0.7", "http://127.0.0.1:1", "http://localhost", "http://[::1]:1"]) {
    assert.deepEqual((await of(upstream)).warnings, []);
  }
});

test("loadConfig() gives a gateway the warnings of its lines, and none of a bridge's", async () => {
  const odd = { ...upstreams, lines: { till: { path: "/dev/ttyS1", dataBits: 7 } } };
  const services = { bank: { ...upstreams.services.bank, host: "0.0.0.0" } };
  const { warnings } = await load({ ...odd, services }, {}, { gateway: {} });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /^lines\.till\.dataBits: 7 bits/);
});
