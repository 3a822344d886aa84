import assert from "node:assert/strict";
import { once } from "node:events";
import { accessSync, constants, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ask, BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { obeyed } from "../support/evil-text.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { answering, type Behaviour, Terminal } from "../support/terminal.ts";
import { withBridge } from "../support/with-bridge.ts";

test("SIGTERM lets the exchange in flight end, refuses what waits and what comes, and exits with 0", async () => {
  let release: (() => void) | undefined;
  const asked = new Promise<void>((resolve) => {
    release = resolve;
  });
  let answerNow = () => {};
  const holding: Behaviour = async (request, self) => {
    if (!request.text.startsWith("/sale")) {
      await answering(() => '{"status":"success"}')(request, self);
      return;
    }
    release?.();
    await new Promise<void>((resolve) => {
      answerNow = resolve;
    });
    await self.reply("length", '{"status":"success","data":{"rrn":"1"}}');
  };
  await withBridge({ services: { bank: {} } }, holding, async ({ bridge, terminal }) => {
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
    }
  });
});

test("A till that gave up while posline stood still is sold nothing, without a journal as with one", async () => {
  const folder = scratchFolder();
  for (const journal of [false, { folder: folder.path }]) {
    const terminal = new Terminal(
      join(folder.path, "tty"),
      answering(() => '{"status":"success"}'),
    );
    const bridge = await startedBridge({
      lines: { till: { path: terminal.link } },
      services: { bank: { line: "till" } },
      journal,
    });
    const port = await bridge.port("bank");
    for (const number of [1, 2, 3]) {
      bridge.child.kill("SIGSTOP");
      const body = JSON.stringify({ pay_id: `A-${number}`, amount: 1500, currency_name: "EUR" });
      await assert.rejects(ask(port, "POST", "/sale", body, {}, 100), /it left/);
      bridge.child.kill("SIGCONT");
      await bridge.logged(({ key, reason }) => key === `A-${number}` && reason === "caller-left", "the sale to be refused");
    }
    assert.equal(await bridge.stop(), 0);
    terminal.unplug();
    assert.deepEqual(terminal.calls, []);
  }
  folder.remove();
});

test("SIGINT ends an idle bridge with 0, and it leaves no lock behind", async () => {
  const silent = answering(() => "{}");
  await withBridge({ services: { bank: {} } }, silent, async ({ bridge, terminal }) => {
    const lockFile = `/run/lock/LCK..${terminal.device.replace("/dev/", "").replaceAll("/", "_")}`;
    // Where that folder may not be written, the driver's lock is all there is.
    if (isWritable("/run/lock")) assert.ok(existsSync(lockFile), "locked while it serves");
    assert.equal(await bridge.stop("SIGINT"), 0);
    assert.equal(existsSync(lockFile), false);
  });
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
  assert.equal(await bridge.ended(), 69);
  assert.match(bridge.stderr, new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${port}: another process has it`));
  taken.close();
  await bridge.stop();
});

test("serve names every problem of its configuration, and exits with 78", async () => {
  const bridge = new BridgeProcess({
    lines: { till: { path: "/dev/ttyS9", baudRte: 9600 } },
    services: { bank: { line: "tll" } },
  });
  assert.equal(await bridge.ended(), 78);
  assert.match(bridge.stderr, /lines\.till\.baudRte: .*did you mean baudRate/);
  assert.match(bridge.stderr, /services\.bank\.line: there is no line "tll"/);
  await bridge.stop();
});

test("A command that can't begin says why, and nothing of its configuration commands the terminal", async () => {
  const odd = "\u009b2J\u202e\u200bé";
  const folder = mkdtempSync(join(tmpdir(), "posline-odd-"));
  const config = join(folder, "c.json");
  writeFileSync(
    config,
    JSON.stringify({ lines: { till: { path: `/dev/${odd}`, [odd]: 1 } }, services: { bank: { line: odd } } }),
  );
  try {
    for (const [args, code] of [
      [["serve", "--config", config], 78],
      [["tap", "--raw", "--config", config], 78],
      [["tap", "--raw", "--line", `/dev/${odd}`], 69],
    ] as const) {
      const process = new PoslineProcess(args, { env: { POSLINE_FISCAL_PORT: undefined, POSLINE_QR_PORT: undefined } });
      assert.equal(await process.ended(), code, process.stderr);
      assert.match(process.stderr, /é/);
      assert.doesNotMatch(process.stdout + process.stderr, obeyed);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
