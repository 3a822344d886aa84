import assert from "node:assert/strict";
import { test } from "node:test";
import { emulatedPath } from "../../src/config/config.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { fileOf, load, plain, problemsOf, two } from "./loading.ts";

test("loadConfig() overrides the path of the only line by --line, and refuses it for several", async () => {
  const { config, origins } = await load(plain, {}, { line: "/dev/ttyS7" });
  assert.equal(config.lines["till"]?.path, "/dev/ttyS7");
  assert.equal(config.lines["till"]?.baudRate, 9_600);
  assert.equal(origins.get("lines.till.path"), "flag --line");
  assert.deepEqual(await problemsOf(two, {}, { line: "/dev/ttyS7" }), [
    "--line: the file has several lines (till, bar): set path of each line in the file",
  ]);
  assert.deepEqual(await problemsOf(two, {}, { baud: 9_600 }), [
    "--baud: the file has several lines (till, bar): set baudRate of each line in the file",
  ]);
});

test("loadConfig() emulates one line without a file, and every line of a file in place of its device", async () => {
  const alone = await load(undefined, {}, { emulated: true });
  assert.equal(alone.emulated, true);
  assert.equal(alone.config.lines["emulated"]?.path, emulatedPath);
  assert.equal(alone.config.services.fiscal?.merchantId, "MERCHANT-1");
  assert.equal(alone.origins.get("services.fiscal.merchantId"), "flag --emulated");
  const all = await load(two, {}, { emulated: true });
  assertMapped(Object.values(all.config.lines), [emulatedPath, emulatedPath], (line) => line.path);
  assert.equal((await load(plain, {}, { emulated: true })).config.services.fiscal?.merchantId, "M");
});

test("loadConfig() emulates by the flag alone: no file and no --line may name the emulated path", async () => {
  assert.match((await problemsOf({ ...plain, lines: { till: { path: emulatedPath } } }))[0] ?? "", /^lines\.till\.path: /);
  assert.match((await problemsOf(plain, {}, { line: emulatedPath }))[0] ?? "", /^--line: /);
  assert.deepEqual(await problemsOf(plain, {}, { line: "/dev/x", emulated: true }), [
    "--line: cannot be used with --emulated, which replaces every device: use only one of them",
  ]);
});

test("loadConfig() takes each variable, and port 0 from the environment alone", async () => {
  const { config } = await load(
    { ...plain, services: { ...plain.services, qr: { line: "till" } } },
    {
      POSLINE_FISCAL_PORT: "0",
      POSLINE_BANK_PORT: "0",
      POSLINE_QR_PORT: "7",
      POSLINE_ADMIN_PORT: "0",
      POSLINE_HOST: "::1",
      PATH: "/bin",
    },
  );
  assert.equal(config.admin?.port, 0);
  assertMapped(
    Object.values(config.services),
    [
      ["::1", 0],
      ["::1", 0],
      ["::1", 7],
    ],
    ({ host, port }) => [host, port],
  );
  assert.match((await problemsOf({ ...plain, admin: { port: 0 } }))[0] ?? "", /^admin\.port: must be from 1 to 65535, not 0/);
});

const openAdmin = (host: string) =>
  `admin.host: the network reaches ${host}, and there the admin port needs a token, since anyone who can reach it could read the ` +
  "status: put one into a file (openssl rand -hex 24), and set admin.tokenFile to the file; or set " +
  "admin.host to 127.0.0.1";

test("loadConfig() takes the admin port's address and token from the file, and refuses an open address without a token", async () => {
  const file = fileOf("GEHEIM-0123456789\n");
  const { config, origins } = await load({ ...plain, admin: { host: "0.0.0.0", tokenFile: file } });
  const { host, port, token, tokenFile } = config.admin ?? {};
  assert.deepEqual([host, port, token, tokenFile], ["0.0.0.0", 8880, "GEHEIM-0123456789", file]);
  assert.equal(origins.get("admin.token"), `file ${file}`);
  for (const more of [{}, { emulated: true }]) {
    for (const open of ["0.0.0.0", "::", "box.lan"])
      assert.deepEqual(await problemsOf({ ...plain, admin: { host: open } }, {}, more), [openAdmin(open)]);
  }
  for (const own of ["127.0.0.1", "localhost", "::1"])
    assert.deepEqual(await problemsOf({ ...plain, admin: { host: own } }), []);
  assert.match((await problemsOf({ ...plain, admin: { host: "" } }))[0] ?? "", /^admin\.host: must not be empty/);
});

test("loadConfig() refuses a token that can be guessed, or whose file is not there, and never shows it", async () => {
  for (const text of ["GEHEIM", "GEHEIM with spaces in it", ""]) {
    const [problem = "", ...others] = await problemsOf({ ...plain, admin: { host: "0.0.0.0", tokenFile: fileOf(text) } });
    assert.match(problem, /^admin\.tokenFile \(.*\): .*: it must be 16 to 256 characters of ASCII .*openssl rand -hex 24/);
    assert.doesNotMatch(problem, /GEHEIM/);
    assert.deepEqual(others, []);
  }
  const [missing] = await problemsOf({ ...plain, admin: { tokenFile: "/absent/token" } });
  assert.match(missing ?? "", /^admin\.tokenFile: cannot read \/absent\/token: there is no such file/);
});

test("loadConfig() refuses an origin of the admin port that no browser sends", async () => {
  const [problem] = await problemsOf({ ...plain, admin: { allowOrigins: ["https://wall.example:443"] } });
  assert.match(problem ?? "", /^admin\.allowOrigins\[0\]: browsers never send .*: write https:\/\/wall\.example$/);
});

test("loadConfig() refuses unknown, useless and unusable variables by their names", async () => {
  assert.deepEqual(await problemsOf(plain, { POSLINE_BANKPORT: "9600" }), [
    "POSLINE_BANKPORT: unknown environment variable: did you mean POSLINE_BANK_PORT?",
  ]);
  assert.deepEqual(await problemsOf(plain, { POSLINE_QR_PORT: "1" }), [
    "POSLINE_QR_PORT: the file has no service qr: add services.qr to it, or remove POSLINE_QR_PORT",
  ]);
  assert.match(
    (await problemsOf(plain, { POSLINE_BANK_PORT: "fast" }))[0] ?? "",
    /^POSLINE_BANK_PORT: must be a whole number, not the text "fast"/,
  );
  assert.match((await problemsOf(plain, { POSLINE_HOST: "" }))[0] ?? "", /^POSLINE_HOST: must not be empty/);
  assert.match((await problemsOf(plain, {}, { baud: Number.NaN }))[0] ?? "", /^--baud: must be a whole number, not NaN/);
});

test("loadConfig() keeps the journal in the folder that is set, else in systemd's first state folder, else nowhere", async () => {
  const of = async (content: object, env = {}) => {
    const { config, origins } = await load({ ...plain, ...content }, env);
    return [config.journal === false ? false : config.journal.folder, origins.get("journal.folder") ?? origins.get("journal")];
  };
  assert.deepEqual(await of({}), [undefined, "default"]);
  const env = { STATE_DIRECTORY: "/var/lib/posline:/var/lib/other" };
  assert.deepEqual(await of({}, env), ["/var/lib/posline", "environment STATE_DIRECTORY"]);
  const [folder, origin] = await of({ journal: { folder: "/data" } }, env);
  assert.equal(folder, "/data");
  assert.match(String(origin), /^file /);
  assert.equal((await of({ journal: false }, env))[0], false);
});

test("loadConfig() keeps the journal of an emulated terminal apart, if at all, and refuses a folder that is no whole path", async () => {
  const env = { STATE_DIRECTORY: "/var/lib/posline" };
  const { config, origins } = await load(plain, env, { emulated: true });
  assert.equal(config.journal, false);
  assert.equal(origins.get("journal"), "flag --emulated");
  assert.equal((await load(plain, env, { emulate: {} })).config.journal, false);
  const play = { emulated: true, playFolder: "/tmp/play" };
  const { journal } = (await load({ ...plain, journal: { folder: "/data", onFailure: "refuse" } }, env, play)).config;
  assert.deepEqual(
    journal && [journal.folder, journal.onFailure],
    ["/tmp/play", "refuse"],
    "play money has a folder of its own",
  );
  assert.equal((await load({ ...plain, journal: false }, env, play)).config.journal, false);
  assert.match(
    (await problemsOf({ ...plain, journal: { folder: "journal" } }))[0] ?? "",
    /^journal\.folder: "journal" is not valid/,
  );
  assert.match((await problemsOf({ ...plain, journal: true }))[0] ?? "", /^journal: must be false, not true/);
});
