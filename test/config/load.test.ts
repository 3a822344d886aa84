import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "../../src/config/config.ts";
import { type Flags, loadConfig } from "../../src/config/load.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { absent, fileOf, folder, load, plain, problemsOf } from "./loading.ts";

test("loadConfig() fills in the defaults, and the contracts' ports and time-outs", async () => {
  const { config, origins } = await load(plain);
  assert.deepEqual(config.lines["till"], {
    path: "/dev/ttyUSB0",
    baudRate: 9_600,
    dataBits: 8,
    parity: "none",
    stopBits: 1,
    flowControl: "none",
    crc16: "arc",
    recovery: "barrier",
    lateReplyMs: 30_000,
    idleProbeMs: 60_000,
    pauseMs: 0,
    queueCallsMax: 64,
    queueWaitMs: 15_000,
    hupcl: true,
  });
  assert.deepEqual(config.services.bank, {
    contract: "bank",
    line: "till",
    port: 8888,
    host: "localhost",
    replyTimeoutMs: Object.fromEntries(contracts.bank.routes.map((route) => [route.path, 30_000])),
    bodyBytesMax: 262_144,
    replyBytesMax: 1_048_576,
    check: "envelope",
    allowOrigins: [],
    allowHosts: [],
  });
  assert.equal(config.services.fiscal?.replyTimeoutMs["/sale"], 180_000);
  assert.equal(config.services.fiscal?.replyTimeoutMs["/get_info"], 60_000);
  assert.equal(config.services.qr, undefined);
  assert.equal(config.admin, undefined);
  assert.deepEqual(config.log, { level: "info" });
  assert.equal(origins.get("lines.till.crc16"), "default");
  assert.equal(origins.get("services.bank.port"), "default");
});

test("loadConfig() gives every resolved setting one origin, and no origin to anything else", async () => {
  const tokenFile = fileOf("GEHEIM-0123456789");
  const { config, origins } = await load({ ...plain, admin: { tokenFile } }, { POSLINE_HOST: "::1" });
  const paths = [
    ...Object.entries(config.lines).flatMap(([name, line]) => Object.keys(line).map((key) => `lines.${name}.${key}`)),
    ...Object.entries(config.services).flatMap(([name, service]) => [
      ...Object.keys(service)
        .filter((key) => key !== "replyTimeoutMs")
        .map((key) => `services.${name}.${key}`),
      ...Object.keys(service.replyTimeoutMs).map((route) => `services.${name}.replyTimeoutMs.${route}`),
    ]),
    ...Object.keys(config.admin ?? {}).map((key) => `admin.${key}`),
    "journal.folder",
    "journal.bytes",
    "journal.onFailure",
    "journal.resolve",
    "log.level",
  ];
  assert.deepEqual([...origins.keys()].filter((path) => !path.endsWith(".replyTimeoutMs")).sort(), paths.sort());
});

test("loadConfig() lays the file over defaults, and the environment and flags over the file", async () => {
  const file = fileOf(plain);
  const at = async (env: NodeJS.ProcessEnv, flags: Flags) => {
    const { config, origins } = await loadConfig({ file, env, flags });
    return [config.lines["till"]?.baudRate, origins.get("lines.till.baudRate")];
  };
  assert.deepEqual(await at({}, {}), [9_600, `file ${file}`]);
  assert.deepEqual(await at({}, { baud: 38_400 }), [38_400, "flag --baud"]);
  const { config, origins } = await loadConfig({ file, env: { POSLINE_BANK_PORT: "9" }, flags: {} });
  assert.deepEqual([config.services.bank?.port, origins.get("services.bank.port")], [9, "environment POSLINE_BANK_PORT"]);
});

test("loadConfig() takes replyTimeoutMs as one number or by route, and leaves the other routes their defaults", async () => {
  const one = await load({ ...plain, services: { fiscal: { line: "till", replyTimeoutMs: 9_000 } } });
  assert.ok(Object.values(one.config.services.fiscal?.replyTimeoutMs ?? {}).every((ms) => ms === 9_000));
  assert.equal(Object.keys(one.config.services.fiscal?.replyTimeoutMs ?? {}).length, contracts.fiscal.routes.length);
  assert.equal(one.origins.get("services.fiscal.replyTimeoutMs./sale"), `file ${one.file}`);
  const some = await load({ ...plain, services: { fiscal: { line: "till", replyTimeoutMs: { "/get_info": 9_000 } } } });
  assert.equal(some.config.services.fiscal?.replyTimeoutMs["/get_info"], 9_000);
  assert.equal(some.config.services.fiscal?.replyTimeoutMs["/sale"], 180_000);
  assert.equal(some.origins.get("services.fiscal.replyTimeoutMs./get_info"), `file ${some.file}`);
  assert.equal(some.origins.get("services.fiscal.replyTimeoutMs./sale"), "default");
});

test("loadConfig() turns admin on by its key alone, on port 8880", async () => {
  assert.deepEqual((await load({ ...plain, admin: {} })).config.admin, {
    host: "localhost",
    port: 8880,
    allowOrigins: [],
    allowHosts: [],
  });
});

test("loadConfig() reads --config before POSLINE_CONFIG before the default file", async () => {
  const [flag, variable, fallback] = [fileOf(plain), fileOf(plain), fileOf(plain)];
  const read = async (env: NodeJS.ProcessEnv, flags: Flags) => (await loadConfig({ file: fallback, env, flags })).file;
  assert.equal(await read({ POSLINE_CONFIG: variable }, { config: flag }), flag);
  assert.equal(await read({ POSLINE_CONFIG: variable }, {}), variable);
  assert.equal(await read({}, {}), fallback);
});

test("loadConfig() refuses a named file that is missing, a folder, or too large, and an empty name", async () => {
  assert.match((await problemsOf(undefined, {}, { config: absent }))[0] ?? "", /^there is no such file: /);
  assert.match(
    (await problemsOf(undefined, { POSLINE_CONFIG: absent }, { line: "/dev/x" }))[0] ?? "",
    /^there is no such file: /,
  );
  assert.match((await problemsOf(undefined, {}, { config: folder }))[0] ?? "", /^it is a folder/);
  assert.match((await problemsOf(" ".repeat(1024 * 1024 + 1)))[0] ?? "", /^the file is larger than 1048576 bytes/);
  assert.match((await problemsOf(undefined, { POSLINE_CONFIG: "" }))[0] ?? "", /^POSLINE_CONFIG: must not be empty/);
});

test("loadConfig() says what to do when there is neither a file nor a line", async () => {
  const [problem] = await problemsOf(undefined);
  for (const cure of ["--line", "posline ports", "--emulated", "posline config --schema", absent])
    assert.ok(problem?.includes(cure), cure);
});

test("loadConfig() serves bank and qr for --line without a file, and fiscal too once it has the merchant's id", async () => {
  const id = join(folder, "id-of-flag");
  writeFileSync(id, "M-9\n");
  const served = async (flags: Flags, env: NodeJS.ProcessEnv = {}) => {
    const { config, warnings } = await load(undefined, env, { line: "/dev/ttyS7", ...flags });
    const ports = Object.entries(config.services).map(([name, service]) => `${name} ${service.line} ${service.port}`);
    return { config, ports, told: warnings.filter((each) => each.startsWith("services.fiscal")) };
  };
  const { config, ports, told } = await served({}, { POSLINE_FISCAL_PORT: "0" });
  assert.equal(config.lines["till"]?.path, "/dev/ttyS7");
  assert.deepEqual(ports, ["bank till 8888", "qr till 8887"]);
  assert.match(told.join(), /^services\.fiscal: not served, .*: add --merchant-id-file FILE to serve fiscal too$/);
  const signed = await served({ merchantIdFile: id });
  assert.deepEqual(signed.ports, ["fiscal till 8008", "bank till 8888", "qr till 8887"]);
  assert.equal(signed.config.services.fiscal?.merchantId, "M-9");
  assert.deepEqual(signed.told, []);
  writeFileSync(join(folder, "merchant-id"), "M-8\n");
  assert.equal((await served({}, { CREDENTIALS_DIRECTORY: folder })).config.services.fiscal?.merchantId, "M-8");
  const gateway = await served({ gateway: {} });
  assert.deepEqual(Object.keys(gateway.config.services), ["fiscal", "bank", "qr"]);
});

test("loadConfig() goes on serving fiscal without the merchant's id if a file says so, and takes --merchant-id-file over it", async () => {
  const services = { fiscal: { line: "till" }, bank: { line: "till" } };
  assert.deepEqual(Object.keys((await load({ ...plain, services })).config.services), ["fiscal", "bank"]);
  const id = join(folder, "id-of-flag");
  writeFileSync(id, "M-9\n");
  assert.equal((await load({ ...plain, services }, {}, { merchantIdFile: id })).config.services.fiscal?.merchantId, "M-9");
  const flags = { merchantIdFile: id };
  const bankOnly = { ...plain, services: { bank: { line: "till" } } };
  assert.match((await problemsOf(bankOnly, {}, flags))[0] ?? "", /^--merchant-id-file: the file has no service fiscal/);
});

test("loadConfig() gives qr the port in front of its routes, of the file or of its contract, and no other service one", async () => {
  const portsOf = async (qr: object) => {
    const { config, origins } = await load({ ...plain, services: { bank: { line: "till" }, qr: { line: "till", ...qr } } });
    const { bank, qr: resolved } = config.services;
    return [bank?.linePort, resolved?.linePort, origins.get("services.qr.linePort") === "default"];
  };
  assert.deepEqual(await portsOf({}), [undefined, 8887, true]);
  assert.deepEqual(await portsOf({ linePort: 9001 }), [undefined, 9001, false]);
  const [unknown] = await problemsOf({ ...plain, services: { bank: { line: "till", linePort: 8888 } } });
  assert.match(unknown ?? "", /^services\.bank\.linePort: /);
  for (const linePort of [0, 65_536, ":8887"]) {
    const [wrong] = await problemsOf({ ...plain, services: { qr: { line: "till", linePort } } });
    assert.match(wrong ?? "", /^services\.qr\.linePort: /);
  }
});

test("loadConfig() reads secrets from files: beside the file, and by whole path", async () => {
  writeFileSync(join(folder, "merchant-id"), "M-7\r\n");
  writeFileSync(join(folder, "key"), "K-7\n");
  const services = {
    fiscal: { line: "till", merchantIdFile: "merchant-id" },
    bank: { line: "till", apiKeyFile: join(folder, "key") },
  };
  const { config, origins } = await load({ ...plain, services });
  assert.equal(config.services.fiscal?.merchantId, "M-7");
  assert.equal(config.services.bank?.apiKey, "K-7");
  assert.equal(origins.get("services.fiscal.merchantId"), `file ${join(folder, "merchant-id")}`);
});

test("loadConfig() refuses a secret given as a value and as a file in one layer", async () => {
  const services = { fiscal: { line: "till", merchantId: "GEHEIM", merchantIdFile: "m" } };
  assert.deepEqual(await problemsOf({ ...plain, services }), [
    "services.fiscal.merchantIdFile: merchantId is set too: keep only one of them",
  ]);
});

test("loadConfig() tells a syntax error by line and column, and never quotes a secret", async () => {
  assert.deepEqual(await problemsOf('{\n  "lines": {},\n}'), ["line 2, column 14: a comma after the last entry: take it out"]);
  const texts = ['{"services":{"fiscal":{"merchantId":"GEHEIM"}', '{"services":{"fiscal":{"merchantId":GEHEIM}}}'];
  for (const text of texts) assert.doesNotMatch((await problemsOf(text)).join(), /GEHEIM/);
});

test("loadConfig() refuses a key that stands twice anywhere, with its path and both lines, and never a secret", async () => {
  const text = `{
    "lines": { "till": { "path": "/dev/ttyS0", "baudRate": 9600,
                         "b\\u0061udRate": 115200 } },
    "services": { "bank": { "line": "till", "apiKey": "GEHEIM", "replyTimeoutMs": { "/sale": 40000, "/sale": 50000 },
                            "apiKey": "GEHEIM-2" } },
    "lines": { "till": { "path": "/dev/ttyS0" } } }`;
  assert.deepEqual(await problemsOf(text), [
    "lines.till.baudRate: set twice, on line 2 and on line 3: keep only one",
    "services.bank.replyTimeoutMs./sale: set twice, on line 4 and on line 4: keep only one",
    "services.bank.apiKey: set twice, on line 4 and on line 5: keep only one",
    "lines: set twice, on line 2 and on line 6: keep only one",
  ]);
});

test("loadConfig() carries the problems of all layers in one ConfigError of exit code 78, without any secret", async () => {
  const bad = {
    lines: { till: { path: "/dev/ttyUSB0", baudRte: 9_600 } },
    services: {
      fiscal: { line: "till", merchantId: "GEHEIM\n", replyTimeoutMs: { "/sal": 9_000 } },
      bank: { line: "tll", apiKey: ["GEHEIM"] },
    },
  };
  await assert.rejects(load(bad, { POSLINE_FOO: "GEHEIM", POSLINE_BANK_PORT: "x" }, { baud: 1 }), (error) => {
    assert.ok(error instanceof ConfigError);
    assert.equal(error.exitCode, 78);
    assert.deepEqual(
      error.problems.map((problem) => problem.replace(/^(\S+): .*$/s, "$1")),
      [
        ...["POSLINE_FOO", "lines.till.baudRte", "services.fiscal.merchantId", "services.fiscal.replyTimeoutMs./sal"],
        ...["services.bank.apiKey", "POSLINE_BANK_PORT", "--baud", "services.bank.line"],
      ],
    );
    assert.ok(error.problems.includes('services.bank.line: there is no line "tll": use one of till'));
    assert.doesNotMatch(error.message, /GEHEIM/);
    return true;
  });
});

test("loadConfig() refuses values that are no object without a second complaint", async () => {
  for (const content of ["[]", "null", "1"]) assert.equal((await problemsOf(content)).length, 1, content);
});

test("loadConfig() refuses a file that isn't UTF-8, whose letters would become others", async () => {
  const text = JSON.stringify({ ...plain, services: { fiscal: { line: "till", merchantId: "CAF\u00e9" } } });
  for (const encoding of ["latin1", "utf16le"] as const) {
    const file = join(folder, encoding);
    writeFileSync(file, Buffer.from(encoding === "utf16le" ? `\uFEFF${text}` : text, encoding));
    await assert.rejects(loadConfig({ file, env: {}, flags: {} }), (error: unknown) => {
      assert.ok(error instanceof ConfigError);
      assert.deepEqual(error.problems, ["it is not UTF-8 text: save it as UTF-8"]);
      return true;
    });
  }
  assert.equal((await load(`\uFEFF${text}`)).config.services.fiscal?.merchantId, "CAF\u00e9");
});
