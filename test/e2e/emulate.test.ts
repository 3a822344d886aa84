import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { emulatedMerchantId } from "../../src/config/overrides.ts";
import { ask, startedBridge } from "../support/bridge-process.ts";
import { Pty } from "../support/pty.ts";
import { endAll, fiscalForm, folder, posline, post, receipt, resultOf, saleOf } from "./emulating.ts";

/** `posline emulate` as its users meet it: over HTTP, on a pty with a bridge on the other end, and both at once. */

after(endAll);

test("posline emulate serves all three services over HTTP, and stops with 0 on either signal", async () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    const emulator = posline(["emulate"]);
    const bank = await emulator.port("bank");
    const fiscal = await emulator.port("fiscal");
    assert.equal((await post(bank, "/sale", saleOf("P-1"))).text, '{"status":"success"}');
    assert.match(await resultOf(bank, "P-1"), /"APPROVED"/);
    assert.match((await post(fiscal, "/sale", fiscalForm(receipt("R-1")))).text, /"code":0/);
    assert.match((await ask(fiscal, "GET", "/supported_operations", "")).text, /"success"/);
    assert.match((await post(await emulator.port("qr"), "/check_connection", "")).text, /"success"/);
    // What no contract has is the listener's, what is wrong with a body is the emulator's.
    assert.equal((await post(bank, "/sell", "{}")).status, 404);
    const wrong = await post(bank, "/sale", "nonsense");
    assert.equal(wrong.status, 200);
    assert.match(wrong.text, /"code":-29/);
    await emulator.until(() => (emulator.stderr.includes("Stop it with") ? true : undefined), "the greeting");
    assert.match(emulator.stderr, new RegExp(`bank +http://localhost:${bank}\n`));
    assert.match(emulator.stderr, /\/emulator\n/);
    assert.equal(await emulator.ended(signal), 0);
    assert.ok(emulator.log.some((line) => line["msg"] === "exchange" && line["route"] === "/sale" && line["key"] === "P-1"));
  }
});

test("posline emulate asks for the API key over HTTP, and checks signs with the merchant's id", async () => {
  const key = join(folder.path, "key");
  const merchantId = join(folder.path, "merchant");
  writeFileSync(key, "KEY-1\n");
  writeFileSync(merchantId, "OTHER\n");
  const emulator = posline(["emulate", "--api-key-file", key, "--merchant-id-file", merchantId]);
  const bank = await emulator.port("bank");
  assert.equal((await post(bank, "/sale", saleOf("P-1"))).status, 401);
  assert.equal((await post(bank, "/sale", saleOf("P-1"), { "X-API-Key": "KEY-1" })).status, 200);
  assert.match((await post(await emulator.port("fiscal"), "/sale", fiscalForm(receipt("R-1")))).text, /"code":1[,}]/);
  await emulator.ended("SIGTERM");
  assert.doesNotMatch(emulator.stderr + emulator.stdout, /KEY-1|OTHER/);
});

/** Two ttys whose far ends are joined, as by a null-modem cable: one for the bridge, one for the emulator. */
function cable(name: string) {
  const ends: { readonly near: Pty; readonly far: Pty } = {
    near: new Pty((bytes) => void ends.far.write(bytes)),
    far: new Pty((bytes) => void ends.near.write(bytes)),
  };
  const near = join(folder.path, `${name}-bridge`);
  const far = join(folder.path, `${name}-emulator`);
  ends.near.linkAt(near);
  ends.far.linkAt(far);
  const unplug = () => {
    ends.near.unplug();
    ends.far.unplug();
  };
  return { near, far, unplug };
}

const bridgeOn = (path: string) =>
  startedBridge({
    lines: { till: { path } },
    services: { fiscal: { line: "till", merchantId: emulatedMerchantId }, bank: { line: "till" }, qr: { line: "till" } },
  });

test("posline emulate --line --no-http is the terminal at the end of a bridge's cable", async () => {
  const { near, far, unplug } = cable("alone");
  const emulator = posline(["emulate", "--line", far, "--no-http"]);
  const bridge = await bridgeOn(near);
  const approved = await bridge.post("bank", "/sale", saleOf("P-1"));
  assert.equal(approved.headers["x-posline-outcome"], "answered");
  assert.match(await resultOf(await bridge.port("bank"), "P-1"), /"APPROVED"/);
  assert.match((await bridge.post("fiscal", "/sale", fiscalForm(receipt("R-1")))).text, /"code":0/);
  // The answer's checksum is wrong: the bridge can't know what became of it, and asks.
  const corrupt = await bridge.post("bank", "/sale", saleOf("P-2", 1534));
  assert.equal(corrupt.status, 502);
  assert.equal(corrupt.headers["x-posline-outcome"], "unknown");
  assert.match(await resultOf(await bridge.port("bank"), "P-2"), /"APPROVED"/);
  assert.equal(await bridge.stop(), 0);
  assert.equal(await emulator.ended("SIGTERM"), 0);
  assert.ok(!emulator.log.some((line) => line["msg"] === "listening"));
  assert.ok(
    emulator.log.some((line) => line["msg"] === "exchange" && line["service"] === "fiscal" && line["route"] === "/sale"),
  );
  assert.match(emulator.stderr, new RegExp(`line +${far}\n`));
  unplug();
});

test("posline emulate waits for a device that isn't there yet", async () => {
  const link = join(folder.path, "later");
  const emulator = posline(["emulate", "--line", link, "--no-http"]);
  await emulator.logged((line) => /no device|no such/i.test(String(line["reason"])), "the missing device");
  const pty = new Pty(() => {}).linkAt(link);
  await emulator.logged((line) => line["reason"] === "the device opened", "the device to open");
  assert.equal(await emulator.ended("SIGTERM"), 0);
  pty.unplug();
});

test("posline emulate takes services and ports of a file that is named, and none of its devices", async () => {
  const file = join(folder.path, "posline.json");
  const lines = { till: { path: "/dev/ttyS99", baudRate: 9600 } };
  const services = { bank: { line: "till", allowOrigins: ["https://till.example"] } };
  writeFileSync(file, JSON.stringify({ lines, services }));
  const env = { POSLINE_FISCAL_PORT: undefined, POSLINE_QR_PORT: undefined };
  const emulator = posline(["emulate", "--config", file], env);
  const bank = await emulator.port("bank");
  const answer = await post(bank, "/sale", saleOf("P-1"), { Origin: "https://till.example" });
  assert.equal(answer.headers["access-control-allow-origin"], "https://till.example");
  await emulator.ended("SIGTERM");
  assert.doesNotMatch(emulator.stdout, /ttyS99/);
});
