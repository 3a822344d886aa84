import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "../../src/config/config.ts";
import { type Flags, type Loaded, loadConfig } from "../../src/config/load.ts";
import { fileOf, folder, plain } from "./loading.ts";

let count = 0;

/** Writes a configuration with drop-ins by name; without a main file there are drop-ins alone. */
function filesOf(main: unknown, dropIns: Readonly<Record<string, unknown>>) {
  const file = main === undefined ? join(folder, `none-${count++}.json`) : fileOf(main);
  const own = file.replace(/json$/, "d");
  mkdirSync(own);
  for (const [name, content] of Object.entries(dropIns)) {
    writeFileSync(join(own, name), typeof content === "string" ? content : JSON.stringify(content));
  }
  return { file, folder: own, at: (name: string) => join(own, name) };
}

const load = (file: string, env: NodeJS.ProcessEnv = {}, flags: Flags = {}): Promise<Loaded> =>
  loadConfig({ env, flags: { config: file, ...flags } });

const refusal = (message: string | RegExp) => (error: unknown) => {
  assert.ok(error instanceof ConfigError, String(error));
  assert.equal(error.exitCode, 78);
  if (typeof message === "string") assert.equal(error.message, message);
  else assert.match(error.message, message);
  return true;
};

test("loadConfig() lays drop-ins over the file by order of name, and environment and flags over both; each value has its file", async () => {
  const { file, at } = filesOf(plain, {
    "b.json": { lines: { till: { baudRate: 4_800, pauseMs: 7 } }, services: { qr: { line: "till" } } },
    "a.json": { lines: { till: { baudRate: 2_400, crc16: "umts" } }, log: { level: "warn" } },
    "c.json.new": "{",
    ".d.json": "{",
  });
  const { config, origins } = await load(file, { POSLINE_QR_PORT: "9" });
  const { till } = config.lines;
  assert.deepEqual([till?.path, till?.baudRate, till?.pauseMs, till?.crc16], ["/dev/ttyUSB0", 4_800, 7, "umts"]);
  assert.deepEqual(Object.keys(config.services), ["fiscal", "bank", "qr"]);
  for (const [setting, origin] of [
    ["lines.till.path", `file ${file}`],
    ["lines.till.baudRate", `file ${at("b.json")}`],
    ["lines.till.crc16", `file ${at("a.json")}`],
    ["log.level", `file ${at("a.json")}`],
    ["services.qr.line", `file ${at("b.json")}`],
    ["services.qr.port", "environment POSLINE_QR_PORT"],
  ] as const)
    assert.equal(origins.get(setting), origin, setting);
  assert.equal((await load(file, {}, { baud: 9_600 })).config.lines["till"]?.baudRate, 9_600);
});

test("loadConfig() lets a drop-in take a setting away by null, and replace a list, and a time-out of one route alone", async () => {
  const services = {
    fiscal: { line: "till", allowOrigins: ["https://a.example", "https://b.example"] },
    bank: { line: "till", replyTimeoutMs: { "/sale": 50_000, "/refund": 40_000 } },
    qr: { line: "till" },
  };
  const { file, at } = filesOf(
    { ...plain, services },
    {
      "a.json": {
        services: { qr: null, fiscal: { allowOrigins: ["https://c.example"] }, bank: { replyTimeoutMs: { "/sale": 60_000 } } },
      },
    },
  );
  const { config, origins } = await load(file);
  assert.deepEqual(Object.keys(config.services), ["fiscal", "bank"]);
  assert.deepEqual(config.services.fiscal?.allowOrigins, ["https://c.example"]);
  const { replyTimeoutMs } = config.services.bank ?? {};
  assert.deepEqual([replyTimeoutMs?.["/sale"], replyTimeoutMs?.["/refund"]], [60_000, 40_000]);
  assert.equal(origins.get("services.bank.replyTimeoutMs./sale"), `file ${at("a.json")}`);
  assert.equal(origins.get("services.bank.replyTimeoutMs./refund"), `file ${file}`);
});

test("loadConfig() still refuses a null in the file itself: a key that is empty by mistake must not open a service", async () => {
  const { file } = filesOf({ ...plain, services: { bank: { line: "till", apiKey: null } } }, { "a.json": {} });
  await assert.rejects(load(file), refusal(/services\.bank\.apiKey: must be a text, not null$/));
});

test("loadConfig() names the drop-in of a problem: of damaged JSON its line, of a setting its path", async () => {
  const damaged = filesOf(plain, { "a.json": '{\n  "log": {},\n}' });
  await assert.rejects(
    load(damaged.file),
    refusal(
      `Cannot use the configuration of ${damaged.at("a.json")}: line 2, column 12: a comma after the last entry: take it out`,
    ),
  );
  const list = filesOf(plain, { "a.json": "[]" });
  await assert.rejects(
    load(list.file),
    refusal(`Cannot use the configuration of ${list.at("a.json")}: it must be a JSON object`),
  );
  const { file, at } = filesOf(
    { ...plain, log: { level: "loud" } },
    { "a.json": { lines: { till: { boud: 1 } } }, "b.json": '{"admin":{"port":1},"admin":{"port":2}}' },
  );
  await assert.rejects(load(file), (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    const problems = error.problems.toSorted();
    assert.match(problems[0] ?? "", /^admin: set twice, on line 1 and on line 1: keep only one \(in .*b\.json\)$/);
    assert.match(problems[1] ?? "", new RegExp(`^lines\\.till\\.boud: unknown key: .* \\(in ${at("a.json")}\\)$`));
    assert.match(problems[2] ?? "", /^log\.level: .*[^)]$/);
    return problems.length === 3;
  });
});

test("loadConfig() refuses a folder of drop-ins that can't be read, one that is a file, and a link to nothing in it", async () => {
  const { file, folder: own, at } = filesOf(plain, {});
  symlinkSync("/srv/gone.json", at("a.json"));
  await assert.rejects(load(file), refusal(/a\.json: there is no such file/));
  if (process.geteuid?.() !== 0) {
    chmodSync(own, 0o000);
    await assert.rejects(load(file), refusal(/\.d: permission denied: let posline's user read the folder: sudo chmod 755 /));
    chmodSync(own, 0o755);
  }
  const other = fileOf(plain);
  writeFileSync(other.replace(/json$/, "d"), "");
  await assert.rejects(load(other), refusal(/\.d: it is not a folder: move it away$/));
});

test("loadConfig() takes drop-ins without a file, and warns that they are all there is", async () => {
  const { file, at } = filesOf(undefined, { "a.json": plain });
  const { config, origins, warnings } = await load(file);
  assert.equal(origins.get("lines.till.path"), `file ${at("a.json")}`);
  assert.equal(config.lines["till"]?.baudRate, 9_600);
  assert.ok(warnings.includes(`there is no file ${file}: its drop-ins are all there is`), warnings.join("\n"));
});

test("loadConfig() warns of a drop-in with a secret that every user can read, by the setting's own name", async () => {
  const { file, at } = filesOf(plain, { "a.json": { services: { bank: { apiKey: "K-0123456789" } } } });
  chmodSync(folder, 0o755);
  chmodSync(at("a.json"), 0o644);
  const told = (await load(file)).warnings.filter((each) => each.includes("every user"));
  assert.match(
    told.join("\n"),
    new RegExp(`^services\\.bank\\.apiKey: every user of this box can read ${at("a.json")}: `, "m"),
  );
  chmodSync(at("a.json"), 0o640);
  assert.doesNotMatch((await load(file)).warnings.join("\n"), /a\.json/);
});
