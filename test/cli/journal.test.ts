import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type JournalArguments, runJournal } from "../../src/cli/journal.ts";
import { type AskAdmin, askAdmin } from "../../src/cli/journal-settle.ts";
import { adminDefaults } from "../../src/config/limits.ts";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { type Operations, openOperations } from "../../src/operations/operations.ts";
import { bytes, callOf, routeTo, Told } from "../journal/records.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { evil, obeyed } from "../support/evil-text.ts";

/** `posline journal` over a journal in a real file, while it is written and afterwards. */

const root = mkdtempSync(join(tmpdir(), "posline-journal-"));
after(() => rmSync(root, { recursive: true }));
let count = 0;

async function journalIn(folder = join(root, String(count++))): Promise<{ folder: string; journal: Operations; told: Told }> {
  mkdirSync(folder, { recursive: true });
  const told = new Told();
  return { folder, journal: await openOperations({ folder, bytes, onFailure: "refuse", report: told }), told };
}

async function record(journal: Operations, key: string, outcome?: "answered" | "unknown" | "not-sent"): Promise<void> {
  const entry = journal.begin(callOf(key), routeTo());
  await entry.sent();
  if (outcome !== undefined) await entry.ended({ outcome, ...(outcome === "answered" ? { status: "success", code: 0 } : {}) });
}

async function run(
  args: JournalArguments,
  env = {},
  again: () => Promise<boolean> = async () => false,
  ask: AskAdmin = async () => undefined,
) {
  let out = "";
  let err = "";
  const code = await runJournal(args, {
    env,
    file: join(root, "absent.json"),
    out: (text) => (out += text),
    err: (text) => (err += text),
    again,
    ask,
  });
  return { code, out, err };
}

test("posline journal shows a row an operation in local time, aligned, and a summary", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "pay-1", "answered");
  await record(journal, "pay-2", "unknown");
  await record(journal, "pay-3", "not-sent");
  await record(journal, "pay-4");
  const { code, out, err } = await run({ folder });
  assert.deepEqual([code, err], [0, ""]);
  const [head, first, second, third, fourth, summary, advice] = out.split("\n");
  assert.match(head ?? "", /^TIME +SERVICE +ROUTE +KEY +TRANS +AMOUNT +OUTCOME +CODE +REQUEST$/);
  const now = new Date();
  const today = `${now.getFullYear()}-${String(now.getMonth() + 1).padStart(2, "0")}-`;
  assert.match(
    first ?? "",
    new RegExp(`^${today}\\d\\d \\d\\d:\\d\\d:\\d\\d  bank +/sale +pay-1 +- +100  answered +0 +r-pay-1$`),
  );
  assert.match(second ?? "", / pay-2 +- +100 {2}unknown +- +r-pay-2$/);
  assert.match(third ?? "", / pay-3 +- +100 {2}not-sent +- /);
  assert.match(fourth ?? "", / pay-4 +- +100 {2}in flight +- /);
  assert.equal(summary, "4 operations: 1 answered, 1 unknown, 1 not-sent, 1 in flight");
  assert.match(advice ?? "", /^unknown: it may have been carried out/);
  await journal.close();
  assert.match((await run({ folder })).out, / pay-4 +- +100 {2}unknown /, "nobody keeps it any more");
  const { journal: next } = await journalIn(folder);
  assert.match((await run({ folder })).out, / pay-4 +- +100 {2}unknown /, "it was sent before the start");
  await next.close();
});

test("posline journal shows the trans that the answer to a payment gave, a row for each time that its code was shown", async () => {
  const { folder, journal } = await journalIn();
  const show = routeOf(contracts.qr, "/showqrcode");
  assert.ok(show);
  const body = '{"pay_id":"Q-1","amount":100,"pay_system":"P"}';
  const call = { ...callOf("Q-1", { service: "qr", body }), route: "/showqrcode" };
  for (const reply of [
    '{"status":"success","data":{"trans":"T-1"}}',
    '{"status":"success","data":{"trans":"T-2"}}',
    undefined,
  ]) {
    const entry = journal.begin(call, show);
    await entry.sent();
    if (reply === undefined) await entry.ended({ outcome: "unknown" });
    else await entry.ended({ outcome: "answered", status: "success", payload: [Buffer.from(reply)] });
  }
  const [, ...rows] = (await run({ folder })).out.split("\n");
  for (const [at, trans] of ["T-1", "T-2", "-"].entries())
    assert.match(rows[at] ?? "", new RegExp(` qr +/showqrcode +Q-1 +${trans} +100 `));
  const shown = (await run({ folder, json: true })).out.trim().split("\n");
  assertMapped(shown, ["T-1", "T-2", undefined], (row) => JSON.parse(row).trans);
  await journal.close();
});

for (const [name, key, stored] of [
  ["a card number", "4111111111111111", "411111******1111"],
  ["a card number within", "order 4111111111111111 a", "order 411111******1111 a"],
  ["too many characters", "K".repeat(70), `${"K".repeat(63)}…`],
  ["a card number at the cut", `${"K".repeat(49)}-4111111111111111`, `${"K".repeat(49)}-411111******1…`],
  ["a control character", "pay\t1", "pay\uFFFD1"],
] as const) {
  test(`posline journal --key finds a key with ${name} by what was sent and by what is shown`, async () => {
    const { folder, journal } = await journalIn();
    await record(journal, key, "answered");
    await record(journal, "another", "answered");
    for (const asked of [key, stored]) {
      const { out } = await run({ folder, json: true, key: asked });
      assertMapped(out.trim().split("\n"), [stored], (row) => JSON.parse(row).key);
    }
    const { out } = await run({ folder, key });
    assert.match(out, /\n1 operation of /);
    assert.ok(!/4111111111111111|K{70}/.test(out), "the summary names it as it is stored");
    await journal.close();
  });
}

test("posline journal --key --follow shows an operation whose key is stored masked", async () => {
  const { folder, journal } = await journalIn();
  const key = "4111111111111111";
  let rounds = 0;
  const again = async () => {
    if (rounds++ === 0) await record(journal, key, "answered");
    return rounds < 3;
  };
  const { out } = await run({ folder, json: true, key, follow: true }, {}, again);
  assert.equal(JSON.parse(out.trim()).key, "411111******1111");
  await journal.close();
});

test("posline journal says whose caller had left before the outcome", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "pay-1", "answered");
  const entry = journal.begin(callOf("pay-2"), routeTo());
  await entry.sent();
  await entry.ended({ outcome: "answered", status: "success", code: 0, left: true });
  const { out } = await run({ folder });
  assert.match(out, / pay-1 +- +100 {2}answered {8}0 /);
  assert.match(out, / pay-2 +- +100 {2}answered, left {2}0 /);
  assert.match(out, /\n2 operations: 2 answered\nleft: the caller had gone before the outcome, and may not know it\n$/);
  const rows = (await run({ folder, json: true })).out.trimEnd().split("\n");
  assertMapped(rows, [false, true], (row) => JSON.parse(row).left);
  await journal.close();
});

test("posline journal --follow goes on in the file that comes in the place of another", async () => {
  const { folder, journal } = await journalIn();
  for (let n = 0; n < 10; n++) await record(journal, `old-${n}`, "answered");
  const next: { journal?: Operations } = {};
  const steps = [
    () => record(journal, "last", "answered"),
    async () => {
      await journal.close();
      rmSync(journalFile(folder));
      next.journal = (await journalIn(folder)).journal;
      await record(next.journal, "first", "answered");
    },
  ];
  const { out } = await run({ folder, follow: true, json: true }, {}, async () => {
    const step = steps.shift();
    await step?.();
    return step !== undefined;
  });
  const keys = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).key);
  assert.deepEqual(keys.slice(10), ["last", "first"]);
  await next.journal?.close();
});

test("posline journal --unknown and --key choose, --unknown exits with 75 when there is any, --json prints NDJSON", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "pay-1", "answered");
  assert.equal((await run({ folder, unknown: true })).code, 0);
  await record(journal, "pay-2", "unknown");
  const found = await run({ folder, unknown: true, json: true });
  assert.equal(found.code, 75);
  const [shown, ...others] = found.out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(others, []);
  assert.deepEqual([shown.key, shown.outcome, shown.lost, shown.amount], ["pay-2", "unknown", false, "100"]);
  const one = await run({ folder, key: "pay-1" });
  assert.match(one.out, /\n1 operation of pay-1: 1 answered\n$/);
  assert.equal((await run({ folder, key: "absent" })).out, "0 operations of absent\n");
  await journal.close();
});

test("posline journal --follow shows what is sent and what ends from then on, round the ring", async () => {
  const { folder, journal } = await journalIn();
  for (let n = 0; n < 60; n++) await record(journal, `old-${n}`, "answered");
  const steps = [
    async () => {},
    () => record(journal, "new-1"),
    () => record(journal, "new-2", "unknown"),
    async () => {
      for (let n = 0; n < 10; n++) await record(journal, `round-${n}`, "answered");
    },
  ];
  const { code, out } = await run({ folder, follow: true, json: true }, {}, async () => {
    const step = steps.shift();
    await step?.();
    return step !== undefined;
  });
  assert.equal(code, 0);
  const shown = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const news = shown.slice(60).map(({ key, outcome }) => `${key} ${outcome}`);
  assert.deepEqual(news.slice(0, 2), ["new-1 in flight", "new-2 unknown"]);
  assert.equal(news.length, 12);
  assert.equal(news.at(-1), "round-9 answered");
  await journal.close();
});

test("posline journal reads the folder that the configuration names, else systemd's, and says when it can't", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "pay-1", "answered");
  const file = join(root, "posline.json");
  const services = { bank: { line: "till" } };
  const lines = { till: { path: "/dev/ttyUSB0" } };
  writeFileSync(file, JSON.stringify({ lines, services, journal: { folder } }));
  assert.match((await run({ config: file })).out, /pay-1/);
  assert.match((await run({}, { STATE_DIRECTORY: `${folder}:/x` })).out, /pay-1/);
  writeFileSync(file, JSON.stringify({ lines, services, journal: false }));
  const off = await run({ config: file });
  assert.deepEqual([off.code, off.out], [69, ""]);
  assert.match(off.err, /the configuration keeps none \(journal is false\): name one by --folder/);
  writeFileSync(file, "{}");
  assert.equal((await run({ config: file })).code, 78);
  const absent = await run({ folder: join(root, "absent") });
  assert.deepEqual([absent.code, absent.out], [69, ""]);
  assert.match(absent.err, /^Cannot read the journal in .*absent: there is no journal: name its folder/);
  const other = join(root, "other");
  mkdirSync(other);
  writeFileSync(journalFile(other), "a diary".repeat(1_000));
  assert.match((await run({ folder: other })).err, /it is not a journal of posline/);
  await journal.close();
});

test("openOperations() makes a file of its full size that its group may read, and refuses a second process", async () => {
  const { folder, journal, told } = await journalIn();
  const { size, blocks, mode } = statSync(journalFile(folder));
  assert.equal(size, bytes);
  assert.ok(blocks * 512 >= bytes, "without holes");
  assert.equal(mode & 0o777, 0o640);
  assert.deepEqual(told.failures, []);
  const second = await journalIn(folder);
  assert.match(second.told.failures.join(), /another process is using the journal in .*: stop it/);
  await journal.close();
  await record(second.journal, "A", "answered");
  assert.equal(second.journal.state, "ok");
  await second.journal.close();
});

test("posline journal lets nothing of a request reach the terminal that commands it, as a table, as JSON or in a refusal", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, evil, "unknown");
  for (const json of [false, true]) {
    const { out } = await run({ folder, json });
    assert.match(out, /é/);
    assert.doesNotMatch(out, obeyed);
  }
  await journal.close();
  assert.doesNotMatch((await run({ folder: join(root, evil) })).err, obeyed);
  assert.doesNotMatch((await run({ folder, key: evil })).out, obeyed);
});

test("posline journal --unknown prints what the running posline tried, where it keeps this journal, and JSON has it too", async () => {
  const { folder, journal } = await journalIn();
  for (const key of ["A", "B", "C"]) await record(journal, key, "unknown");
  const newest = journal.unknown().map(({ time, requestId, key }) => ({
    ...{ time, requestId },
    ...(key === "A" ? { asked: 4, lastAsked: time, lastAnswer: "error, code -15" } : { asked: 0 }),
    ...(key === "B" ? { cannotAsk: "bank has no question about it" } : {}),
  }));
  const asked: string[] = [];
  const ask = (kept: string) => async (_: unknown, method: string, path: string) => {
    asked.push(`${method} ${path}`);
    return { journal: { folder: kept, unknown: { total: 3, newest } } };
  };
  const { out } = await run({ folder, unknown: true }, {}, undefined, ask(folder));
  assert.match(out, /\nA: asked 4 times, last at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d; last answer: error, code -15\nB: /);
  assert.match(out, /\nB: posline does not ask: bank has no question about it\nC: not asked yet\n3 operations: 3 unknown\n/);
  const [row] = (await run({ folder, unknown: true, json: true }, {}, undefined, ask(folder))).out.split("\n");
  assert.match(JSON.parse(row ?? "").tried, /^asked 4 times/);
  assert.doesNotMatch((await run({ folder, unknown: true }, {}, undefined, ask("/elsewhere"))).out, /asked/);
  assert.deepEqual(asked, ["GET /status", "GET /status", "GET /status"]);
  await run({ folder }, {}, undefined, ask(folder));
  await journal.close();
  await run({ folder, unknown: true }, {}, undefined, ask(folder));
  assert.equal(asked.length, 3, "neither without --unknown, nor when posline doesn't run");
});

test("posline journal settle asks the posline that writes the journal, and says why that can't be", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "A", "unknown");
  const settle = { folder, action: "settle", operation: "A", as: "done", note: "seen" } as const;
  const away = await run(settle);
  assert.deepEqual([away.code, away.out], [69, ""]);
  assert.match(
    away.err,
    /posline runs and keeps the journal, and its admin port \(localhost:8880\) does not answer: check admin/,
  );
  const refused = await run(settle, {}, undefined, async () => ({ error: "Cannot settle it" }));
  assert.deepEqual([refused.code, refused.err], [69, "Cannot settle it\n"]);
  const [open] = journal.listed;
  assert.ok(open);
  const done = await run(settle, {}, undefined, async (_admin, _method, _path, body = "") => {
    assert.deepEqual(JSON.parse(body), { key: "A", as: "done", note: "seen", folder });
    void journal.settle(open, { result: "approved", by: "operator", note: "seen" });
    return { settled: [] };
  });
  assert.deepEqual([done.code, done.out, done.err], [0, "bank /sale A of 100 is settled: done\n", ""]);
  assert.match((await run({ folder })).out, / A +- +100 {2}settled, approved /);
  await journal.close();
});

test("posline journal settle takes a word on what the terminal took on and nobody heard the end of, its correction, and nothing else", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "A", "answered");
  await record(journal, "B", "not-sent");
  assertMapped(journal.open, ["A"], ({ sent }) => sent.key);
  await journal.close();
  const settle = (operation: string, as: "done" | "not-done") =>
    run({ folder, action: "settle", operation, as, note: "slip 7" });
  for (const [as, more] of [
    ["not-done", ": if the same call comes again, it is sent"],
    ["done", ""],
  ] as const)
    assert.deepEqual(await settle("A", as), { code: 0, out: `bank /sale A of 100 is settled: ${as}${more}\n`, err: "" });
  assert.match((await settle("B", "done")).err, /no operation of this key is unknown/);
  assert.match((await run({ folder, key: "A" })).out, /answered, approved/, "the last word");
  const { journal: again } = await journalIn(folder);
  assertMapped(again.settledByPerson, ["A"], ({ sent }) => sent.key);
  assert.deepEqual(again.open, []);
  await again.close();
});

test("posline journal settle doesn't say that nothing was settled where a posline that hangs may have taken it", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "A 1", "unknown");
  const admin = createServer((request, response) => {
    if (request.url === "/journal/settle") request.resume().on("end", () => response.destroy());
    else response.end(request.url === "/page/paths.json" ? '{"paths":[]}' : "somebody else's page");
  });
  const portOf = async () => {
    await once(admin.listen(0, "127.0.0.1"), "listening");
    const address = admin.address();
    assert.ok(typeof address === "object" && address !== null);
    return address.port;
  };
  const here = { ...adminDefaults, port: await portOf() };
  const settle = { folder, action: "settle", operation: "A 1", as: "done", note: "seen" } as const;
  const hung = await run(settle, {}, undefined, (_, ...asked) => askAdmin(here, ...asked));
  assert.deepEqual([hung.code, hung.out], [69, ""]);
  assert.match(
    hung.err,
    /^Cannot say whether "A 1" is settled: .* may be settled yet\. See posline journal --key 'A 1' before/,
  );
  assert.equal(await askAdmin(here, "GET", "/status"), undefined, "no posline answers so");
  admin.close();
  await once(admin, "close");
  assert.equal(await askAdmin(here, "POST", "/journal/settle", "{}"), undefined, "nobody listens");
  await journal.close();
});

test("posline journal settle asks a posline that keeps this journal without a lock, as on a full disk; another one's not", async () => {
  const { folder, journal } = await journalIn();
  await record(journal, "A", "unknown");
  // Here it is the lock that is missing: the journal's owner is gone, and one that answers says that it has it.
  await journal.close();
  const settle = { folder, action: "settle", operation: "A", as: "done", note: "seen" } as const;
  const asked: string[] = [];
  const ask =
    (kept: string): AskAdmin =>
    async (_admin, method, path) => {
      asked.push(`${method} ${path}`);
      return method === "GET" ? { journal: { folder: kept } } : { error: "Cannot settle it" };
    };
  const refused = await run(settle, {}, undefined, ask(folder));
  assert.deepEqual([refused.code, refused.err], [69, "Cannot settle it\n"]);
  assert.deepEqual(asked, ["GET /status", "POST /journal/settle"]);
  const done = await run(settle, {}, undefined, ask("/elsewhere"));
  assert.deepEqual([done.code, done.out], [0, "bank /sale A of 100 is settled: done\n"]);
});
