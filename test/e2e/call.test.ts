import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { scratchFolder } from "../support/bridge-process.ts";
import { evil, obeyed } from "../support/evil-text.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";

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
  await bridge.ended("SIGTERM");
  folder.remove();
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

const sale = (payId: string, amount: number) => JSON.stringify({ pay_id: payId, amount, currency_name: "EUR" });

test("posline call prints a service's answer, and takes a route with or without its slash", async () => {
  for (const route of ["terminals", "/terminals"]) {
    const { code, stdout } = await call("bank", route);
    assert.equal(code, 0);
    assert.ok(JSON.parse(stdout).data.terminals.length > 0);
  }
});

test("posline call signs fiscal requests", async () => {
  const { code, stdout } = await call("fiscal", "check_shift");
  assert.equal(code, 0);
  assert.equal(JSON.parse(stdout).isShiftOpen, "true");
});

test("posline call exits with 1 for an error, and prints the service's answer and what to do", async () => {
  const { code, stdout, stderr } = await call("bank", "check", '{"pay_id":"NOBODY"}');
  assert.equal(code, 1);
  assert.equal(JSON.parse(stdout).code, -15);
  assert.notEqual(stderr, "");
});

test("posline call --wait follows a sale to approved, with a line of progress for each step", async () => {
  const { code, stdout, stderr } = await call("bank", "sale", sale("CALL-1", 1500), "--wait");
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).result, "approved");
  assert.match(stderr, /bank \/sale: sent\n[\s\S]*bank \/sale: asked\n[\s\S]*approved\n$/);
});

test("posline call --wait follows a sale whose answer is lost to approved", async () => {
  const { code, stdout } = await call("bank", "sale", sale("CALL-2", 1531), "--wait");
  assert.equal(code, 0);
  assert.equal(JSON.parse(stdout).result, "approved");
});

test("posline call --wait exits with 1 when declined", async () => {
  const { code, stdout } = await call("bank", "sale", sale("CALL-3", 1520), "--wait");
  assert.equal(code, 1);
  const { result, code: reason } = JSON.parse(stdout);
  assert.deepEqual([result, reason], ["declined", -20]);
});

test("posline call --wait makes a key where the body has none, and closes a fiscal sale", async () => {
  const body = JSON.stringify({ items: [{ itemAmount: 1500 }], payments: { cashAmount: 1500 } });
  const { code, stdout, stderr } = await call("fiscal", "sale", body, "--wait");
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).result, "closed");
});

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

test("posline call --wait tells the key before anything is sent, keeps the token, and prints it when the session ends", async () => {
  const file = join(folder.path, "kept-token");
  const body = JSON.stringify({ amount: 1569, currency_name: "EUR", doc_number: "Men's" });
  const process = await caller("bank", "bank", "sale", body, "--wait", "--token-file", file);
  await process.until(() => (process.stderr.includes("in progress") ? true : undefined), "the sale to be in progress");
  assert.equal(await process.ended("SIGTERM"), 75, process.stderr);
  const key = /^bank \/sale: pay_id (\w{26})\nbank \/sale: sent\n/.exec(process.stderr)?.[1];
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

test("posline call without --wait refuses a sale that has no key", async () => {
  const { code, stderr } = await call("bank", "sale", '{"amount":1500,"currency_name":"EUR"}');
  assert.equal(code, 64);
  assert.match(stderr, /the body has no pay_id: give one, or --wait/);
});

test("posline call --wait goes on when nobody reads what it prints", async () => {
  const url = `http://127.0.0.1:${await bridge.port("bank")}`;
  const command = `${process.execPath} ${bundle} call bank sale '${sale("CALL-7", 1500)}' --wait --url ${url}`;
  const { stdout } = spawnSync("bash", ["-c", `(${command} 2>&1; echo "exit $?" >&3) 3>&1 >/dev/full | cat`], {
    encoding: "utf8",
  });
  assert.equal(stdout, "exit 0\n");
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
  assert.deepEqual([result, key], ["declined", "CALL-9"]);
  assert.match(message, /^nothing was sent: Cannot /);
  assert.ok(resumed.stderr.endsWith(`declined: ${message}\n`), resumed.stderr);
  assert.equal(JSON.parse((await call("bank", "check", '{"pay_id":"CALL-9"}')).stdout).code, -15);
});

test("posline call --resume @FILE of a cancel that was killed before its baseline was known sends it, and keeps FILE up to date", async () => {
  const paid = await call("bank", "sale", sale("CALL-10", 1500), "--wait");
  const body = { ...JSON.parse(sale("CALL-11", 1500)), rrn: JSON.parse(paid.stdout).data.rrn };
  const file = join(folder.path, "baseline-token");
  const flags = ["--wait", "--token-file", file, "--line", "/dev/nonexistent"];
  const killed = new PoslineProcess(["call", "bank", "cancel", JSON.stringify(body), ...flags]);
  await killed.until(() => (killed.stderr.includes("waiting") ? true : undefined), "the baseline to be asked");
  assert.equal(await killed.ended("SIGKILL"), null);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).known.phase, "baseline");
  const resumed = await caller("bank", "--resume", `@${file}`);
  assert.equal(await resumed.ended(), 0, resumed.stderr);
  assert.match(resumed.stderr, /bank \/cancel: asked\nbank \/cancel: sent\n/);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).known.phase, "accepted");
});

test("posline call reads the body from standard input and from a file", async () => {
  const file = join(folder.path, "body.json");
  writeFileSync(file, sale("CALL-6", 1500));
  assert.equal((await call("bank", "sale", "--file", file)).code, 0);
  const url = `http://127.0.0.1:${await bridge.port("bank")}`;
  const { status, stdout } = spawnSync(process.execPath, [bundle, "call", "bank", "check", "--file", "-", "--url", url], {
    input: '{"pay_id":"CALL-6"}',
    encoding: "utf8",
  });
  assert.equal(status, 0);
  assert.equal(JSON.parse(stdout).status, "success");
});

test("posline call says what is wrong with how it was called, and exits with 64", async () => {
  for (const [args, words] of [
    [["bank", "sail"], /^Unknown route "sail" of bank: did you mean "sale"\?$/m],
    [["bank", "xyzzy"], /^Unknown route "xyzzy" of bank: bank has supported_operations, terminals, sale/m],
    [["bank", "sale", "[1]"], /the body must be a JSON object/],
    [["--resume", "nonsense"], /the token is not JSON/],
    [["--resume", "{}"], /this is no token/],
    [["bank", "terminals", "--wait"], /can't be followed|operation/],
    [["bank", "sale", "{}", "--wait", "--window", "x"], /^--window "x" must be a number, for example --window 180$/m],
    [["--resume", "{}", "bank"], /the token names service, route and body/],
    [["--resume", "{}", "--file", "-"], /the token names service, route and body/],
    [["bank", "sale", sale("CALL-0", 1500), "--window", "1"], /--window is only for .*: add --wait, or leave --window out/],
    [["bank", "terminals", "--token-file", "t"], /--token-file is only for .*: add --wait, or leave --token-file out/],
  ] as const) {
    const process = await caller("bank", ...args);
    assert.equal(await process.ended(), 64, `${args.join(" ")}: ${process.stderr}`);
    assert.match(process.stderr, words);
  }
});

test("posline call exits with 69 when nothing could be sent", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  server.close();
  const process = new PoslineProcess(["call", "bank", "terminals", "--url", `http://127.0.0.1:${port}`]);
  assert.equal(await process.ended(), 69, process.stderr);
});

test("the package gives a client by import and by require, and it settles a sale", async () => {
  const imported = await import("posline");
  const required: typeof imported = createRequire(import.meta.url)("posline");
  for (const { createClient } of [imported, required]) {
    const client = createClient({ bank: { url: `http://127.0.0.1:${await bridge.port("bank")}` } });
    const { result } = await client.bank.settle("sale", { amount: 1500n, currency_name: "EUR" }, { intervalMs: 50 });
    assert.equal(result, "approved");
    await client.close();
  }
});

test("posline call prints a service's words as a terminal may show them, and its JSON keeps the value", async () => {
  const replies = new Map([
    ["/terminals", { status: "success", code: 0, data: { terminals: [evil] } }],
    ["/sale", { status: "error", code: -20, message: evil, data: { pay_id: "E-1", message: evil } }],
    ["/check", { status: "error", code: -20, message: evil, data: { pay_id: "E-1", message: evil } }],
  ]);
  const service = createHttpServer((request, response) => {
    response.setHeader("X-Posline-Outcome", "answered");
    request
      .resume()
      .on("end", () => response.end(JSON.stringify(replies.get(request.url ?? "") ?? { status: "success", code: 0 })));
  }).listen(0, "127.0.0.1");
  await once(service, "listening");
  // A server that listens on TCP has an address of this form.
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
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
  service.close();
});
