import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import type { ServiceName } from "../../src/core/call.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { BridgeProcess, bundle, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { answering, barrierReply, Terminal } from "../support/terminal.ts";

const merchantId = "SECRET-MERCHANT-77";
const apiKey = "SECRET-API-KEY-88";
const cardNumber = "4111111111111111";

const threeServices = (link: string) => ({
  lines: { till: { path: link } },
  services: {
    fiscal: { line: "till", merchantId },
    bank: { line: "till", apiKey },
    qr: { line: "till" },
  },
});

const signed = (json: string) => {
  const data = Buffer.from(json).toString("base64");
  return `data=${data}&sign=${signOf(data, merchantId)}`;
};

interface Bad {
  readonly what: string;
  readonly service: ServiceName;
  readonly path: string;
  readonly body: string;
  readonly headers?: Record<string, string>;
  readonly status: number;
  readonly code: number;
}

const key = { "x-api-key": apiKey };
const badInputs: readonly Bad[] = [
  { what: "no JSON", service: "bank", path: "/sale", body: "hello", headers: key, status: 200, code: -29 },
  { what: "a JSON list", service: "bank", path: "/sale", body: "[]", headers: key, status: 200, code: -29 },
  { what: "an empty body", service: "bank", path: "/sale", body: "", headers: key, status: 200, code: -29 },
  { what: "an unknown route", service: "bank", path: "/sales", body: "{}", headers: key, status: 404, code: -80 },
  { what: "no key", service: "bank", path: "/sale", body: "{}", status: 401, code: -29 },
  { what: "a wrong key", service: "bank", path: "/sale", body: "{}", headers: { "x-api-key": "no" }, status: 401, code: -29 },
  { what: "a foreign host", service: "qr", path: "/check", body: "{}", headers: { host: "evil.com" }, status: 421, code: 1 },
  {
    what: "a foreign origin",
    service: "qr",
    path: "/check",
    body: "{}",
    headers: { origin: "https://evil.com" },
    status: 403,
    code: 1,
  },
  { what: "no JSON for qr", service: "qr", path: "/check", body: "{", status: 400, code: 1 },
  { what: "too much", service: "qr", path: "/check", body: `{"a":"${"x".repeat(1024 * 1024)}"}`, status: 413, code: 1 },
  { what: "no form", service: "fiscal", path: "/sale", body: "{}", status: 200, code: 3 },
  { what: "no sign", service: "fiscal", path: "/sale", body: "data=e30=", status: 200, code: 3 },
  { what: "a wrong sign", service: "fiscal", path: "/sale", body: "data=e30=&sign=AAAA", status: 200, code: 1 },
  { what: "no Base64", service: "fiscal", path: "/sale", body: "data=%02%03&sign=AAAA", status: 200, code: 2 },
  { what: "data twice", service: "fiscal", path: "/sale", body: `${signed("{}")}&data=e30=`, status: 200, code: 2 },
  {
    what: "a smuggled command",
    service: "fiscal",
    path: "/check_status",
    body: `command=/sale&${signed("{}")}`,
    status: 200,
    code: 2,
  },
  {
    what: "an unknown route",
    service: "fiscal",
    path: "/nope",
    body: signed("{}"),
    status: 404,
    code: contracts.fiscal.faultCodes.route,
  },
];

test("bridge answers bad input of every kind in the service's own envelope, sends none of it, and goes on", async () => {
  const folder = scratchFolder();
  const link = join(folder.path, "tty");
  const terminal = new Terminal(
    link,
    answering(() => '{"status":"success"}'),
  );
  const bridge = await startedBridge(threeServices(link));
  try {
    for (const { what, service, path, body, headers, status, code } of badInputs) {
      const answer = await bridge.post(service, path, body, headers ?? {});
      const envelope = JSON.parse(answer.text);
      assert.equal(answer.status, status, `${service} ${what}: ${answer.text}`);
      assert.equal(answer.headers["x-posline-outcome"], "not-sent", what);
      assert.equal(envelope.status, "error", what);
      assert.equal(envelope.code, code, what);
      assert.ok(envelope.message.length > 20, what);
    }
    // Not HTTP at all.
    for (const garbage of [
      "\x16\x03\x01\x02\x00",
      "\x02command=/sale\x03",
      `GET / HTTP/1.1\r\nX: ${"y".repeat(20_000)}\r\n\r\n`,
    ]) {
      const socket = connect(bridge.port("qr"), "127.0.0.1");
      socket.on("error", () => {});
      socket.end(garbage);
      await once(socket.resume(), "close");
    }
    assert.equal(terminal.calls.length, 0, "calls that reached the line");
    assert.equal((await bridge.post("qr", "/check", '{"pay_id":"A"}')).headers["x-posline-outcome"], "answered");
  } finally {
    await bridge.stop();
    terminal.unplug();
    folder.remove();
  }
});

test("log holds a line for each exchange and no body, secret or card number", async () => {
  const reply = JSON.stringify({ status: "success", code: 0, data: { card_num: cardNumber, track2: "TRACK2-SECRET" } });
  const folder = scratchFolder();
  const link = join(folder.path, "tty");
  const terminal = new Terminal(
    link,
    answering(() => reply),
  );
  const bridge = await startedBridge(threeServices(link));
  const secretBody = JSON.stringify({
    pay_id: "PAY-1",
    amount: 1,
    currency_name: "EUR",
    txn_config: { pan: cardNumber, pin: "PIN-SECRET" },
  });
  try {
    await bridge.post("bank", "/sale", secretBody, key);
    await bridge.post("bank", "/sale", secretBody, { "x-api-key": "WRONG-KEY-SECRET" });
    await bridge.post("bank", `/sale/${cardNumber}?pan=${cardNumber}`, secretBody, key);
    await bridge.post("bank", "/sale", `{"pan":"${cardNumber}"`, key);
    await bridge.post(
      "fiscal",
      "/sale",
      signed(`{"documentExtID":"DOC-1","extraPayments":[{"trxParams":{"cardNumber":"${cardNumber}"}}]}`),
    );
    await bridge.post("qr", "/check", secretBody, { origin: `https://${cardNumber}.com`, host: "localhost" });
    terminal.behaviour = async (asked, self) => {
      const frame = self.frame("length", barrierReply(asked) ?? `{"status":"success","card":"${cardNumber}"}`);
      await self.send(barrierReply(asked) === undefined ? Buffer.from(frame).fill(0, frame.length - 2) : frame);
    };
    const corrupt = await bridge.post("qr", "/check", secretBody);
    assert.equal(corrupt.status, 502);
    assert.equal(
      terminal.calls.filter(({ text }) => text.startsWith(":8887/check\n")).length,
      2,
      "what only reads is asked once more",
    );
    await bridge.logged((line) => line["msg"] === "bytes were discarded", "the corrupt frame");
    const exchange = bridge.log.find((line) => line["msg"] === "exchange" && line["outcome"] === "answered");
    assert.deepEqual(
      { ...exchange, time: 0, requestId: 0, queueMs: 0, lineMs: 0 },
      {
        ...{
          level: "info",
          time: 0,
          requestId: 0,
          service: "bank",
          route: "/sale",
          key: "PAY-1",
          requestBytes: secretBody.length,
        },
        ...{
          outcome: "answered",
          httpStatus: 200,
          status: "success",
          code: 0,
          replyBytes: reply.length,
          queueMs: 0,
          lineMs: 0,
        },
        msg: "exchange",
      },
    );
    assert.ok(bridge.log.some((line) => line["key"] === "DOC-1"));
    await bridge.stop();
    for (const secret of ["SECRET", cardNumber, "pan", Buffer.from(cardNumber).toString("hex").slice(0, 20)]) {
      assert.equal(bridge.logText.includes(secret), false, `${secret} is in the log`);
      assert.equal(bridge.stderr.includes(secret), false, `${secret} is on standard error`);
    }
  } finally {
    await bridge.stop();
    terminal.unplug();
    folder.remove();
  }
});

test("SIGTERM lets the exchange in flight end, refuses what waits and what comes, and exits with 0", async () => {
  const folder = scratchFolder();
  const link = join(folder.path, "tty");
  let release: (() => void) | undefined;
  const asked = new Promise<void>((resolve) => {
    release = resolve;
  });
  let answerNow = () => {};
  const terminal = new Terminal(link, async (request, self) => {
    if (!request.text.startsWith("/sale")) {
      await answering(() => '{"status":"success"}')(request, self);
      return;
    }
    release?.();
    await new Promise<void>((resolve) => {
      answerNow = resolve;
    });
    await self.reply("length", '{"status":"success","data":{"rrn":"1"}}');
  });
  const bridge = await startedBridge({ lines: { till: { path: link } }, services: { bank: { line: "till" } } });
  try {
    const inFlight = bridge.post("bank", "/sale", '{"pay_id":"A","amount":1,"currency_name":"EUR"}');
    await asked;
    const waiting = bridge.post("bank", "/check", '{"pay_id":"B"}');
    await new Promise((resolve) => setTimeout(resolve, 100));
    const exit = once(bridge.child, "exit");
    bridge.child.kill("SIGTERM");
    const refused = await waiting;
    assert.equal(refused.status, 503);
    assert.equal(refused.headers["x-posline-outcome"], "not-sent");
    assert.equal(refused.headers["connection"], "close");
    await assert.rejects(bridge.get("bank", "/supported_operations"), /ECONNREFUSED/);
    answerNow();
    assert.equal((await inFlight).text, '{"status":"success","data":{"rrn":"1"}}');
    assert.deepEqual(await exit, [0, null]);
    assert.equal(terminal.calls.length, 1);
  } finally {
    answerNow();
    await bridge.stop();
    terminal.unplug();
    folder.remove();
  }
});

test("SIGINT ends an idle bridge with 0, and it leaves no lock behind", async () => {
  const folder = scratchFolder();
  const link = join(folder.path, "tty");
  const terminal = new Terminal(
    link,
    answering(() => "{}"),
  );
  const bridge = await startedBridge({ lines: { till: { path: link } }, services: { bank: { line: "till" } } });
  const lockFile = `/run/lock/LCK..${terminal.device.replace("/dev/", "").replaceAll("/", "_")}`;
  // Where that folder may not be written, the driver's lock is all there is.
  if (isWritable("/run/lock")) assert.ok(existsSync(lockFile), "locked while it serves");
  assert.equal(await bridge.stop("SIGINT"), 0);
  assert.equal(existsSync(lockFile), false);
  terminal.unplug();
  folder.remove();
});

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

test("serve says which port is taken, and exits with 69", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const bridge = new BridgeProcess(
    { lines: { till: { path: "/dev/null-tty" } }, services: { bank: { line: "till", port } } },
    { env: { POSLINE_BANK_PORT: String(port) } },
  );
  await once(bridge.child, "exit");
  assert.equal(bridge.child.exitCode, 69);
  assert.match(bridge.stderr, new RegExp(`Cannot listen on port ${port}: another process has it`));
  taken.close();
  await bridge.stop();
});

test("serve names every problem of its configuration, and exits with 78", async () => {
  const bridge = new BridgeProcess({
    lines: { till: { path: "/dev/ttyS9", baudRte: 9600 } },
    services: { bank: { line: "tll" } },
  });
  await once(bridge.child, "exit");
  assert.equal(bridge.child.exitCode, 78);
  assert.match(bridge.stderr, /lines\.till\.baudRte: .*did you mean baudRate/);
  assert.match(bridge.stderr, /services\.bank\.line: there is no line "tll"/);
  await bridge.stop();
});

test("bundle runs where there are no node_modules, with the prebuild beside it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "posline-alone-"));
  try {
    cpSync(join(bundle, ".."), join(folder, "dist"), { recursive: true });
    assert.equal(existsSync(join(folder, "node_modules")), false);
    const link = join(folder, "tty");
    const terminal = new Terminal(
      link,
      answering(() => "{}"),
    );
    writeFileSync(
      join(folder, "c.json"),
      JSON.stringify({ lines: { till: { path: link } }, services: { qr: { line: "till" } } }),
    );
    const child = spawn(process.execPath, [join(folder, "dist/posline.cjs"), "serve", "--config", join(folder, "c.json")], {
      env: { PATH: "", POSLINE_QR_PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    await new Promise<void>((resolve, reject) => {
      child.stdout?.on("data", (piece) => {
        text += piece;
        if (text.includes('"state":"idle"')) resolve();
      });
      child.on("exit", () => reject(new Error(text)));
    });
    child.removeAllListeners("exit");
    const exit = once(child, "exit");
    child.kill();
    await exit;
    terminal.unplug();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
