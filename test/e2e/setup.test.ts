import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import pty from "@lydell/node-pty";
import { merchantId, networkTerminal } from "../app/setup-box.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle } from "../support/posline-process.ts";

const folder = scratchFolder();
after(() => folder.remove());

const terminal = networkTerminal(["fiscal", "bank", "qr"]);
after(() => terminal.close());

test("posline setup at a terminal asks for the merchant's id without showing it, shows the file, and writes it on yes", async () => {
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
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")).services, {
    fiscal: { line: "till", merchantIdFile: "credentials/merchant-id" },
    bank: { line: "till" },
    qr: { line: "till" },
  });
  assert.equal(readFileSync(join(folder.path, "credentials", "merchant-id"), "utf8"), `${merchantId}\n`);
});
