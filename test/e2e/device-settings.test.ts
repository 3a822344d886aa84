import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { answering, Terminal } from "../support/terminal.ts";

/** What a till and the log see when another program changes a device's settings: the real bundle, a pty, and `stty` from outside. */

const sale = (key: string) => `{"pay_id":"${key}","amount":1,"currency_name":"EUR"}`;

test("posline serve sets a device again that another program changed, as soon as an answer stays out, and its log says so", async (t) => {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(() => '{"status":"success","data":{"status":"APPROVED"}}'),
  );
  const bridge = new BridgeProcess({
    lines: { till: { path: terminal.link } },
    services: { bank: { line: "till", replyTimeoutMs: 3_100 } },
    journal: false,
  });
  t.after(() => bridge.stop());
  t.after(() => terminal.unplug());
  await bridge.state("till", "idle");
  assert.equal((await bridge.post("bank", "/sale", sale("A"))).status, 200);
  const modes = () => execFileSync("stty", ["-F", terminal.link, "-g"], { encoding: "utf8" });
  const own = modes();
  // In line mode an answer without a line end never comes. Requests stay whole: the test's terminal has no clock that would end what is
  // no frame, as real ones have.
  execFileSync("stty", ["-F", terminal.link, "icanon", "9600"]);
  const lost = await bridge.post("bank", "/sale", sale("B"));
  assert.deepEqual([lost.status, lost.headers["x-posline-outcome"]], [504, "unknown"]);
  const { reason } = await bridge.logged((line) => line["msg"] === "the device's settings", "what was done");
  assert.match(
    String(reason),
    /^another program changed settings of \/dev\/pts\/\d+: speed \(9600 in place of 115200\), line mode; posline set them again; process /,
  );
  assert.equal(modes(), own);
  const next = await bridge.post("bank", "/sale", sale("C"));
  assert.equal(next.status, 200, next.text);
  assert.equal(terminal.calls.length, 3);
});
