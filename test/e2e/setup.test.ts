import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import pty from "@lydell/node-pty";
import { merchantId, networkTerminal } from "../setup/setup-box.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle } from "../support/posline-process.ts";

const folder = scratchFolder();

const terminal = networkTerminal(["fiscal", "bank", "qr"]);
after(() => terminal.close());

const idFile = join(folder.path, "id");
writeFileSync(idFile, merchantId);

/** What a command shows at a terminal whose person types Ctrl-D at such a question, and its exit code. */
async function atCtrlD(args: readonly string[], question: RegExp): Promise<{ readonly shown: string; readonly code: unknown }> {
  const child = pty.spawn(process.execPath, [bundle, ...args], { cols: 200 });
  let [shown, hasTyped] = ["", false];
  child.onData((text) => {
    shown += text;
    if (hasTyped || !question.test(shown)) return;
    hasTyped = true;
    child.write("\x04");
  });
  const code = await new Promise((resolve) => child.onExit(({ exitCode }) => resolve(exitCode)));
  return { shown, code };
}

for (const [more, question, code, last] of [
  [[], /merchant's id of fiscal[^\n]*: $/, 69, /\r\nCannot set up: it was stopped: nothing was written\r\n$/],
  [["--merchant-id-file", idFile], /Write this\? \[yes\/no\] /, 0, /\r\nNothing was written\r\n$/],
] as const) {
  test(`posline setup takes Ctrl-D at ${question} for a no: nothing is written, in plain words`, async () => {
    const file = join(folder.path, `ctrl-d-${code}.json`);
    const ended = await atCtrlD(["setup", "--line", await terminal.path(), "--config", file, ...more], question);
    assert.match(ended.shown, last);
    const dropIns = join(folder.path, `ctrl-d-${code}.d`);
    assert.deepEqual([ended.code, existsSync(file), existsSync(dropIns)], [code, false, false]);
  });
}

test("posline certify takes Ctrl-D at its question for a no: nothing is sent", async () => {
  const sales = ["--with-sales", "--amount", "100", "--currency", "EUR"];
  const { shown, code } = await atCtrlD(["certify", "--line", await terminal.path(), ...sales], /Go on\? \[y\/N\] /);
  assert.match(shown, /Go on\? \[y\/N\] [^\n]*\r\nNothing was sent\r\n$/);
  assert.equal(code, 75);
});

test("posline setup at a terminal asks for the merchant's id without showing it, shows its drop-in, and writes that alone on yes", async () => {
  const file = join(folder.path, "posline.json");
  const answers = [
    { to: /merchant's id of fiscal[^\n]*: $/, type: merchantId },
    { to: /Write this\? \[yes\/no\] /, type: "yes" },
  ];
  const child = pty.spawn(process.execPath, [bundle, "setup", "--line", await terminal.path(), "--config", file], {
    cols: 200,
  });
  let shown = "";
  child.onData((text) => {
    shown += text;
    const [next] = answers;
    if (next === undefined || !next.to.test(shown)) return;
    answers.shift();
    child.write(`${next.type}\r`);
  });
  const code = await new Promise((resolve) => child.onExit(({ exitCode }) => resolve(exitCode)));
  assert.equal(code, 0, shown);
  assert.doesNotMatch(shown, /SHOP-77/);
  assert.match(shown, /Test: qr answered \/check_connection/);
  assert.equal(existsSync(file), false);
  assert.deepEqual(JSON.parse(readFileSync(join(folder.path, "posline.d", "terminal.json"), "utf8")).services, {
    fiscal: { line: "till", merchantIdFile: "credentials/merchant-id" },
    bank: { line: "till" },
    qr: { line: "till" },
  });
  assert.equal(readFileSync(join(folder.path, "credentials", "merchant-id"), "utf8"), `${merchantId}\n`);
});
