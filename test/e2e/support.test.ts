import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type ArchivedFile, readArchive } from "../../src/doctor/support-archive.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { ask, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { bundle, type PoslineOptions, PoslineProcess } from "../support/posline-process.ts";
import { secretsIn, seededSecrets } from "../support/secrets.ts";
import { probeReply, Terminal } from "../support/terminal.ts";
import { endAll } from "./emulating.ts";

/** Tests src/doctor/support.ts, src/doctor/support-archive.ts, src/cli/support.ts, src/lab/cli/replay.ts. */

const { card, key: payId, merchantId } = seededSecrets;
const apiKey = "API-KEY-seeded-4711";
const token = "ADMIN-TOKEN-seeded-0123456789abcdef";
/** What stands nowhere in an archive; an operation's key stands in log and status, and nowhere else. */
const secrets = [card, seededSecrets.sign, merchantId, apiKey, token];

const folder = scratchFolder();
const archive = join(folder.path, "support.tar.gz");
const environment: Record<string, string> = {};

/** A command of the bundle, to its end. */
async function run(
  args: readonly string[],
  options: PoslineOptions = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const command = new PoslineProcess(args, { ...options, env: { ...environment, ...options.env } });
  const code = await command.ended();
  return { code, out: command.stdout, err: command.stderr };
}

const fileOf = (files: readonly ArchivedFile[], name: string) => files.find((each) => each.name === name)?.text ?? "";

/** A bridge whose terminal answers with all that mustn't be seen, and once not at all. */
before(async () => {
  const link = join(folder.path, "tty");
  const tokenFile = join(folder.path, "token");
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const secretive = JSON.stringify({
    ...{ status: "success", code: 0, card_num: card, id: payId, merchant: merchantId },
    data: {
      message: `card ${card}`,
      sign: seededSecrets.sign,
      receipt: Buffer.from(`\n ${card} ${merchantId}`).toString("base64"),
    },
  });
  const terminal = new Terminal(link, async (asked, self) => {
    if (asked.text.includes("/refund")) await self.send(Buffer.from(`AT${card}\r\r\r\r\r\r`));
    else await self.reply(asked.framing, probeReply(asked) ?? secretive);
  });
  const config = {
    lines: { till: { path: link } },
    services: {
      fiscal: { line: "till", merchantId },
      bank: { line: "till", apiKey, replyTimeoutMs: { "/refund": 3_001 } },
      qr: { line: "till" },
    },
    admin: { tokenFile },
  };
  const file = join(folder.path, "posline.json");
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const bridge = await startedBridge(config, { env: { POSLINE_ADMIN_PORT: "0" } });
  try {
    const headers = { "x-api-key": apiKey };
    const body = JSON.stringify({ pay_id: payId, amount: 1, currency_name: "EUR", txn_config: { pan: card } });
    const data = Buffer.from(JSON.stringify({ documentExtID: payId, cardNumber: card })).toString("base64");
    assert.equal((await bridge.post("bank", "/sale", body, headers)).status, 200);
    await bridge.post("fiscal", "/sale", `data=${data}&sign=${signOf(data, merchantId)}`);
    assert.equal((await bridge.post("bank", "/refund", body, headers)).headers["x-posline-outcome"], "unknown");
    await bridge.state("till", "idle", bridge.log.length - 1);
    const port = await bridge.port("admin");
    assert.equal((await ask(port, "GET", "/recording", "")).status, 401, "the admin token applies");
    Object.assign(environment, { POSLINE_CONFIG: file, POSLINE_ADMIN_PORT: String(port) });
    writeFileSync(join(folder.path, "log"), bridge.stdout);
    const log = ["--log", join(folder.path, "log")];
    const listed = await run(["support", archive, "--list", ...log]);
    assert.equal(listed.code, 0, listed.err);
    assert.match(listed.out, /recording\.jsonl .*\n[\s\S]*Never in it:[\s\S]*Nothing was written/);
    assert.equal(existsSync(archive), false, "--list writes nothing");
    const written = await run(["support", archive, ...log]);
    assert.equal(written.code, 0, written.err);
    assert.deepEqual(secretsIn(listed.out + written.out, secrets), []);
    assert.equal((await run(["support", archive, ...log])).code, 69, "an archive that is there is not written over");
  } finally {
    await bridge.stop();
    terminal.unplug();
  }
});

after(async () => {
  folder.remove();
  await endAll();
});

test("posline support writes an archive for its owner alone, with a manifest of what is in it and what isn't", () => {
  assert.equal(statSync(archive).mode & 0o777, 0o600);
  const files = readArchive(readFileSync(archive));
  const manifest = JSON.parse(fileOf(files, "manifest.json"));
  const names = manifest.files.map(({ name }: ArchivedFile) => name);
  assert.deepEqual(
    names.filter((name: string) => name !== "metrics.txt"),
    ["recording.jsonl", "status.json", "readyz.json", "configuration.json", "doctor.json", "versions.json", "log.txt"],
  );
  assert.deepEqual(files.map(({ name }) => name).slice(1), names);
  const { config } = JSON.parse(fileOf(files, "configuration.json"));
  assert.deepEqual(
    [config.services.fiscal.merchantId, config.services.bank.apiKey, config.admin.token],
    ["****", "****", "****"],
  );
  assert.equal(JSON.parse(fileOf(files, "status.json")).lines.till.counters.unknown, 1);
  assert.ok(JSON.parse(fileOf(files, "doctor.json")).findings.length > 3);
  assert.equal(JSON.parse(fileOf(files, "versions.json")).node, process.version);
  assert.match(fileOf(files, "log.txt"), /\/refund/);
});

test("posline support packs no card number, sign, key or merchant's id, in plain, in Base64 or as hex", () => {
  const files = readArchive(readFileSync(archive));
  for (const { name, text } of files) assert.deepEqual(secretsIn(text, secrets), [], name);
  assert.deepEqual(secretsIn(fileOf(files, "recording.jsonl"), [payId]), [], "nor an operation's key in the recording");
  assert.match(fileOf(files, "log.txt"), new RegExp(payId), "which the log has, so that the search would find it");
});

test("posline support says nothing of a recording that it could not have, and leaves no broken archive on a full disk", async () => {
  const config = { env: { POSLINE_CONFIG: join(folder.path, "absent.json"), POSLINE_ADMIN_PORT: undefined } };
  const part = join(folder.path, "part.tar.gz");
  const written = await run(["support", part, "--log", join(folder.path, "log")], config);
  assert.equal(written.code, 0, written.err);
  assert.match(written.out, /Missing:\n {2}recording\.jsonl[\s\S]*\nWritten: .*part\.tar\.gz, which only you can read\n$/);
  const elsewhere = await run(["support", join(folder.path, "absent", "a.tar.gz")], config);
  assert.equal(elsewhere.code, 69);
  assert.match(elsewhere.err, /^Cannot write the archive .*: there is no such folder: name a file in one that there is\n$/);
  // A file of 1 KiB at most, as a disk that is almost full has it.
  const limited = ["-c", 'ulimit -f 1; exec "$@"', "bash", process.execPath, bundle, "support", `${part}-2`];
  const full = spawnSync("bash", [...limited, "--log", join(folder.path, "log")], { env: { ...process.env, ...config.env } });
  assert.equal(full.status, 69, String(full.stderr));
  assert.match(String(full.stderr), /^Cannot write the archive .*: EFBIG\n$/);
  assert.equal(existsSync(`${part}-2`), false);
});

test("posline replay shows what came and what was decided, and that the engine still decides so", async () => {
  const { code, out, err } = await run(["replay", archive]);
  assert.equal(code, 0, out + err);
  assert.match(out, /call 1 comes: bank \/sale/);
  assert.match(out, /-> send call 1 to bank/);
  assert.match(out, /-> answer call 1: success, code 0/);
  assert.match(out, /-> end call 3: unknown, reply-corrupt|-> end call 3: unknown, no-reply/);
  assert.match(out, /\n\d+ events: the same decisions\n$/);
  assert.deepEqual(secretsIn(out, [...secrets, payId]), []);
});

test("posline replay ends with 1 at the first decision that is another", async () => {
  const recording = fileOf(readArchive(readFileSync(archive)), "recording.jsonl");
  const changed = join(folder.path, "changed.jsonl");
  writeFileSync(
    changed,
    recording.replace('"do":"answer","call":1,"status":"success"', '"do":"answer","call":1,"status":"error"'),
  );
  const { code, out } = await run(["replay", changed]);
  assert.equal(code, 1, out);
  assert.match(
    out,
    /DIFFERENT: it decides otherwise than it did then\n.*then: answer call 1: error, code 0\n.*now: {2}answer call 1: success/,
  );
  assert.match(out, /then the engine decides otherwise\n$/);
  for (const [text, why] of [
    ["", /it is empty/],
    ["{}\n", /line 1: /],
    [recording.replace('"recording":1', '"recording":9'), /form 9, and this posline reads 1/],
    [`${recording}{"at":"tick"}\n`, /it is not an event/],
  ] as const) {
    writeFileSync(changed, text);
    const refused = await run(["replay", changed]);
    assert.equal(refused.code, 69, refused.out);
    assert.match(refused.err, why);
  }
});

test("scripts/replay-test.ts writes a test that fails where the incident went wrong, and passes once its last line is right", async (t) => {
  const made = join(import.meta.dirname, "../capture/made-by-replay.test.ts");
  const script = join(import.meta.dirname, "../../scripts/replay-test.ts");
  const written = spawnSync(process.execPath, ["--import", "tsx", script, archive, made], { encoding: "utf8" });
  t.after(() => rmSync(made, { force: true }));
  assert.equal(written.status, 0, written.stderr);
  const failing = tested(made);
  assert.match(failing, /CHANGE THIS/);
  assert.match(failing, /# fail 1/);
  const source = readFileSync(made, "utf8");
  const was = /\/\/ It was: (.*)/.exec(source)?.[1] ?? "";
  assert.match(was, /"outcome":"unknown"/);
  writeFileSync(made, source.replace('[{"do":"CHANGE THIS to what should have been decided"}]', was));
  assert.match(tested(made), /# pass 1/);
});

/** What node says of a test file. */
function tested(file: string): string {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return spawnSync(process.execPath, ["--import", "tsx", "--test", "--test-reporter=tap", file], { encoding: "utf8", env })
    .stdout;
}
