import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommands } from "../../src/cli/commands.ts";
import { exitCodeOf } from "../../src/core/exit.ts";
import { type Answer, Upstream } from "../http/upstream.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { evil, obeyed } from "../support/evil-text.ts";
import { freePorts } from "../support/free-port.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { Terminal } from "../support/terminal.ts";

/** `posline call` and the package, against the emulated bridge that `npm start` runs. */

const folder = scratchFolder();
let bridge: PoslineProcess;
before(async () => {
  const file = join(folder.path, "posline.json");
  const services = Object.fromEntries(["fiscal", "bank", "qr"].map((name) => [name, { line: "till", replyTimeoutMs: 3001 }]));
  writeFileSync(file, JSON.stringify({ lines: { till: { path: "/dev/null", baudRate: 921_600 } }, services }));
  bridge = new PoslineProcess(["serve", "--emulated"], { env: { POSLINE_CONFIG: file } });
  await bridge.logged((line) => line["state"] === "idle", "the line to be clean");
});
after(async () => {
  for (const service of services) await service.stop();
  await bridge.ended("SIGTERM");
});

const secret = join(folder.path, "merchant-id");
writeFileSync(secret, "MERCHANT-1\n");

interface Called {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function caller(service: "fiscal" | "bank" | "qr", ...args: readonly string[]): Promise<PoslineProcess> {
  const url = `http://127.0.0.1:${await bridge.port(service)}`;
  const flags = service === "fiscal" ? ["--merchant-id-file", secret] : [];
  return new PoslineProcess(["call", ...args, "--url", url, ...flags]);
}

async function call(service: "fiscal" | "bank" | "qr", ...args: readonly string[]): Promise<Called> {
  const process = await caller(service, service, ...args);
  const code = await process.ended();
  return { code, stdout: process.stdout, stderr: process.stderr };
}

const services: Upstream[] = [];

/** What answers in the place of posline, until the file's end. */
async function serviceOf(answer: Answer): Promise<Upstream> {
  const service = await Upstream.start(answer);
  services.push(service);
  return service;
}

const sale = (payId: string, amount: number) => JSON.stringify({ pay_id: payId, amount, currency_name: "EUR" });

test("posline call prints a service's answer, and takes a route with or without its slash", async () => {
  for (const route of ["terminals", "/terminals"]) {
    const { code, stdout } = await call("bank", route);
    assert.equal(code, 0);
    assert.ok(JSON.parse(stdout).data.terminals.length > 0);
  }
});

test("posline call SERVICE test asks the harmless question, and prints the time of its answer and what the terminal offers", async () => {
  for (const service of ["fiscal", "bank", "qr"] as const) {
    const { code, stdout, stderr } = await call(service, "test");
    assert.equal(code, 0, stderr);
    const { ms, offer } = JSON.parse(stdout);
    assert.ok(ms > 0);
    assert.ok((offer.operations ?? offer.systems).length > 0);
  }
  const withBody = await call("bank", "test", "{}");
  assert.equal(withBody.code, 64);
  assert.match(withBody.stderr, /^Cannot test bank: it is one question without a body/);
  const nobody = new PoslineProcess(["call", "bank", "test", "--url", "http://127.0.0.1:9"]);
  assert.notEqual(await nobody.ended(), 0);
});

const receipt = JSON.stringify({ items: [{ itemAmount: 1500 }], payments: { cashAmount: 1500 } });

for (const [what, service, args, code, printed, said] of [
  ["a refusal", "bank", ["sale", sale("CALL-0", 1552)], 1, { code: -101 }, /nothing was started/],
  [
    "an error that doesn't say how the operation ends",
    "bank",
    ["check", '{"pay_id":"NOBODY"}'],
    75,
    { code: -15 },
    /this doesn't say how the operation ends: ask again\n$/,
  ],
  [
    "a sale that is followed to approved, a line for each step",
    "bank",
    ["sale", sale("CALL-1", 1500), "--wait"],
    0,
    { result: "approved" },
    /bank \/sale: sending\n[\s\S]*bank \/sale: asking for the result\n[\s\S]*approved\n$/,
  ],
  ["a decline", "bank", ["sale", sale("CALL-3", 1520), "--wait"], 1, { result: "declined", code: -20 }, /declined/],
  ["a fiscal sale without a key, which it makes", "fiscal", ["sale", receipt, "--wait"], 0, { result: "closed" }, /closed/],
  [
    "a sale that has no key, without --wait",
    "bank",
    ["sale", '{"amount":1500,"currency_name":"EUR"}'],
    64,
    undefined,
    /the body has no pay_id: give one, or --wait/,
  ],
] as const) {
  test(`posline call exits with ${code} for ${what}, prints the answer, and says what to do`, async () => {
    const called = await call(service, ...args);
    assert.equal(called.code, code, called.stderr);
    assert.match(called.stderr, said);
    for (const [name, value] of Object.entries(printed ?? {})) assert.equal(JSON.parse(called.stdout)[name], value);
  });
}

test("posline call exits with 75 while nothing is proven, and its token goes on to the end", async () => {
  const { code, stdout, stderr } = await call("bank", "sale", sale("CALL-4", 1569), "--wait", "--window", "1");
  assert.equal(code, 75, stderr);
  assert.equal(JSON.parse(stdout).result, "unknown");
  const token = /--resume '([^']*)' --url 'http/.exec(stderr)?.[1] ?? "none";
  const file = join(folder.path, "token");
  writeFileSync(file, token);
  const resumed = await caller("bank", "--resume", `@${file}`);
  assert.equal(await resumed.ended(), 0, resumed.stderr);
  assert.equal(JSON.parse(resumed.stdout).result, "approved");
});

test("posline call --wait asks /abort at Ctrl-C, says so, and follows to the end", async () => {
  const process = await caller("bank", "bank", "sale", sale("CALL-5", 1569), "--wait");
  await process.until(() => (process.stderr.includes("in progress") ? true : undefined), "the sale to be in progress");
  assert.equal(await process.ended("SIGINT"), 1, process.stderr);
  assert.match(process.stderr, /asked \/abort, which was accepted/);
  assert.deepEqual([JSON.parse(process.stdout).result, JSON.parse(process.stdout).code], ["declined", -21]);
});

test("posline call --wait asks no /abort at Ctrl-C before anything was sent: its key may be another operation's", async () => {
  const asked: string[] = [];
  const terminal = new Terminal(join(folder.path, "silent"), () => {});
  const { url } = await serviceOf(({ path }, response) => {
    asked.push(path);
    const isDown = path === "/sale";
    const outcome = { "X-Posline-Outcome": isDown ? "not-sent" : "answered" };
    // A line that is down; and what stands under the key, which a cancel waits for, goes on.
    const answer = isDown ? '{"status":"error","code":-3,"message":"Cannot send"}' : '{"status":"success"}';
    response.writeHead(isDown ? 503 : 200, outcome).end(answer);
  });
  try {
    for (const [route, waits, flags] of [
      ["sale", "not sent", []],
      ["sale", "not sent", ["--by-bridge"]],
      ["cancel", "waiting", []],
    ] as const) {
      const process = new PoslineProcess(["call", "bank", route, sale("CALL-5B", 1569), "--wait", ...flags, "--url", url]);
      await process.until(() => (process.stderr.includes(waits) ? true : undefined), "it to wait");
      assert.equal(await process.ended("SIGINT"), 69, process.stderr);
      assert.match(process.stderr, /not-sent: it was stopped before it was sent\n$/);
      assert.doesNotMatch(process.stderr, /abort|Resume/);
      assert.equal(JSON.parse(process.stdout).result, "not-sent");
    }
    // One that waits for its line, which a silent terminal keeps from being clean.
    for (const path of ["/dev/nonexistent", terminal.link]) {
      const called = ["call", "bank", "sale", sale("CALL-5C", 1569), "--wait", "--line", path];
      const process = new PoslineProcess(called);
      await process.until(() => (process.stderr.includes("sending") ? true : undefined), "it to try");
      assert.equal(await process.ended("SIGINT"), 69, process.stderr);
      assert.doesNotMatch(process.stderr, /abort|Resume/);
    }
    assert.deepEqual(terminal.calls, []);
  } finally {
    terminal.unplug();
  }
  assert.deepEqual(
    asked.filter((route) => !["/sale", "/check"].includes(route)),
    [],
  );
});

test("posline call --wait tells the key before anything is sent, keeps the token, and prints it when the session ends", async () => {
  const file = join(folder.path, "kept-token");
  const body = JSON.stringify({ amount: 1569, currency_name: "EUR", doc_number: "Men's" });
  const process = await caller("bank", "bank", "sale", body, "--wait", "--token-file", file);
  await process.until(() => (process.stderr.includes("in progress") ? true : undefined), "the sale to be in progress");
  assert.equal(await process.ended("SIGTERM"), 75, process.stderr);
  const key = /^bank \/sale: pay_id (\w{26})\nbank \/sale: sending\n/.exec(process.stderr)?.[1];
  assert.equal(JSON.parse(process.stdout).key, key);
  // The command as it is printed, quotes and all.
  const command = /posline (call --resume .*)\n$/.exec(process.stderr)?.[1] ?? "none";
  const [printed, kept] = [
    spawnSync("bash", ["-c", `${globalThis.process.execPath} ${bundle} ${command}`], { encoding: "utf8" }),
    readFileSync(file, "utf8"),
  ];
  assert.equal(JSON.parse(printed.stdout).result, "approved", printed.stderr);
  assert.equal(JSON.parse(JSON.parse(kept).body).pay_id, key);
});

test("posline call --token-file begins no other operation over one that has not ended, and goes on only where that was sent", async () => {
  const file = join(folder.path, "held-token");
  const body = JSON.stringify({ amount: 1569, currency_name: "EUR" });
  const first = await caller("bank", "bank", "sale", body, "--wait", "--token-file", file);
  await first.until(() => (first.stderr.includes("in progress") ? true : undefined), "the sale to be in progress");
  await first.ended("SIGKILL");
  const held = readFileSync(file, "utf8");
  const again = await call("bank", "sale", body, "--wait", "--token-file", file);
  assert.equal(again.code, 64);
  assert.match(again.stderr, /^Cannot begin another operation in ".*": it holds .* has not ended.*posline call --resume @/);
  for (const elsewhere of [
    ["--url", "http://127.0.0.1:9"],
    ["--line", "/dev/nonexistent"],
  ]) {
    const other = new PoslineProcess(["call", "--resume", `@${file}`, ...elsewhere]);
    assert.equal(await other.ended(), 64);
    assert.match(other.stderr, /^Cannot resume: the operation was sent to http:\/\/127.*leave --url and --line out\n$/);
  }
  for (const text of [held, "@-"]) {
    const args = ["call", "--resume", text, "--url", "http://127.0.0.1:9"];
    const inline = spawnSync(process.execPath, [bundle, ...args], { input: held, encoding: "utf8" });
    assert.match(inline.stderr, /^Cannot resume: the operation was sent to/);
  }
  const twice = new PoslineProcess(["call", "--resume", `@${file}`, "--token-file", `${file}-2`]);
  assert.equal(await twice.ended(), 64);
  assert.match(twice.stderr, /is kept up to date itself.*leave --token-file out\n$/);
  assert.equal(readFileSync(file, "utf8"), held);
  const resumed = new PoslineProcess(["call", "--resume", `@${file}`]);
  assert.equal(await resumed.ended(), 0, resumed.stderr);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).result, "approved");
  const next = await call("bank", "sale", sale("CALL-12", 1500), "--wait", "--token-file", file);
  assert.equal(next.code, 0, "an operation that has ended makes room for the next");
  const notes = join(folder.path, "notes");
  writeFileSync(notes, "mine");
  const refused = await call("bank", "sale", body, "--wait", "--token-file", notes);
  assert.deepEqual([refused.code, readFileSync(notes, "utf8")], [64, "mine"]);
});

test("posline call --resume @FILE by many at once sends a confirm once, and none of them says that it was not sent", async () => {
  const begun = await call("bank", "preauth", sale("CALL-13", 1500), "--wait");
  const file = join(folder.path, "raced-token");
  const body = { ...JSON.parse(sale("CALL-14", 1500)), rrn: JSON.parse(begun.stdout).data.rrn };
  const flags = ["--wait", "--token-file", file, "--line", "/dev/nonexistent"];
  const killed = new PoslineProcess(["call", "bank", "confirm", JSON.stringify(body), ...flags]);
  await killed.until(() => (killed.stderr.includes("waiting") ? true : undefined), "the baseline to be asked");
  await killed.ended("SIGKILL");
  const all = await Promise.all(Array.from({ length: 3 }, () => caller("bank", "--resume", `@${file}`)));
  const codes = await Promise.all(all.map((each) => each.ended()));
  // One that came when it was over asks once more how it ended.
  assert.ok(codes.includes(0) && codes.every((code) => code === 0 || code === 75), all.map(({ stderr }) => stderr).join("\n"));
  const confirms = bridge.log.filter(({ route, key }) => route === "/confirm" && key === "CALL-14");
  assertMapped(confirms, ["answered"], ({ outcome }) => outcome);
});

test("posline call --wait exits with 69 when nothing could be sent in all the time", async () => {
  const process = new PoslineProcess([
    ...["call", "bank", "sale", sale("CALL-8", 1500), "--wait", "--window", "1", "--line", "/dev/nonexistent"],
  ]);
  assert.equal(await process.ended(), 69, process.stderr);
});

test("posline call --resume of a token that ended unsent says so at once, and exits with 69", async () => {
  const file = join(folder.path, "unsent-token");
  const flags = ["--wait", "--window", "1", "--token-file", file, "--line", "/dev/nonexistent"];
  const unsent = new PoslineProcess(["call", "bank", "sale", sale("CALL-9", 1500), ...flags]);
  assert.equal(await unsent.ended(), 69, unsent.stderr);
  const resumed = await caller("bank", "--resume", `@${file}`);
  assert.equal(await resumed.ended(), 69, resumed.stderr);
  const { result, key, message } = JSON.parse(resumed.stdout);
  assert.deepEqual([result, key], ["not-sent", "CALL-9"]);
  assert.match(message, /^nothing was sent: Cannot /);
  assert.ok(resumed.stderr.endsWith(`not-sent: ${message}\n`), resumed.stderr);
  assert.equal(JSON.parse((await call("bank", "check", '{"pay_id":"CALL-9"}')).stdout).code, -15);
});

test("posline call reads the body from standard input and from a file", async () => {
  const file = join(folder.path, "body.json");
  writeFileSync(file, sale("CALL-6", 1500));
  const begun = await call("bank", "sale", "--file", file);
  // A sale's success says that it has begun: nobody may hand out goods for it.
  assert.equal(begun.code, 75);
  assert.match(begun.stderr, /^It has begun, and not ended: ask posline call bank check; --wait does so by itself$/m);
  const url = `http://127.0.0.1:${await bridge.port("bank")}`;
  const { status, stdout } = spawnSync(process.execPath, [bundle, "call", "bank", "check", "--file", "-", "--url", url], {
    input: '{"pay_id":"CALL-6"}',
    encoding: "utf8",
  });
  assert.ok(status === 75 || status === 0);
  assert.equal(JSON.parse(stdout).status, "success");
});

test("posline call exits with what an answer says of money, and prints it, whatever numbers stand in it", async () => {
  const replies = new Map([
    ["/sale", '{"status":"success","data":{"limit":1e20}}'],
    ["/check", '{"status":"success","data":{"status":"APPROVED","rrn":"1","limit":1e20,"rate":1e999}}'],
  ]);
  const { url } = await serviceOf(({ path }, response) => response.end(replies.get(path)));
  for (const [flags, code, printed] of [
    [[], 75, /"limit":100000000000000000000/],
    [["--wait"], 0, /"result":"approved".*"limit":100000000000000000000/],
  ] as const) {
    const sold = new PoslineProcess(["call", "bank", "sale", sale("BIG", 1500), ...flags, "--url", url]);
    assert.equal(await sold.ended(), code, sold.stderr);
    assert.match(sold.stdout, printed);
    assert.doesNotMatch(sold.stderr, /Cannot write|Resume it/);
  }
});

test("posline call exits with 75 for a sale whose answer is too deep to be printed, and says that", async () => {
  const [deep, end] = ['{"a":'.repeat(3_500), "}".repeat(3_500)];
  const { url } = await serviceOf((_, response) => response.end(`{"status":"success","data":${deep}1${end}}`));
  const sold = new PoslineProcess(["call", "bank", "sale", sale("DEEP", 1500), "--url", url]);
  assert.equal(await sold.ended(), 75, sold.stderr);
  assert.match(sold.stderr, /^Cannot print the answer: .*\nIt has begun, and not ended: |^the answer is not one that/);
});

test("posline call exits with 75 for a success that has no end, of a question or a refund, and with 0 for one that has", async () => {
  let answer = "";
  const { url } = await serviceOf((_, response) => response.setHeader("content-type", "application/json").end(answer));
  const again = "The operation has not ended: ask again\n";
  const noRrn = "The success has no data.rrn, which does not prove what was done: look it up before sending it again\n";
  const refund = '{"pay_id":"A","trans":"T","rrn":"1","amount":1,"currency":"978","pay_system":"P"}';
  const calls = [
    ["bank", "check", '{"pay_id":"A"}', '{"status":"success","data":{"status":"APPROVED"}}', again],
    ["qr", "check", '{"pay_id":"A","trans":"T","pay_system":"P"}', '{"status":"success","data":{"rrn":"1"}}', again],
    ["qr", "refund", refund, '{"status":"success","data":{"rrn":"2"}}', noRrn],
    ["fiscal", "check_status", '{"documentExtID":"A"}', '{"status":"success","docStatus":1}', again],
  ] as const;
  for (const [service, route, body, end, open] of calls) {
    for (const [text, code, said] of [
      ['{"status":"success"}', 75, open],
      [end, 0, ""],
    ] as const) {
      answer = text;
      const asked = new PoslineProcess(["call", service, route, body, "--url", url, "--merchant-id-file", secret]);
      assert.deepEqual([await asked.ended(), asked.stdout, asked.stderr], [code, `${text}\n`, said], service);
    }
  }
});

test("posline call says what is wrong with how it was called, and exits with 64", async (t) => {
  const url = `http://127.0.0.1:${await bridge.port("bank")}`;
  for (const [args, words] of [
    [["bnak", "sale"], /^Unknown service "bnak": did you mean "bank"\?$/m],
    [["bank", "sail"], /^Unknown route "sail" of bank: did you mean "sale"\?$/m],
    [["bank", "xyzzy"], /^Unknown route "xyzzy" of bank: bank has supported_operations, terminals, sale/m],
    [["bank", "sale", "[1]"], /the body must be a JSON object/],
    [["--resume", "nonsense"], /the token is not JSON/],
    [["--resume", "{}"], /this is not a token/],
    [["bank", "terminals", "--wait"], /can't be followed|operation/],
    [["bank", "sale", "{}", "--wait", "--window", "x"], /^--window "x" must be a number, for example --window 180$/m],
    [["--resume", "{}", "bank"], /the token names service, route and body/],
    [["--resume", "{}", "--file", "-"], /the token names service, route and body/],
    [["bank", "sale", sale("CALL-0", 1500), "--window", "1"], /--window is only for .*: add --wait, or leave --window out/],
    [["bank", "terminals", "--token-file", "t"], /--token-file is only for .*: add --wait, or leave --token-file out/],
  ] as const) {
    const texts: string[] = [];
    // In this process: to start one for each takes a second.
    const { mock } = t.mock.method(process.stderr, "write", (text: string) => texts.push(text) > 0);
    const code = await runCommands(["call", ...args, "--url", url]).catch((error: Error) => {
      texts.push(error.message);
      return exitCodeOf(error);
    });
    mock.restore();
    assert.equal(code, 64, `${args.join(" ")}: ${texts}`);
    assert.match(texts.join(""), words);
  }
});

test("posline call with nothing listening fails at once with 69, says so, and that nothing was sent", async () => {
  const [port] = await freePorts(1);
  const where = `posline is not running on 127\\.0\\.0\\.1:${port}: start it with posline serve .*enable --now posline\\.socket posline.*\\. Nothing was sent`;
  const target = ["--url", `http://127.0.0.1:${port}`];
  const once = new PoslineProcess(["call", "bank", "terminals", ...target]);
  assert.equal(await once.ended(), 69, once.stderr);
  assert.match(once.stderr, new RegExp(`^${where}\n$`));
  const beganMs = performance.now();
  const followed = new PoslineProcess(["call", "bank", "sale", sale("CALL-12", 1500), "--wait", ...target]);
  assert.equal(await followed.ended(), 69, followed.stderr);
  assert.ok(performance.now() - beganMs < 5_000, "it didn't wait");
  assert.match(
    followed.stderr,
    new RegExp(`^bank /sale: pay_id CALL-12\n.*: sending\n.*: not sent\n.*: ended\nnot-sent: ${where}\n$`),
  );
  const { result, message } = JSON.parse(followed.stdout);
  assert.equal(result, "not-sent");
  assert.match(message, new RegExp(`^${where}$`));
  assert.doesNotMatch(followed.stdout + followed.stderr, /resent|again|declined|Resume/);
});

test("posline call --resume with nothing listening fails at once with 75, and prints the token again", async () => {
  const begun = await call("bank", "sale", sale("CALL-13", 1569), "--wait", "--window", "1");
  const token = /--resume '([^']*)' --url/.exec(begun.stderr)?.[1] ?? "none";
  const [port] = await freePorts(1);
  const process = new PoslineProcess(["call", "--resume", token, "--url", `http://127.0.0.1:${port}`]);
  assert.equal(await process.ended(), 75, process.stderr);
  assert.match(
    process.stderr,
    /unknown: posline is not running on .*It was not asked what became of the operation\nResume it with/,
  );
  assert.doesNotMatch(process.stderr, /Nothing was sent/);
});

test("posline call --timeout ends the whole call, and says what that leaves open", async () => {
  const { url } = await serviceOf(() => {});
  for (const flags of [[], ["--wait"]]) {
    const process = new PoslineProcess([
      ...["call", "bank", "sale", sale("CALL-14", 1500), "--timeout", "0.5", "--url", url, ...flags],
    ]);
    assert.equal(await process.ended(), 75, process.stderr);
    assert.match(
      process.stderr,
      flags.length === 0 ? /no answer came within 500 ms/ : /unknown: no result within 0\.5 s \(--timeout\)/,
    );
  }
  const unsent = new PoslineProcess([
    ...["call", "bank", "sale", sale("CALL-15", 1500), "--wait", "--timeout", "0.5", "--line", "/dev/nonexistent"],
  ]);
  assert.equal(await unsent.ended(), 69, unsent.stderr);
  assert.match(unsent.stderr, /not-sent: nothing was sent within 0\.5 s \(--timeout\)\n$/);
});

test("posline call --curl prints a request that works as it is printed, and sends nothing", async () => {
  const fiscalSale = JSON.stringify({
    documentExtID: "CURL-1",
    items: [{ itemId: "1", itemName: "Men's", itemQty: 1000, itemAmount: 1500, itemTaxes: [{ taxPrc: 1800 }] }],
    payments: { cashAmount: 1500 },
  });
  for (const [service, route, body, ask] of [
    ["bank", "sale", sale("CURL-2", 1500), ["check", '{"pay_id":"CURL-2"}']],
    ["fiscal", "sale", fiscalSale, ["check_status", '{"documentExtID":"CURL-1"}']],
    ["fiscal", "supported_operations", undefined, undefined],
  ] as const) {
    const printed = await call(service, route, ...(body === undefined ? [] : [body]), "--curl");
    assert.deepEqual([printed.code, printed.stderr], [0, ""]);
    assert.match(printed.stdout, /^curl -s -w '\\n' .*'http:\/\/127\.0\.0\.1:\d+\/\w+'\n$/);
    if (ask !== undefined) assert.equal((await call(service, ...ask)).code, 75, "nothing was sent yet");
    const ran = spawnSync("bash", ["-c", printed.stdout], { encoding: "utf8" });
    assert.equal(JSON.parse(ran.stdout).status, "success", ran.stdout);
  }
  const refused = await call("bank", "sale", sale("CURL-3", 1500), "--curl", "--wait");
  assert.deepEqual([refused.code, refused.stdout], [64, ""]);
});

test("posline call names the flag for the merchant's id before anything is sent", async () => {
  const url = `http://127.0.0.1:${await bridge.port("fiscal")}`;
  for (const flags of [[], ["--wait"], ["--curl"]]) {
    const process = new PoslineProcess(["call", "fiscal", "sale", '{"documentExtID":"NO-ID"}', "--url", url, ...flags]);
    assert.equal(await process.ended(), 64, process.stderr);
    assert.match(
      process.stderr,
      /^Cannot call fiscal: .*--merchant-id-file FILE.*credentials\/merchant-id\).*Nothing was sent\n$/,
    );
  }
});

test("posline call on a terminal shows the time, what Ctrl-C does, and the result as lines; --json gives JSON", async () => {
  const url = `http://127.0.0.1:${await bridge.port("bank")}`;
  const onTerminal = (...args: readonly string[]) => {
    const command = ["-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"];
    const words = [process.execPath, bundle, "call", ...args, "--url", url];
    return spawnSync("python3", [...command, ...words], { encoding: "utf8", input: "", timeout: 30_000 });
  };
  const { stdout, status } = onTerminal("bank", "sale", sale("CALL-16", 1500), "--wait");
  assert.equal(status, 0, stdout);
  assert.match(stdout, /\(\d+ s; Ctrl-C asks the terminal to abort it\)/);
  assert.match(stdout, /result: approved\r\nkey: CALL-16\r\n(?:code: 0\r\n)?(?:message: .*\r\n)?data:\r\n {2}\w+: /);
  const json = onTerminal("bank", "check", '{"pay_id":"CALL-16"}', "--json").stdout;
  assert.equal(JSON.parse(json).status, "success");
  assert.match(onTerminal("bank", "check", '{"pay_id":"CALL-16"}').stdout, /^status: success\r\n/);
});

test("posline call prints a service's words as a terminal may show them, and its JSON keeps the value", async () => {
  const replies = new Map([
    ["/terminals", { status: "success", code: 0, data: { terminals: [evil] } }],
    ["/sale", { status: "error", code: -20, message: evil, data: { pay_id: "E-1", message: evil } }],
    ["/check", { status: "error", code: -20, message: evil, data: { pay_id: "E-1", message: evil } }],
  ]);
  const { url } = await serviceOf(({ path }, response) => {
    response.setHeader("X-Posline-Outcome", "answered");
    response.end(JSON.stringify(replies.get(path) ?? { status: "success", code: 0 }));
  });
  const asked = async (...args: readonly string[]) => {
    const process = new PoslineProcess(["call", ...args, "--url", url]);
    await process.ended();
    assert.doesNotMatch(process.stdout, obeyed);
    assert.doesNotMatch(process.stderr, obeyed);
    return process;
  };
  assert.deepEqual(JSON.parse((await asked("bank", "terminals")).stdout).data.terminals, [evil]);
  const rejected = await asked("bank", "check", '{"pay_id":"E-1"}');
  assert.equal(JSON.parse(rejected.stdout).message, evil);
  assert.match(rejected.stderr, /é/);
  const key = "E\u202e\u009b1";
  const body = JSON.stringify({ pay_id: key, amount: 1, currency_name: "EUR" });
  const followed = await asked("bank", "sale", body, "--wait", "--window", "1");
  assert.equal(JSON.parse(followed.stdout).key, key);
  assert.match(followed.stderr, /^bank \/sale: pay_id E/);
});

test("posline call --wait --by-bridge lets the running posline follow it, and says so; without --wait it is refused", async () => {
  const { code, stdout, stderr } = await call("bank", "sale", sale("CALL-BY", 1500), "--wait", "--by-bridge");
  assert.equal(code, 0);
  assert.match(stderr, /: sending\n.*: ended\nfollowed by the bridge \(Prefer: wait\)\napproved\n$/);
  assert.equal(JSON.parse(stdout).result, "approved");
  const refused = await call("bank", "sale", sale("CALL-BY-2", 1500), "--by-bridge");
  assert.equal(refused.code, 64);
  assert.match(refused.stderr, /--by-bridge is only for an operation that is followed over HTTP/);
});
