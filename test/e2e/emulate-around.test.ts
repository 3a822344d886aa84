import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { emulatedMerchantId } from "../../src/config/overrides.ts";
import { ask, type HttpAnswer, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { bundle } from "../support/posline-process.ts";
import { endAll, fiscalForm, folder, posline, post, receipt, resultOf, saleOf } from "./emulating.ts";

/** What is around the emulator, as its users meet it: its state file, its control API, its flags, and `serve --emulated`. */

after(endAll);

const viewOf = async (port: number) => JSON.parse((await ask(port, "GET", "/emulator", "")).text);
const followed = (port: number, sale: string) => ask(port, "POST", "/sale", sale, { Prefer: "wait=60" });
const errorOf = ({ text }: HttpAnswer): string => JSON.parse(text).error;

test("posline emulate --state keeps documents and operations over a restart, killed or not", async () => {
  const state = join(folder.path, "kept.json");
  const first = posline(["emulate", "--state", state]);
  const issued = await post(await first.port("fiscal"), "/sale", fiscalForm(receipt("R-1")));
  await post(await first.port("bank"), "/sale", saleOf("P-1"));
  const { documentID } = JSON.parse(issued.text);
  assert.equal((await post(await first.port("admin"), "/emulator", '{"advanceMs":3600000}')).status, 200);
  // It was on disk before the answer left.
  await first.ended("SIGKILL");
  const second = posline(["emulate", "--state", state]);
  const found = await post(await second.port("fiscal"), "/check_status", fiscalForm({ documentExtID: "R-1" }));
  assert.equal(JSON.parse(found.text).documentID, documentID);
  assert.match(await resultOf(await second.port("bank"), "P-1"), /"APPROVED"/);
  const { now } = await viewOf(await second.port("admin"));
  assert.ok(Date.parse(now) > Date.now() + 3_000_000, now);
  assert.equal(await second.ended("SIGTERM"), 0);
});

test("posline emulate answers and logs an error when a state can't be written any more", async () => {
  const gone = scratchFolder();
  const state = join(gone.path, "state.json");
  const emulator = posline(["emulate", "--service", "bank", "--state", state]);
  const bank = await emulator.port("bank");
  gone.remove();
  assert.equal((await post(bank, "/sale", saleOf("P-1"))).text, '{"status":"success"}');
  const line = await emulator.logged(({ msg }) => msg === "the emulator's state could not be saved", "the error");
  assert.equal(line["level"], "error");
  assert.equal(line["path"], state);
  assert.equal(await emulator.ended("SIGTERM"), 0);
});

test("posline emulate leaves a state file alone that another one has begun to keep, and its log says so", async () => {
  const state = join(folder.path, "shared.json");
  const [first, second] = [
    posline(["emulate", "--service", "bank", "--state", state]),
    posline(["emulate", "--service", "bank", "--state", state, "--admin-port", "0"]),
  ];
  const [bank, other] = [await first.port("bank"), await second.port("bank")];
  const late = posline(["emulate", "--service", "bank", "--state", state, "--admin-port", "0"]);
  await post(await late.port("bank"), "/sale", saleOf("P-3"));
  const kept = readFileSync(state, "utf8");
  for (const [emulator, port] of [
    [first, bank],
    [second, other],
  ] as const) {
    assert.equal((await post(port, "/sale", saleOf("P-1"))).text, '{"status":"success"}');
    const line = await emulator.logged(({ msg }) => msg === "the emulator's state could not be saved", "the error");
    assert.match(String(line["error"]), /: another process has written it since: name another file for one of the two, and/);
  }
  assert.equal(readFileSync(state, "utf8"), kept);
  await post(await late.port("bank"), "/sale", saleOf("P-4"));
  assert.match(readFileSync(state, "utf8"), /"P-3".*"P-4"/);
  for (const emulator of [first, second, late]) assert.equal(await emulator.ended("SIGTERM"), 0);
});

test("the control API takes nothing for a service that nobody can reach", async () => {
  const emulator = posline(["emulate", "--service", "bank", "--admin-port", "0"]);
  const admin = await emulator.port("admin");
  for (const effect of [{ fault: "corrupt" }, { outcome: "declined" }]) {
    const refused = await post(admin, "/emulator", JSON.stringify({ next: { service: "qr", ...effect } }));
    assert.equal(refused.status, 400);
    assert.match(errorOf(refused), /next\.service: must be "bank", not "qr"/);
  }
  assert.deepEqual((await viewOf(admin)).forced, []);
  await emulator.ended("SIGTERM");
});

test("serve --emulated has the same emulator: control, faults over its line, and state", async () => {
  const state = join(folder.path, "served.json");
  const bridge = posline(["serve", "--emulated", "--state", state]);
  await bridge.logged((line) => line["state"] === "idle", "the line to be clean");
  const bank = await bridge.port("bank");
  const control = (body: unknown) => bridge.port("admin").then((port) => post(port, "/emulator", JSON.stringify(body)));
  assert.equal((await control({ next: { service: "bank", route: "/sale", fault: "truncated" } })).status, 200);
  const cut = await post(bank, "/sale", saleOf("P-1"));
  assert.equal(cut.headers["x-posline-outcome"], "unknown");
  assert.match(await resultOf(bank, "P-1"), /"APPROVED"/);
  const unplugged = await post(bank, "/sale", saleOf("P-2", 1542));
  assert.equal(unplugged.status, 502);
  assert.match(unplugged.text, /the line was lost|unplugged/);
  assert.equal(await bridge.ended("SIGTERM"), 0);
  const again = posline(["serve", "--emulated", "--state", state]);
  await again.logged((line) => line["state"] === "idle", "the line to be clean");
  assert.match(await resultOf(await again.port("bank"), "P-2"), /"APPROVED"/);
  assert.equal(await again.ended("SIGTERM"), 0);
});

test("serve --emulated without a configuration keeps a journal in a temporary folder, which is gone at the end", async () => {
  const bridge = posline(["serve", "--emulated"], { TMPDIR: folder.path });
  const bank = await bridge.port("bank");
  const [, kept = ""] = await bridge.until(
    () => / {2}journal {2}(\S+), which is/.exec(bridge.stderr) ?? undefined,
    "a greeting",
  );
  assert.equal(dirname(kept), folder.path);
  assert.ok(readdirSync(kept).includes("journal"));
  const sold = await followed(bank, saleOf("J-1"));
  assert.equal(sold.headers["x-posline-result"], "approved");
  assert.equal(sold.headers["x-posline-repeat-guard"], undefined);
  assert.equal((await followed(bank, saleOf("J-1", 1600))).status, 422, "the key is known");
  const from = bridge.log.length;
  bridge.child.kill("SIGHUP");
  await bridge.logged((line) => line["msg"] === "the configuration was reloaded", "a reload", from);
  assert.equal(await bridge.ended("SIGTERM"), 0);
  assert.equal(existsSync(kept), false);
});

test("serve --emulated --state keeps its journal too: after kill -9 the same call only asks", async () => {
  const state = join(folder.path, "kept.json");
  const bridge = posline(["serve", "--emulated", "--state", state]);
  const bank = await bridge.port("bank");
  const sold = await post(bank, "/sale", saleOf("K-1"));
  assert.equal(sold.status, 200);
  await bridge.ended("SIGKILL");
  const again = posline(["serve", "--emulated", "--state", state]);
  const answer = await followed(await again.port("bank"), saleOf("K-1"));
  assert.deepEqual([answer.headers["x-posline-result"], answer.headers["x-posline-repeat-guard"]], ["approved", undefined]);
  const sent = again.log.filter((line) => line["route"] === "/sale" && line["outcome"] !== undefined);
  assert.deepEqual(sent, [], "it wasn't sent again");
  assert.equal(await again.ended("SIGTERM"), 0);
});

test("serve --emulated leaves the journal of a file alone, keeps none where it says so, and goes on without a temporary folder", async () => {
  const file = join(folder.path, "journal.json");
  const services = { bank: { line: "till" } };
  const write = (journal: unknown) =>
    writeFileSync(file, JSON.stringify({ lines: { till: { path: "/dev/null" } }, services, journal }));
  const noPorts = { POSLINE_FISCAL_PORT: undefined, POSLINE_QR_PORT: undefined };
  write({ folder: folder.path });
  const kept = posline(["serve", "--emulated"], { ...noPorts, POSLINE_CONFIG: file });
  assert.equal((await followed(await kept.port("bank"), saleOf("J-1"))).headers["x-posline-repeat-guard"], undefined);
  assert.equal(await kept.ended("SIGTERM"), 0);
  write(false);
  for (const env of [{ ...noPorts, POSLINE_CONFIG: file }, { TMPDIR: join(folder.path, "none") }]) {
    const bridge = posline(["serve", "--emulated"], env);
    const sold = await followed(await bridge.port("bank"), saleOf("J-1"));
    assert.deepEqual([sold.headers["x-posline-result"], sold.headers["x-posline-repeat-guard"]], ["approved", "off"]);
    const warned = bridge.log.some((line) => /^no journal is kept: /.test(String(line["msg"])));
    assert.equal(warned, "TMPDIR" in env);
    assert.equal(await bridge.ended("SIGTERM"), 0);
  }
  assert.equal(existsSync(join(folder.path, "journal")), false);
});

test("serve --emulated goes on without a control API where its usual port is taken", async () => {
  const holder = createServer();
  // It may be held by somebody else already, which is as good.
  await new Promise<void>((resolve) => {
    holder.once("error", () => resolve());
    holder.listen(8880, "127.0.0.1", resolve);
  });
  const bridge = posline(["serve", "--emulated"], { POSLINE_ADMIN_PORT: undefined });
  const warning = await bridge.logged(
    (line) => line["msg"] === "admin port not opened: the default port is in use",
    "a warning",
  );
  assert.equal(warning["level"], "warn");
  assert.equal(warning["port"], 8880);
  await bridge.port("qr");
  assert.equal(await bridge.ended("SIGTERM"), 0);
  holder.close();
});

test("posline emulate ends with 69 when a port it was told is taken, and leaves nothing running", async () => {
  const first = posline(["emulate", "--service", "bank"]);
  const bank = String(await first.port("bank"));
  const second = posline(["emulate", "--service", "bank"], { POSLINE_BANK_PORT: bank });
  assert.equal(await second.ended(), 69);
  assert.match(second.stderr, new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${bank}: another process has it`, "m"));
  const admin = String(await first.port("admin"));
  const third = posline(["emulate", "--service", "qr", "--admin-port", admin]);
  assert.equal(await third.ended(), 69);
  await first.ended("SIGTERM");
});

test("posline refuses flags of the emulator that make no sense, and says why", async () => {
  const ends: readonly (readonly [readonly string[], number, RegExp])[] = [
    [["serve", "--line", "/dev/null", "--state", "x"], 64, /^Cannot serve: --state is for the emulator only: add --emulated/m],
    [["serve", "--line", "/dev/null", "--fault", "noise=1"], 64, /^Cannot serve: --fault is for the emulator only/m],
    [["serve", "--line", "/dev/null", "--plain-amounts"], 64, /^Cannot serve: --plain-amounts is for the emulator only/m],
    [["serve", "--line", "/dev/null", "--world", "x"], 64, /^Cannot serve: --world is for the emulator only/m],
    [["emulate", "--world"], 64, /^--world needs a value: write for example --world shop\.json$/m],
    [
      ["emulate", "--world", "/none"],
      78,
      /^Cannot use the world of \/none: there is no such file: create it or correct the path$/m,
    ],
    [["serve", "--emulated", "--world", "/none"], 78, /^Cannot use the world of \/none: there is no such file/m],
    [["emulate", "--print-world", "--world", "/none"], 78, /^Cannot use the world of \/none: there is no such file/m],
    [["emulate", "--no-http"], 64, /^Cannot emulate: --no-http leaves no way to reach it: name a device with --line$/m],
    [["emulate", "--servise", "bank"], 64, /^Unknown flag "--servise" of posline emulate: did you mean "--service"\?$/m],
    [["emulate", "--service", "card"], 64, /^--service "card" must be fiscal, bank or qr$/m],
    [["emulate", "--fault", "noise"], 64, /--fault: .*it has no share: write it as noise=0\.05/],
    [["emulate", "--fault", "noise=0.9", "--fault", "late=0.9"], 64, /--fault: the shares add up to more than 1/],
    [["serve", "--emulated", "--seed", "-1"], 64, /--seed: must be a whole number from 0 to 4294967295, not -1/],
    [["emulate", "--seed", "1.5"], 64, /--seed: must be a whole number from 0 to 4294967295, not 1\.5/],
    [["emulate", "--admin-port", "70000"], 64, /--admin-port: must be from 0 to 65535, not 70000/],
    [["emulate", "--api-key-file", "/none", "--service", "bank"], 78, /apiKeyFile: cannot read \/none: there is no such file/],
  ];
  for (const [args, code, message] of ends) {
    const refused = posline(args);
    assert.equal(await refused.ended(), code, args.join(" "));
    assert.match(refused.stderr, message, args.join(" "));
  }
});

test("posline emulate --like prints the shop of a terminal, and says what it could not ask", async () => {
  const [port] = await freePorts(1);
  const [file, id] = [join(folder.path, "like.json"), join(folder.path, "merchant-id")];
  writeFileSync(id, emulatedMerchantId, { mode: 0o600 });
  const known = {
    bank: { terminals: [{ terminal: 70, merchant: 5, merchantName: "Bakery" }], operations: ["terminals", "sale", "check"] },
    qr: { systems: [{ name: "MYPAY", operations: ["showqrcode", "check"], makesTrans: true }] },
    fiscal: { operations: ["supported_operations", "sale", "check_status"] },
  };
  writeFileSync(file, JSON.stringify(known));
  const line = `tcp:127.0.0.1:${port}`;
  const emulator = posline(["emulate", "--line", line, "--no-http", "--no-admin", "--world", file, "--merchant-id-file", id]);
  await emulator.logged(({ msg }) => msg === "posline emulates", "it listens");
  const run = (...args: readonly string[]) => promisify(execFile)(process.execPath, [bundle, "emulate", ...args]);
  const like = await run("--like", line, "--merchant-id-file", id);
  assert.deepEqual([like.stdout, like.stderr], [(await run("--print-world", "--world", file)).stdout, ""]);
  const unsigned = await run("--like", line);
  assert.match(unsigned.stdout, /Bakery/);
  assert.equal(unsigned.stderr, "fiscal isn't asked: add --merchant-id-file, to sign with\n");
  assert.equal(await emulator.ended("SIGTERM"), 0);
  const nobody = posline(["emulate", "--like", line, "--service", "bank"]);
  assert.equal(await nobody.ended(), 69);
  assert.match(nobody.stderr, /^bank is as in the built-in shop: Cannot send .*refuses the connection/);
});

const shop = `{
  "bank": { "terminals": [{ "terminal": 70, "merchant": 5 }], "currencies": { "JPY": ["392"] } }, // one till
  "fiscal": { "operations": ["sale"], "taxes": [{ "taxCode": "A", "taxPrc": 1000 }] }
}`;

test("serve --emulated --world plays the shop behind a bridge", async () => {
  const file = join(folder.path, "bridged-shop.json");
  writeFileSync(file, shop);
  const bridge = posline(["serve", "--emulated", "--world", file]);
  const bank = await bridge.port("bank");
  assert.match((await post(bank, "/sale", saleOf("P-1"))).text, /"code":-47/);
  const sold = JSON.stringify({ pay_id: "P-2", amount: 1500, currency_name: "392" });
  assert.equal((await followed(bank, sold)).headers["x-posline-result"], "approved");
  const missing = await post(await bridge.port("fiscal"), "/get_info", fiscalForm({}));
  assert.match(missing.text, /"status":"error","code":5/);
  assert.equal(await bridge.ended("SIGTERM"), 0);
});

test("the bundle emulates where no node_modules are near", async () => {
  const home = scratchFolder();
  cpSync(dirname(bundle), home.path, { recursive: true });
  const file = join(home.path, "posline.cjs");
  const emulator = posline(["emulate", "--service", "bank", "--state", join(home.path, "state.json")], {}, file);
  const bank = await emulator.port("bank");
  await post(bank, "/sale", saleOf("P-1", 1544));
  assert.match(readFileSync(join(home.path, "state.json"), "utf8"), /"P-1"/);
  assert.equal(await emulator.ended("SIGTERM"), 0);
  const bridge = posline(["serve", "--emulated"], {}, file);
  assert.equal((await ask(await bridge.port("admin"), "GET", "/emulator", "")).status, 200);
  assert.equal(await bridge.ended("SIGTERM"), 0);
});
