import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { ask, BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { bundle } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { endAll, posline } from "./emulating.ts";

/**
 * `posline page` and `posline journal settle` before a running posline: what proves that somebody is on the box.
 *
 * Tests src/cli/page.ts, src/cli/journal-settle.ts.
 */

after(endAll);

const run = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bundle, ...args], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"] ?? "" },
  });
  return { status, stdout, stderr };
};

/** A bridge before a bank that answers no sale. */
async function before(body: (admin: number, folder: string, bridge: BridgeProcess) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(() => undefined),
  );
  const config = {
    lines: { till: { path: terminal.link } },
    services: { bank: { line: "till", replyTimeoutMs: { "/sale": 3_001 } } },
    journal: { folder: folder.path, resolve: false },
  };
  const bridge = new BridgeProcess({ ...config, admin: {} }, { env: { POSLINE_ADMIN_PORT: "0" } });
  try {
    await bridge.state("till", "idle");
    await body(await bridge.port("admin"), folder.path, bridge);
  } finally {
    await bridge.stop("SIGKILL");
    terminal.unplug();
  }
}

test("posline page prints the page's address with a code that is exchanged once; its key is gone with posline", () =>
  before(async (admin, _folder, bridge) => {
    const url = `http://localhost:${admin}`;
    const { status, stdout, stderr } = run("page", "--url", url);
    assert.deepEqual([status, stderr], [0, ""]);
    const [, code] = /^http:\/\/localhost:\d+\/#code=([0-9a-z]+-[0-9a-f]{16})\n$/.exec(stdout) ?? [];
    const exchange = () => ask(admin, "POST", "/page/session", JSON.stringify({ code }));
    assert.deepEqual([(await exchange()).status, (await exchange()).status], [200, 403]);
    const { keyFile } = JSON.parse((await ask(admin, "GET", "/page/paths.json", "")).text);
    assert.equal(await bridge.ended("SIGTERM"), 0);
    assert.throws(() => readFileSync(keyFile), { code: "ENOENT" });
    const away = run("page", "--url", url);
    assert.equal(away.status, 69);
    assert.match(
      away.stderr,
      /^Cannot print the page's address: no posline answers at .* \(nothing listens there\): is posline/,
    );
  }));

test("posline page prints an emulated posline's address without a code, since its page needs none", async () => {
  const emulated = posline(["serve", "--emulated"]);
  const url = `http://localhost:${await emulated.port("admin")}/`;
  assert.deepEqual(run("page", "--url", url), { status: 0, stdout: `${url}\n`, stderr: "" });
});

test("posline journal settle settles at a running posline with its key, and says so if it can't read it", () =>
  before(async (admin, folder, bridge) => {
    const sale = '{"pay_id":"A-1","amount":100,"currency_name":"EUR"}';
    assert.equal((await bridge.post("bank", "/sale", sale)).status, 504);
    const settle = '{"key":"A-1","as":"done","note":"seen"}';
    const refused = await ask(admin, "POST", "/journal/settle", settle, { Host: "localhost" });
    assert.equal(refused.status, 401);
    const file = join(folder, "posline.json");
    const lines = { till: { path: join(folder, "tty") } };
    const services = { bank: { line: "till" } };
    writeFileSync(file, JSON.stringify({ lines, services, journal: { folder }, admin: { port: admin } }));
    const wanted = ["journal", "settle", "A-1", "--as", "done", "--note", "seen", "--config", file];
    const { keyFile } = JSON.parse((await ask(admin, "GET", "/page/paths.json", "")).text);
    renameSync(keyFile, `${keyFile}.away`);
    const away = run(...wanted);
    assert.equal(away.status, 69);
    assert.match(
      away.stderr,
      /^Cannot settle: .*key can't be read \(ENOENT\): run this command on the box, where posline runs/,
    );
    renameSync(`${keyFile}.away`, keyFile);
    const { status, stdout, stderr } = run(...wanted);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /A-1 of 100 is settled: done/);
  }));
