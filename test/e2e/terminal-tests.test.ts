import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { ask, BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { sessionOf } from "../support/session.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { endAll, posline, resultOf } from "./emulating.ts";

/**
 * `POST /test` of the admin port: a terminal is asked, and a test sale is made and given back, by a running posline.
 *
 * Tests src/trial/terminal-test.ts, src/trial/terminal-tests.ts, src/trial/sale-test.ts.
 */

after(endAll);

interface Sale {
  readonly steps: readonly { readonly route: string; readonly key: string; readonly type: string }[];
  readonly end?: string;
  readonly message?: string;
}

const post = async (admin: number, body: object, headers: Record<string, string> = {}) => {
  const { status, text } = await ask(admin, "POST", "/test", JSON.stringify(body), headers);
  return { status, json: JSON.parse(text) as Record<string, unknown> };
};

const token = "t-1-of-the-admin-port";
/** Makes a test sale, and waits for its end. */
async function sold(admin: number, service = "bank", headers: Record<string, string> = {}): Promise<Sale> {
  const { status } = await post(admin, { service, sale: { amount: 1, currency: "EUR" } }, headers);
  assert.equal(status, 200);
  for (;;) {
    const { sales } = JSON.parse((await ask(admin, "GET", "/test", "", headers)).text) as { sales: Record<string, Sale> };
    const sale = sales[service];
    if (sale?.end !== undefined) return sale;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("POST /test asks each service's own question, and says the time of the answer and what the terminal offers", async () => {
  const emulated = posline(["serve", "--emulated"]);
  const admin = await emulated.port("admin");
  await emulated.port("qr");
  for (const [service, offered] of [
    ["fiscal", /check_status/],
    ["bank", /"sale"/],
    ["qr", /showqrcode/],
  ] as const) {
    const { status, json } = await post(admin, { service });
    assert.deepEqual([status, json["service"], json["outcome"]], [200, service, "answered"]);
    assert.ok(Number(json["ms"]) > 0);
    assert.match(JSON.stringify(json["offer"]), offered);
  }
  for (const [body, why] of [
    [{ service: "till" }, /service: must be "fiscal", "bank" or "qr", not "till"/],
    [{ service: "bank", sale: { amount: 0, currency: "EUR" } }, /sale.amount/],
    [{ service: "bank", sale: { amount: 1.5, currency: "EUR" } }, /sale.amount/],
    [{ service: "bank", sale: { amount: 1 } }, /currency/],
    [{ service: "fiscal", sale: { amount: 1, currency: "EUR" } }, /fiscal has no test sale/],
    [[], /JSON object/],
  ] as const) {
    const { status, json } = await post(admin, body);
    assert.equal(status, 400);
    assert.match(String(json["error"]), why);
  }
  for (const [path, body, twice] of [
    ["/test", '{"service":"bank","sale":{"amount":100,"amount":900,"currency":"EUR"}}', /sale\.amount: set twice/],
    ["/emulator", '{"advanceMs":1,"advanceMs":2}', /advanceMs: set twice/],
    ["/journal/settle", '{"key":"A","as":"not-done","as":"done","note":"n"}', /as: set twice/],
  ] as const) {
    const { status, text } = await ask(admin, "POST", path, body);
    assert.equal(status, 400, path);
    assert.match(text, twice);
  }
  assert.equal((await ask(admin, "GET", "/test", "")).text.trim(), '{"sales":{}}', "nothing was sold");
  const foreign = await post(admin, { service: "bank" }, { Origin: "http://evil.example" });
  assert.equal(foreign.status, 403);
  await emulated.ended("SIGTERM");
});

test("POST /test sells once, follows it, gives it back once by a key of its own, and tells each step", async () => {
  const emulated = posline(["serve", "--emulated"]);
  const admin = await emulated.port("admin");
  const bank = await emulated.port("bank");
  const sale = await sold(admin);
  assert.deepEqual([sale.end, sale.message], ["given-back", undefined]);
  const [sent, back] = ["/sale", "/cancel"].map((path) => sale.steps.find(({ route }) => route === path));
  assert.ok(sent !== undefined && back !== undefined && sent.key !== back.key);
  assert.match(await resultOf(bank, sent.key), /"status":"success"/);
  assert.match(await resultOf(bank, back.key), /"status":"success"/);
  const again = await sold(admin);
  assert.ok(!sale.steps.some(({ key }) => again.steps.some((each) => each.key === key)));

  await ask(admin, "POST", "/emulator", JSON.stringify({ next: { service: "bank", outcome: "declined" } }));
  const declined = await sold(admin);
  assert.equal(declined.end, "not-approved");
  assert.ok(declined.steps.every(({ route }) => route === "/sale"));

  await ask(admin, "POST", "/emulator", JSON.stringify({ next: { service: "bank", route: "/cancel", outcome: "declined" } }));
  const kept = await sold(admin);
  assert.equal(kept.end, "kept");
  assert.match(String(kept.message), /Give it back at the terminal$/);
  await emulated.ended("SIGTERM");
});

/** A bridge before a bank that answers as a test says, with what it was sent. */
async function before(
  hasToken: boolean,
  answer: (text: string) => string | undefined,
  body: (admin: number, sent: string[]) => Promise<void>,
) {
  const folder = scratchFolder();
  const tokenFile = join(folder.path, "token");
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const sent: string[] = [];
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(({ text }) => {
      sent.push(text);
      return answer(text);
    }),
  );
  const [port = 0] = await freePorts(1);
  const bridge = new BridgeProcess(
    {
      lines: { till: { path: terminal.link } },
      services: { "bank-2": { contract: "bank", line: "till", port, apiKey: "k-1", replyTimeoutMs: { "/sale": 3_001 } } },
      journal: { folder: folder.path },
      ...(hasToken && { admin: { tokenFile } }),
    },
    { env: { POSLINE_ADMIN_PORT: "0" } },
  );
  try {
    await bridge.state("till", "idle");
    await body(await bridge.port("admin"), sent);
  } finally {
    await bridge.stop("SIGKILL");
    terminal.unplug();
  }
}

test("POST /test asks for anybody, and sells only for who has a session or the token, at a bank with an API key as well", () =>
  before(
    false,
    () => '{"status":"success"}',
    async (admin, sent) => {
      const sale = { service: "bank-2", sale: { amount: 1, currency: "EUR" } };
      const { status, json } = await post(admin, sale);
      assert.deepEqual([status, (await post(admin, { service: "bank-2" })).status], [401, 200]);
      assert.match(JSON.stringify(json), /open the address that sudo posline page prints/);
      assert.equal(sent.filter((text) => text.startsWith("/sale")).length, 0);
      assert.equal((await post(admin, sale, await sessionOf(admin))).status, 200);
      await until(() => sent.some((text) => text.startsWith("/sale")), "the sale to be sent");
    },
  ));
