import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { found } from "../../proof/vm/host.ts";
import { createHttpClient } from "../../src/client/client.ts";
import { closeBrowser, noChromium, open } from "../page/browser.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { Systemd } from "../support/systemd.ts";
import { probeReply, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/**
 * Tests src/operations/operations.ts over what tills really use: a browser and curl send a POST once more by themselves when a kept
 * connection ends without an answer, and behind systemd's sockets the copy reaches the next process.
 */

after(closeBrowser);

interface Bench {
  readonly url: string;
  /** The address of a page that may ask. */
  readonly origin: string;
  confirms(): number;
  /** `kill -9` once the terminal has /confirm, and the next process. */
  dies(): Promise<void>;
}

const body = '{"pay_id":"ONE","amount":1500,"currency_name":"EUR","rrn":"1"}';

/** The bundle behind systemd's sockets; the terminal takes 4 s for /confirm, as for a customer's PIN. */
async function withBridge(use: (bench: Bench) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const terminal = new Terminal(join(folder.path, "tty"), async (asked, self) => {
    if (asked.text.startsWith("/confirm")) await new Promise((resolve) => setTimeout(resolve, 4_000));
    await self.reply("length", probeReply(asked) ?? '{"status":"success"}');
  });
  const pages = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<title>till</title>"));
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  const [port = 0] = await freePorts(1);
  const file = join(folder.path, "posline.json");
  const services = { bank: { line: "till", port, allowOrigins: [origin] } };
  writeFileSync(file, JSON.stringify({ journal: { folder: folder.path }, lines: { till: { path: terminal.link } }, services }));
  const systemd = await Systemd.start({ how: "fd", ports: [port], args: ["serve", "--config", file] });
  const confirms = () => terminal.calls.filter(({ text }) => text.startsWith("/confirm")).length;
  const dies = async () => {
    await until(() => confirms() === 1, "the terminal to hear /confirm");
    const lives = systemd.ended.length;
    systemd.signal(9);
    await systemd.until(() => systemd.ended.length > lives, "its death");
    systemd.startAgain();
  };
  try {
    await systemd.until(() => systemd.told.some((told) => told.includes("STATUS=1 line up")), "the line to be up");
    await use({ url: `http://127.0.0.1:${port}`, origin, confirms, dies });
  } finally {
    await systemd.end();
    terminal.unplug();
    pages.closeAllConnections();
    pages.close();
  }
}

test("a page's one POST is carried out once though posline is killed and comes back", { skip: noChromium }, async () => {
  await withBridge(async ({ url, origin, confirms, dies }) => {
    const { page, close } = await open(origin);
    const options = JSON.stringify({ method: "POST", headers: { "Content-Type": "application/json" }, body });
    const asked: Promise<string> = page.evaluate(
      `fetch("${url}/confirm", ${options}).then((r) => r.status + " " + r.headers.get("X-Posline-Outcome"), String)`,
    );
    await dies();
    // Either the browser gives up, or it asks once more by itself and learns that nobody knows.
    assert.match(await asked, /^502 unknown$|Failed to fetch/);
    assert.equal(confirms(), 1);
    await close();
  });
});

test("curl's one POST on a kept connection is carried out once though posline is killed and comes back", {
  skip: found("curl") === undefined ? "there is no curl here" : false,
}, async () => {
  await withBridge(async ({ url, confirms, dies }) => {
    const curl = spawn("curl", ["-s", "-d", "", `${url}/terminals`, "--next", "-s", "-i", "-d", body, `${url}/confirm`]);
    let said = "";
    curl.stdout.on("data", (piece: Buffer) => {
      said += piece.toString();
    });
    const ended = once(curl, "close");
    await dies();
    const [code] = await ended;
    assert.ok(code === 52 || code === 56 || /X-Posline-Outcome: unknown/.test(said), `${code}: ${said}`);
    assert.equal(confirms(), 1);
  });
});

test("the client's one call is carried out once though posline is killed and comes back, and is unknown", async () => {
  await withBridge(async ({ url, confirms, dies }) => {
    const client = createHttpClient({ bank: { url } });
    await client.bank.terminals();
    const asked = client.bank.confirm({ pay_id: "ONE", amount: 1500, currency_name: "EUR", rrn: "1" });
    const failed = assert.rejects(asked, { name: "UnknownError" });
    await dies();
    await failed;
    assert.equal(confirms(), 1);
  });
});
