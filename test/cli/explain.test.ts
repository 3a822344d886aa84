import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runExplain } from "../../src/cli/explain.ts";
import { openOperations } from "../../src/operations/operations.ts";
import { bytes, callOf, routeTo, Told } from "../journal/records.ts";
import { evil, obeyed } from "../support/evil-text.ts";

/** `posline explain` over a journal and a log in real files. */

const root = mkdtempSync(join(tmpdir(), "posline-explain-"));
after(() => rmSync(root, { recursive: true }));

const folder = join(root, "journal");
const log = join(root, "posline.log");
mkdirSync(folder);

async function run(key: string | undefined, more: { readonly json?: boolean; readonly log?: string } = {}) {
  let out = "";
  let err = "";
  const io = {
    env: {},
    file: join(root, "absent.json"),
    out: (text: string) => (out += text),
    err: (text: string) => (err += text),
  };
  const code = await runExplain({ key, folder, log, ...more }, io);
  return { code, out, err };
}

test("posline explain tells what happened under a key, from journal and log, and exits with 75 until its end is proven", async () => {
  const journal = await openOperations({ folder, bytes, onFailure: "refuse", report: new Told() });
  const entry = journal.begin(callOf("pay-1"), routeTo());
  await entry.sent();
  const flight = await run("pay-1", { log: join(root, "none.log") });
  assert.match(flight.out, /^bank \/sale of 100 minor units, key pay-1\n {2}20\S+ \S+ {2}Request r-pay-1 was recorded/);
  assert.match(flight.out, /\n {2}Result: in flight\. No outcome is recorded yet\.\n {2}To do: Wait: /);
  assert.match(flight.out, /isn't shown, since the log can't be read: Cannot read \S+none\.log: there is no such file/);
  assert.doesNotMatch(flight.out, /The log has no answer/);
  assert.equal(flight.code, 75);
  writeFileSync(log, "");
  assert.match((await run("pay-1")).out, /\nThe log has no answer to request r-pay-1: .* was told nothing\./);
  await entry.ended({ outcome: "unknown" });
  const lines = [
    { requestId: "r-pay-1", key: "pay-1", outcome: "unknown", httpStatus: 504, message: `lost ${evil}` },
    { requestId: "other", key: "pay-2", outcome: "answered", httpStatus: 200 },
    { requestId: "late", key: "pay-3", outcome: "not-sent", httpStatus: 503, message: "Cannot send to line till" },
  ].map((each) =>
    JSON.stringify({
      level: "info",
      time: new Date().toISOString(),
      msg: "exchange",
      service: "bank",
      route: "/sale",
      ...each,
    }),
  );
  writeFileSync(log, `${lines.join("\n")}\n`);
  const unknown = await run("pay-1");
  assert.match(unknown.out, /The till was told that the outcome is unknown \(request r-pay-1, HTTP 504\): lost /);
  assert.match(unknown.out, /\n {2}Result: unknown\. No answer proves how it ended/);
  assert.doesNotMatch(unknown.out, obeyed);
  assert.ok(!unknown.out.includes("other"));
  const json = JSON.parse((await run("pay-1", { json: true })).out);
  assert.deepEqual([json.result, json.moments.length, json.key], ["unknown", 3, "pay-1"]);
  await journal.close();
});

test("posline explain says of a key that isn't there what that proves, and what it doesn't", async () => {
  const { code, out } = await run("pay-9");
  assert.equal(code, 75);
  assert.match(
    out,
    /^Nothing of pay-9 is in the journal, which begins at 20\S+ \S+: since then this box has sent nothing under this key/,
  );
  assert.match(out, /It doesn't prove that nothing was sent by another box/);
  assert.match(out, /\nTo do: Look for it at the terminal or in its report before anything is sent again/);
  const refused = await run("pay-3");
  assert.match(
    refused.out,
    /\n20\S+ \S+ {2}The till, which asked \/sale, was told that it was not sent \(request late, HTTP 503\)/,
  );
  assert.match(refused.out, /\nTo do: What was not sent may be sent again/);
  assert.equal(JSON.parse((await run("pay-3", { json: true })).out).notes.length, 4);
  const told = await run("pay-2");
  assert.match(told.out, /was given the terminal's answer: .*\nTo do: Look for it at the terminal/s);
  await assert.rejects(async () => run(undefined), /name the operation by its pay_id or documentExtID/);
});
