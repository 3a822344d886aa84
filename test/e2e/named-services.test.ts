import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { ContractName } from "../../src/core/call.ts";
import { ask, type BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { type Asked, probeReply, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/** Six services on four lines, three of them banks: each call reaches its own terminal, and everything goes by the service's name. */

/** Which line each service is on, and which contract it speaks. */
const services: Readonly<Record<string, readonly [line: string, contract: ContractName]>> = {
  fiscal: ["desk", "fiscal"],
  bank: ["desk", "bank"],
  qr: ["bar", "qr"],
  "bank-2": ["bar", "bank"],
  "bank-3": ["terrace", "bank"],
  "qr-kiosk": ["kiosk", "qr"],
};

const run = promisify(execFile);
const quotedWords = (...words: readonly string[]) => words.map((word) => `'${word}'`).join(" ");

const lines = ["desk", "bar", "terrace", "kiosk"];
const folder = scratchFolder();
const terminals = new Map<string, Terminal>();
const file = join(folder.path, "posline.json");
let bridge: BridgeProcess;
let adminPort: number;

/** No port but those of the file. */
const asConfigured = Object.fromEntries(["FISCAL", "BANK", "QR", "ADMIN"].map((name) => [`POSLINE_${name}_PORT`, undefined]));

/** Says on which line it was asked. */
const answerOn = (line: string) => (asked: Asked, terminal: Terminal) =>
  terminal.reply(
    asked.framing,
    probeReply(asked) ?? `{"status":"success","code":0,"data":{"line":"${line}","status":"APPROVED"}}`,
  );

before(async () => {
  for (const line of lines) terminals.set(line, new Terminal(join(folder.path, line), answerOn(line)));
  const names = Object.keys(services);
  const ports = await freePorts(names.length + 1);
  adminPort = ports.at(-1) ?? 0;
  const config = {
    lines: Object.fromEntries(lines.map((line) => [line, { path: join(folder.path, line), baudRate: 115_200 }])),
    services: Object.fromEntries(
      Object.entries(services).map(([name, [line, contract]]) => [
        name,
        {
          ...(name === contract ? {} : { contract }),
          ...(contract === "fiscal" ? { merchantId: "MERCHANT-1", check: "none" } : {}),
          line,
          port: ports[names.indexOf(name)],
        },
      ]),
    ),
    admin: { port: adminPort },
    journal: { folder: join(folder.path, "journal") },
  };
  mkdirSync(join(folder.path, "journal"));
  writeFileSync(file, JSON.stringify(config));
  bridge = await startedBridge(config, { env: asConfigured });
});

after(async () => {
  await bridge.stop();
  for (const terminal of terminals.values()) terminal.unplug();
  folder.remove();
});

const bodyFor = (contract: ContractName, id: string) =>
  contract === "fiscal" ? "data=e30=&sign=AAAA" : `{"pay_id":"${id}","trans":"${id}","amount":1}`;

test("bridge relays each of six services to its own line, and logs it by its name", async () => {
  const asked = Object.entries(services).map(async ([name, [line, contract]]) => {
    for (let i = 0; i < 20; i++) {
      const { status, text } = await bridge.post(
        name,
        contract === "fiscal" ? "/check_status" : "/check",
        bodyFor(contract, `${name}-${i}`),
      );
      assert.equal(status, 200, text);
      assert.equal(JSON.parse(text).data.line, line, name);
    }
  });
  await Promise.all(asked);
  for (const name of Object.keys(services)) {
    await bridge.logged((entry) => entry["service"] === name && entry["outcome"] === "answered", `an exchange of ${name}`);
  }
});

test("status, journal and posline call go by the names of services", async () => {
  const sold = await bridge.post("bank-3", "/sale", bodyFor("bank", "T-1"));
  assert.equal(JSON.parse(sold.text).data.line, "terrace");
  const status = JSON.parse((await ask(adminPort, "GET", "/status", "")).text);
  assert.deepEqual(Object.keys(status.services).sort(), Object.keys(services).sort());
  assert.equal(status.services["bank-3"].line, "terrace");
  assert.equal(status.services["bank-3"].heard.state, "heard");
  assert.deepEqual(status.services["qr-kiosk"].offer.systems[0].operations, ["showqrcode", "check"]);
  const journal = new PoslineProcess(["journal", "--config", file, "--json"]);
  assert.equal(await journal.ended(), 0, journal.stderr);
  assert.equal(JSON.parse(journal.stdout.trim().split("\n").at(-1) ?? "").service, "bank-3");
  const called = new PoslineProcess(["call", "bank-2", "check", '{"pay_id":"C-1"}', "--config", file]);
  assert.equal(await called.ended(), 0, called.stderr);
  assert.equal(JSON.parse(called.stdout).data.line, "bar");
});

test("posline call's printed command resumes at the terminal that was asked, from any folder, and never at another", async () => {
  const [desk, bar] = [terminals.get("desk"), terminals.get("bar")];
  assert.ok(desk && bar);
  const usual = bar.behaviour;
  bar.behaviour = (asked, terminal) => (asked.text.startsWith("/sale") ? undefined : usual(asked, terminal));
  const before = desk.calls.length;
  const sale = '{"amount":1531,"currency_name":"EUR"}';
  const began = new PoslineProcess(["call", "bank-2", "sale", sale, "--wait", "--config", file], { env: asConfigured });
  await until(() => bar.calls.some(({ text }) => text.startsWith("/sale")), "the sale to be asked");
  assert.equal(await began.ended("SIGTERM"), 75, began.stderr);
  const printed = /^Resume it with: posline (call --resume .*)$/m.exec(began.stderr)?.[1];
  assert.ok(printed !== undefined, began.stderr);
  const token: { readonly service: string; readonly contract: string } = JSON.parse(/'(\{.*\})'/.exec(printed)?.[1] ?? "");
  assert.deepEqual([token.service, token.contract], ["bank-2", "bank"]);
  bar.behaviour = usual;
  const resumed = await run("bash", ["-c", `cd / && ${quotedWords(process.execPath, bundle)} ${printed}`]);
  assert.equal(JSON.parse(resumed.stdout).result, "approved", resumed.stderr);
  assert.equal(desk.calls.length, before, "the other bank terminal was asked nothing");
  // Without its address the operation goes on nowhere.
  const nowhere = new PoslineProcess(["call", "--resume", JSON.stringify(token)], { env: asConfigured });
  assert.equal(await nowhere.ended(), 64);
  assert.match(nowhere.stderr, /^Cannot resume: the token is of the service "bank-2": give its address with --url/);
  assert.equal(desk.calls.length, before);
});

test("serve --emulated plays bank and bank-2 as two terminals, and its control API takes either name", async (t) => {
  const [first, second, admin] = await freePorts(3);
  const path = join(folder.path, "emulated.json");
  const banks = { bank: { line: "one", port: first }, "bank-2": { contract: "bank", line: "two", port: second } };
  const twoLines = { one: { path: "/dev/ttyS0" }, two: { path: "/dev/ttyS1" } };
  writeFileSync(path, JSON.stringify({ lines: twoLines, services: banks, admin: { port: admin } }));
  const emulated = new PoslineProcess(["serve", "--emulated", "--config", path], { env: asConfigured });
  t.after(() => emulated.ended("SIGTERM"));
  const posted = async (name: string, route: string, body: object) =>
    JSON.parse((await ask(await emulated.port(name), "POST", route, JSON.stringify(body))).text);
  const sale = (pay_id: string) => ({ pay_id, amount: 1500, currency_name: "EUR" });
  await posted("admin", "/emulator", { next: { service: "bank-2", route: "/sale", outcome: "declined" } });
  const results: Record<string, unknown> = {};
  for (const name of ["bank", "bank-2"]) {
    await posted(name, "/sale", sale(`OF-${name}`));
    await posted(name, "/check", { pay_id: `OF-${name}` });
    results[name] = (await posted(name, "/check", { pay_id: `OF-${name}` })).data.status;
  }
  assert.deepEqual(results, { bank: "APPROVED", "bank-2": "ERROR" });
  assert.equal((await posted("bank", "/check", { pay_id: "OF-bank-2" })).code, -15, "another terminal's sale is not found");
});
