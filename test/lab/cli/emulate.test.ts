import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { type Greeting, greeting } from "../../../src/cli/greeting.ts";
import { type ServeArguments, serveCommand } from "../../../src/cli/serve.ts";
import { ConfigError, emulatedPath } from "../../../src/config/config.ts";
import { adminDefaults } from "../../../src/config/limits.ts";
import { type EmulateFlags, type Flags, loadConfig } from "../../../src/config/load.ts";
import { emulatedMerchantId } from "../../../src/config/overrides.ts";
import { readArguments } from "../../../src/core/command.ts";
import { exitCodeOf, UsageError } from "../../../src/core/exit.ts";
import { type EmulateArguments, emulateCommand } from "../../../src/lab/cli/emulate.ts";
import { wireFaultKinds } from "../../../src/lab/emulator/faults/wire-fault.ts";
import { scratchFolder } from "../../support/bridge-process.ts";
import { bundle } from "../../support/posline-process.ts";

const folder = scratchFolder();
after(() => folder.remove());

/** What the command would be run with. */
async function parsed(words: string): Promise<EmulateArguments> {
  const [command, ...rest] = words.split(" ");
  assert.equal(command, emulateCommand.name);
  // The command hands its own arguments on as these
  return readArguments(emulateCommand, rest) as EmulateArguments;
}

test("posline emulate takes --fault and --service several times, and of every other flag the last", async () => {
  const args = await parsed(
    "emulate --fault corrupt=0.1 --service qr --fault late:9=0.1 --service bank --seed 1 --seed 2 --line a --line b --no-http --http",
  );
  assert.deepEqual(args.fault, ["corrupt=0.1", "late:9=0.1"]);
  assert.deepEqual(args.service, ["qr", "bank"]);
  assert.equal(args.seed, 2);
  assert.equal(args.line, "b");
  assert.equal(args.http, true);
  assert.equal(args.admin, true);
});

test("posline emulate reads its flags with dashes", async () => {
  const args = await parsed(
    "emulate --no-http --no-admin --plain-amounts --admin-port 0 --merchant-id-file m --api-key-file k",
  );
  assert.deepEqual(
    [args.http, args.admin, args.plainAmounts, args.adminPort, args.merchantIdFile, args.apiKeyFile],
    [false, false, true, 0, "m", "k"],
  );
});

test("posline emulate refuses unknown flags, words and services", async () => {
  for (const words of [
    "emulate --servce bank",
    "emulate bank",
    "emulate --service card",
    "emulate --line",
    "emulate --emulated",
  ]) {
    await assert.rejects(parsed(words), words);
  }
});

test("posline emulate --help names every flag and every fault", async () => {
  const { stdout: help } = await promisify(execFile)(process.execPath, [bundle, "emulate", "--help"]);
  const flags = ["config", "line", "baud", "http", "service", "state", "seed", "fault", "plain-amounts", "world"];
  for (const flag of [...flags, "print-world", "merchant-id-file", "api-key-file", "admin", "admin-port"])
    assert.match(help, new RegExp(`--${flag} `), flag);
  for (const kind of wireFaultKinds) assert.ok(help.includes(kind), kind);
});

test("posline serve reads the emulator's flags without yargs, and refuses what isn't right", async () => {
  const words = "--emulated --fault noise=0.1 --fault late=0.1 --seed 7 --world w --state s --plain-amounts".split(" ");
  // The command hands its own arguments on as these
  const { fault, seed, world, state, plainAmounts } = readArguments(serveCommand, words) as ServeArguments;
  assert.deepEqual([fault, seed, world, state, plainAmounts], [["noise=0.1", "late=0.1"], 7, "w", "s", true]);
  for (const args of [["--seed", "x"], ["--no-http"], ["--state"], ["--service", "bank"]]) {
    await assert.rejects(serveCommand.run(["--emulated", ...args]), UsageError, args.join(" "));
  }
});

function load(emulate: EmulateFlags = {}, flags: Flags = {}, env: NodeJS.ProcessEnv = {}) {
  return loadConfig({ file: join(folder.path, "default.json"), env, flags: { ...flags, emulate } });
}

async function problemsOf(...args: Parameters<typeof load>): Promise<readonly string[]> {
  try {
    await load(...args);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

test("posline emulate needs no file, and reads the usual one only when it is named", async () => {
  writeFileSync(join(folder.path, "default.json"), "no JSON");
  const { config, warnings, file } = await load();
  assert.equal(file, undefined);
  assert.deepEqual(Object.keys(config.services), ["fiscal", "bank", "qr"]);
  assert.deepEqual(
    Object.values(config.lines).map((line) => line.path),
    [emulatedPath],
  );
  assert.equal(config.services.fiscal?.merchantId, undefined);
  assert.deepEqual(warnings, []);
  assert.match((await problemsOf({}, { config: join(folder.path, "default.json") }))[0] ?? "", /^line 1, column 1: /);
});

test("posline emulate takes the device of a flag, and none of a file's", async () => {
  const file = join(folder.path, "bridge.json");
  const lines = { till: { path: "/dev/ttyS1", baudRate: 9600 }, bar: { path: "/dev/ttyS2" } };
  writeFileSync(file, JSON.stringify({ lines, services: { bank: { line: "till" }, qr: { line: "bar" } } }));
  const paths = async (...args: Parameters<typeof load>) =>
    Object.fromEntries(Object.entries((await load(...args)).config.lines).map(([name, line]) => [name, line.path]));
  assert.deepEqual(await paths({}, { config: file }), { till: emulatedPath, bar: emulatedPath });
  assert.deepEqual(await paths({}, { line: "/dev/pts/7" }), { emulated: "/dev/pts/7" });
  const picked = await load({ services: ["bank"] }, { config: file, line: "/dev/pts/7" });
  assert.equal(picked.config.lines["till"]?.path, "/dev/pts/7");
  assert.equal(picked.config.lines["till"]?.baudRate, 9600);
  assert.equal(picked.config.lines["bar"], undefined);
  assert.deepEqual(
    await problemsOf({ services: ["fiscal"] }, { config: file }),
    [
      "--service: the file has no service fiscal: add services.fiscal to it",
      "services: it is empty: name at least one of fiscal, bank and qr",
    ].slice(0, 1),
  );
});

test("posline emulate's flags go over the environment: admin port and the files of secrets", async () => {
  const key = join(folder.path, "key");
  writeFileSync(key, "KEY\n");
  const { config, origins } = await load(
    { adminPort: 0, apiKeyFile: key },
    { merchantIdFile: key },
    { POSLINE_ADMIN_PORT: "9" },
  );
  assert.deepEqual(config.admin, { ...adminDefaults, port: 0 });
  assert.equal(origins.get("admin.port"), "flag --admin-port");
  assert.equal(config.services.bank?.apiKey, "KEY");
  assert.equal(config.services.fiscal?.merchantId, "KEY");
  assert.equal((await load({}, {}, { POSLINE_ADMIN_PORT: "9" })).config.admin?.port, 9);
  assert.match((await problemsOf({ adminPort: 65_536 }))[0] ?? "", /^--admin-port: must be from 0 to 65535, not 65536/);
  assert.match(
    (await problemsOf({}, {}, { POSLINE_ADMIN_PORT: "x" }))[0] ?? "",
    /^POSLINE_ADMIN_PORT: must be a whole number, not the text "x"/,
  );
});

const greeted: Greeting = {
  title: "posline plays a terminal",
  listening: [
    { service: "fiscal", host: "127.0.0.1", port: 1 },
    { service: "bank", host: "::1", port: 2 },
  ],
  admin: { host: "127.0.0.1", port: 3, replace: () => {}, close: async () => {} },
  devices: ["/dev/pts/7"],
  services: {},
  anySign: true,
};

test("greeting() tells every place, and has commands for a sale, a declined one and the control API", () => {
  const text = greeting(greeted);
  for (const place of ["http://127.0.0.1:1\n", "http://[::1]:2\n", "http://127.0.0.1:3/emulator\n", "/dev/pts/7\n"]) {
    assert.ok(text.includes(place), place);
  }
  const curls = text.split("\n").filter((line) => line.startsWith("  curl "));
  assert.equal(curls.length, 4);
  assert.match(curls[0] ?? "", /"amount":1500/);
  assert.match(curls[1] ?? "", /"amount":1520/);
  assert.match(curls[2] ?? "", /&sign=/);
  for (const each of curls) assert.match(each, /^ {2}curl -s -w '\\n' /);
  assert.match(text, /\n\nThis makes the next sale by bank be declined, .*:\n\n {2}curl .*"declined".*\n\nStop it/);
  assert.match(text, /A sale is in progress until \/check says otherwise/);
  assert.doesNotMatch(greeting({ ...greeted, listening: [], admin: undefined }), /curl|Try/);
});

test("greeting() tells no secret: no sign of a real merchant's id, and no key", async () => {
  const key = join(folder.path, "key");
  writeFileSync(key, "GEHEIM\n");
  const signs = async (given: { readonly fiscal?: object; readonly bank?: object }, anySign: boolean) => {
    const file = join(folder.path, "secrets.json");
    const services = { fiscal: { line: "till", ...given.fiscal }, bank: { line: "till", ...given.bank } };
    writeFileSync(file, JSON.stringify({ lines: { till: { path: "/dev/ttyS1" } }, services }));
    const { config } = await load({}, { config: file });
    return greeting({ ...greeted, services: config.services, anySign });
  };
  assert.match(await signs({ fiscal: { merchantId: emulatedMerchantId } }, false), /&sign=/);
  assert.doesNotMatch(await signs({ fiscal: { merchantId: "GEHEIM" } }, false), /&sign=/);
  assert.match(await signs({ bank: { apiKey: "GEHEIM" } }, true), /-H 'X-API-Key: THE-KEY'/);
  const byFile = await signs({ bank: { apiKeyFile: key } }, true);
  assert.ok(byFile.includes(`-H "X-API-Key: $(cat '${key}')"`));
  assert.doesNotMatch(byFile, /GEHEIM/);
});

test("exitCodeOf() knows an error's own exit code, whichever copy of its class made it", () => {
  assert.equal(exitCodeOf(new ConfigError(["x"])), 78);
  assert.equal(exitCodeOf(Object.assign(new Error("x"), { exitCode: 70 })), 70);
  assert.equal(exitCodeOf(new Error("x")), undefined);
  assert.equal(exitCodeOf("x"), undefined);
});
