import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type ConfigArguments, configCommand, runConfig } from "../../src/cli/config.ts";
import { UsageError } from "../../src/core/exit.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { evil, obeyed } from "../support/evil-text.ts";

const stateFolder = "/var/lib/posline";
const folder = mkdtempSync(join(tmpdir(), "posline-cli-config-"));
after(() => rmSync(folder, { recursive: true }));
const file = join(folder, "posline.json");
writeFileSync(
  file,
  JSON.stringify({
    lines: { till: { path: "/dev/ttyUSB0" } },
    services: {
      fiscal: { line: "till", merchantId: "GEHEIM-M", replyTimeoutMs: { "/get_info": 9_000 } },
      bank: { line: "till", apiKey: "GEHEIM-K", allowOrigins: ["https://a.shop", "https://b.shop"] },
    },
  }),
);

const tokenFile = join(folder, "admin-token");
writeFileSync(tokenFile, "GEHEIM-T-0123456789\n", { mode: 0o600 });

async function run(args: ConfigArguments, env: NodeJS.ProcessEnv = {}): Promise<{ code: number; out: string; err: string }> {
  let out = "";
  let err = "";
  const code = await runConfig(args, {
    env: { STATE_DIRECTORY: stateFolder, ...env },
    file: join(folder, "absent"),
    out: (text) => (out += text),
    err: (text) => (err += text),
  });
  return { code, out, err };
}

test("posline config shows every value with where it came from, aligned", async () => {
  const { code, out, err } = await run({ config: file, baud: 9_600 }, { POSLINE_BANK_PORT: "9999" });
  assert.equal(code, 0);
  assert.equal(err, "");
  const row = (path: string) => out.split("\n").find((line) => line.startsWith(`${path} `)) ?? "";
  assert.match(row("lines.till.path"), new RegExp(`^lines\\.till\\.path +/dev/ttyUSB0 +file ${file}$`));
  assert.match(row("lines.till.baudRate"), / 9600 +flag --baud$/);
  assert.match(row("lines.till.parity"), / none +default$/);
  assert.match(row("services.bank.port"), / 9999 +environment POSLINE_BANK_PORT$/);
  assert.match(row("services.bank.allowOrigins"), / https:\/\/a\.shop, https:\/\/b\.shop +file /);
  const columnOf = (pattern: RegExp) =>
    new Set(
      out
        .trimEnd()
        .split("\n")
        .map((line) => pattern.exec(line)?.index),
    );
  assert.equal(columnOf(/(?<=^\S+ +)\S/).size, 1);
  assert.equal(columnOf(/(?<= )(?:default|file|flag|environment)(?: \S+)?$/).size, 1);
});

test("posline config shows the journal's settings, or that there is none", async () => {
  const row = (out: string, path: string) => out.split("\n").find((line) => line.startsWith(`${path} `)) ?? "";
  const { out } = await run({ config: file });
  assert.match(row(out, "journal.folder"), / \/var\/lib\/posline +environment STATE_DIRECTORY$/);
  assert.match(row(out, "journal.onFailure"), / relay +default$/);
  const bare = JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), journal: false });
  const unkept = `${file}.unkept`;
  writeFileSync(unkept, bare);
  const off = await run({ config: unkept });
  assert.match(row(off.out, "journal"), / false +file .*unkept$/);
  const none = await run({ config: file }, { STATE_DIRECTORY: undefined });
  assert.match(row(none.out, "journal.folder"), / none +default$/);
  assert.match(none.out, /\nwarning: journal\.folder: not set/);
});

test("posline config shows what most routes have in one row, and the others by route", async () => {
  const { out } = await run({ config: file });
  const rows = out.split("\n").filter((line) => line.startsWith("services.fiscal.replyTimeoutMs"));
  const cells = rows.map((row) => row.replace("services.fiscal.replyTimeoutMs", "").trim().split(/ +/));
  assert.deepEqual(cells[0], ["60000", "default"]);
  assert.deepEqual(cells.slice(1).sort(), [
    ["./close_shift", "180000", "default"],
    ["./dates_report", "180000", "default"],
    ["./get_info", "9000", "file", file],
    ["./refund", "180000", "default"],
    ["./sale", "180000", "default"],
    ["./x_report", "180000", "default"],
  ]);
});

test("posline config masks every secret, as text and as JSON, from the file and files of their own", async () => {
  const { services, ...rest } = JSON.parse(readFileSync(file, "utf8"));
  const secret = `${file}.secret`;
  const bank = { ...services.bank, apiKey: "GEHEIM-E" };
  writeFileSync(secret, JSON.stringify({ ...rest, services: { ...services, bank }, admin: { tokenFile } }));
  for (const json of [false, true]) {
    const { out } = await run({ config: secret, json });
    assert.doesNotMatch(out, /GEHEIM/);
    assert.equal(out.match(/\*{4}/g)?.length, 3);
  }
});

test("posline config --json prints values, origins and warnings as one object", async () => {
  const { code, out } = await run({ config: file, json: true }, { POSLINE_HOST: "0.0.0.0" });
  assert.equal(code, 0);
  const shown = JSON.parse(out);
  assert.equal(shown.file, file);
  assert.equal(shown.config.services.bank.host, "0.0.0.0");
  assert.equal(shown.config.services.fiscal.merchantId, "****");
  assert.equal(shown.origins["services.bank.host"], "environment POSLINE_HOST");
  assertMapped(shown.warnings, ["services.fiscal.host", "services.bank.host"], (warning: string) => warning.split(":")[0]);
});

test("posline config shows warnings after the table", async () => {
  const { out } = await run({ config: file }, { POSLINE_HOST: "0.0.0.0" });
  assert.match(out, /\n\nwarning: services\.fiscal\.host: /);
});

test("posline config --schema prints the JSON Schema, and needs no configuration for it", async () => {
  const { code, out } = await run({ schema: true, config: "/absent" });
  assert.equal(code, 0);
  const schema = JSON.parse(out);
  assert.equal(schema.$schema, "https://json-schema.org/draft/2020-12/schema");
  assert.equal(schema.additionalProperties, false);
});

test("posline config exits with 78 and tells the problems on standard error alone", async () => {
  const { code, out, err } = await run({}, { POSLINE_BAUDRATE: "1" });
  assert.equal(code, 78);
  assert.equal(out, "");
  assert.match(err, /^Cannot use the configuration: 2 problems\n {2}POSLINE_BAUDRATE: .*\n {2}there is no file .*\n$/);
});

test("configCommand refuses --line together with --emulated, and unknown flags, as usage", async () => {
  for (const words of ["--line /dev/x --emulated", "--lin /dev/x"]) {
    await assert.rejects(configCommand.run(words.split(" ")), UsageError, words);
  }
});

test("posline config lets nothing of a file reach the terminal that commands it: as a table, as JSON, as a problem", async () => {
  // The file itself refuses C0 and DEL in a path.
  const written = evil.replaceAll("\u001b", "").replaceAll("\u007f", "");
  const odd = join(folder, `${written}.json`);
  const line = { path: `/dev/${written}`, dataBits: 7 };
  writeFileSync(odd, JSON.stringify({ lines: { till: line }, services: { bank: { line: "till" } } }));
  for (const json of [false, true]) {
    const { code, out } = await run({ config: odd, json });
    assert.equal(code, 0);
    assert.match(out, /é/);
    assert.doesNotMatch(out, obeyed);
    if (json) assert.equal(JSON.parse(out).config.lines.till.path, line.path);
  }
  writeFileSync(
    odd,
    JSON.stringify({ lines: { till: line, [written]: line }, services: { bank: { line: written, [evil]: 1 } } }),
  );
  const { code, err } = await run({ config: odd });
  assert.equal(code, 78);
  assert.match(err, /é/);
  assert.ok(err.split("\n").length > 2, "each problem on its own line");
  assert.doesNotMatch(err, obeyed);
});
