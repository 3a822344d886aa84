import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";

const folder = scratchFolder();
after(() => folder.remove());

/** The ports of the file: nothing listens here. */
const asConfigured = Object.fromEntries(["FISCAL", "BANK", "QR", "ADMIN"].map((name) => [`POSLINE_${name}_PORT`, undefined]));

async function doctor(...args: string[]): Promise<{ code: number | null; stdout: string }> {
  const process = new PoslineProcess(["doctor", ...args], { env: asConfigured });
  const code = await process.ended();
  return { code, stdout: process.stdout };
}

test("posline doctor names the process that has the device, sends nothing, and exits with 69", async () => {
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(() => undefined),
  );
  const file = join(folder.path, "posline.json");
  const config = { lines: { till: { path: terminal.link } }, services: { bank: { line: "till" } }, journal: false };
  writeFileSync(file, JSON.stringify(config));
  try {
    const told = await doctor("--config", file, "--line", "till", "--json");
    const { findings, verdict, lines } = JSON.parse(told.stdout);
    assert.equal(told.code, 69);
    assert.equal(verdict, "bad");
    assert.deepEqual(lines, [{ name: "till", path: terminal.link, baudRate: 115_200, format: "8N1" }]);
    const holder = findings.find(({ check }: { check: string }) => check === "holder");
    assert.match(holder.what, new RegExp(`in use by process ${process.pid} `));
    assert.equal(terminal.heardBytes, 0);
  } finally {
    terminal.unplug();
  }
});

test("posline doctor exits with 78 for a configuration that can't be used, and tells each problem", async () => {
  const file = join(folder.path, "broken.json");
  writeFileSync(file, '{"lines":{"till":{"path":"/dev/ttyUSB0","boud":9600}},"services":{"bank":{"line":"tiil"}}}');
  const told = await doctor("--config", file);
  assert.equal(told.code, 78);
  assert.match(told.stdout, /^X config +lines\.till\.boud: /m);
  assert.match(told.stdout, /^X config +services\.bank\.line: /m);
});
