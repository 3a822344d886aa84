import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { ask, type BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { type Asked, probeReply, Terminal } from "../support/terminal.ts";

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
