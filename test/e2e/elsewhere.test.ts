import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { until } from "../support/until.ts";

/**
 * What a till's developer runs on macOS or Windows: the bundle without serialport's native part, on another platform as far as it
 * can see. Lines are driven on Linux, and what would open one says so.
 */

const folder = scratchFolder();

// No prebuilds beside it, and no node_modules above it.
const file = join(folder.path, "posline.cjs");
copyFileSync(bundle, file);
for (const name of ["main.cjs", "more.cjs", "lab.cjs", "examples.json"])
  copyFileSync(join(bundle, "..", name), join(folder.path, name));
cpSync(fileURLToPath(new URL("../../dist/client", import.meta.url)), join(folder.path, "client"), { recursive: true });
rmSync(join(folder.path, "client/types"), { recursive: true, force: true });
const shim = fileURLToPath(new URL("../support/elsewhere.cjs", import.meta.url));

const on = (platform: string) => ({ NODE_OPTIONS: `--require ${shim}`, TEST_PLATFORM: platform });

function run(platform: string, ...args: readonly string[]) {
  const env = { PATH: process.env["PATH"] ?? "", ...on(platform) };
  return spawnSync(process.execPath, [file, ...args], { env, encoding: "utf8", timeout: 30_000 });
}

async function started<T>(
  platform: string,
  args: readonly string[],
  body: (posline: PoslineProcess) => Promise<T>,
): Promise<T> {
  const posline = new PoslineProcess(args, { file, env: on(platform) });
  try {
    return await body(posline);
  } finally {
    if (posline.child.exitCode === null) assert.equal(await posline.ended("SIGTERM"), 0, posline.stderr);
  }
}

const sale = (payId: string) => JSON.stringify({ pay_id: payId, amount: 1500, currency_name: "EUR" });
const words = /lines are driven on Linux, and this is (?:darwin|win32): /;

for (const platform of ["darwin", "win32"]) {
  for (const command of [["emulate"], ["serve", "--emulated"]]) {
    test(`posline ${command.join(" ")} answers on ${platform}, and call follows a sale there to its end`, async () => {
      await started(platform, command, async (posline) => {
        const url = `http://127.0.0.1:${await posline.port("bank")}`;
        await until(
          async () => (await ask(Number(new URL(url).port), "POST", "/terminals", "")).status === 200,
          "the first answer",
        );
        // Not by spawnSync: its pipes hold what the emulator logs.
        const call = new PoslineProcess(["call", "bank", "sale", sale("A-1"), "--wait", "--url", url], {
          file,
          env: on(platform),
        });
        assert.equal(await call.ended(), 0, call.stderr);
        assert.match(call.stdout, /approved/);
      });
    });
  }

  test(`posline emulate keeps its state in a file on ${platform}`, async () => {
    const state = join(folder.path, `${platform}-state.json`);
    await started(platform, ["emulate", "--state", state], async (posline) => {
      await ask(await posline.port("bank"), "POST", "/sale", sale("A-1"));
    });
    await started(platform, ["emulate", "--state", state], async (posline) => {
      const bank = await posline.port("bank");
      const check = async (payId: string) =>
        JSON.parse((await ask(bank, "POST", "/check", `{"pay_id":"${payId}"}`)).text).status;
      assert.deepEqual([await check("A-1"), await check("A-2")], ["success", "error"]);
    });
  });

  test(`posline logs FILE shows a log on ${platform}`, () => {
    const log = join(folder.path, "posline.log");
    const entry = { level: "info", time: "2026-11-20T10:33:08.336Z", service: "bank", route: "/sale", key: "A-1" };
    writeFileSync(log, `${JSON.stringify({ ...entry, outcome: "answered", httpStatus: 200, msg: "exchange" })}\n`);
    const { status, stdout, stderr } = run(platform, "logs", log);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /bank.*A-1/);
  });

  test(`posline serve --line says on ${platform} that lines are driven on Linux, and nothing was sent`, async () => {
    await started(platform, ["serve", "--line", join(folder.path, "tty")], async (posline) => {
      const bank = await posline.port("bank");
      await posline.logged((line) => words.test(JSON.stringify(line)), "the sentence");
      const { status, text, headers } = await ask(bank, "POST", "/sale", sale("A-1"));
      assert.equal(status, 503);
      assert.equal(headers["x-posline-outcome"], "not-sent");
      assert.match(text, words);
    });
  });

  test(`posline serve --line tcp: sells on ${platform} without serialport's native part`, async () => {
    const [port = 0] = await freePorts(1);
    const path = `tcp:127.0.0.1:${port}`;
    await started(platform, ["emulate", "--no-http", "--no-admin", "--line", path], async (emulator) => {
      await emulator.logged(({ msg }) => msg === "posline emulates", "the emulator to listen");
      await started(platform, ["serve", "--line", path], async (posline) => {
        await posline.logged(({ state }) => state === "idle", "the line to be ready");
        const { status, text } = await ask(await posline.port("bank"), "POST", "/sale", sale("A-1"), { prefer: "wait=10" });
        assert.equal(status, 200, text);
        assert.match(text, /APPROVED/);
      });
    });
  });

  for (const args of [["gateway"], ["emulate", "--no-http"]]) {
    test(`posline ${args.join(" ")} --line says on ${platform} that lines are driven on Linux`, async () => {
      await started(platform, [...args, "--line", join(folder.path, "tty")], async (posline) => {
        await posline.until(() => (words.test(posline.stdout) ? true : undefined), "the sentence");
      });
    });
  }

  test(`the client over HTTP answers on ${platform}, and one over a line says that lines are driven on Linux`, async () => {
    await started(platform, ["emulate"], async (posline) => {
      for (const [name, imported] of [
        ["client.mjs", `import { createClient } from "./client/client.mjs"; import * as line from "./client/line.mjs";`],
        ["client.cjs", `const { createClient } = require("./client/client.cjs"), line = require("./client/line.mjs");`],
      ] as const) {
        const script = join(folder.path, `${platform}-${name}`);
        const url = `http://127.0.0.1:${await posline.port("bank")}`;
        const calls = `(async () => {
  console.log((await createClient({ bank: { url: "${url}" } }).bank.terminals()).status);
  const client = line.createClient({ line: { path: "/dev/cu.usbserial", services: ["bank"] } });
  await client.bank.terminals().catch((error) => console.log(error.name, error.message));
  await client.close();
})();`;
        writeFileSync(script, `${imported}\n${calls}\n`);
        const client = new PoslineProcess([], { file: script, env: on(platform) });
        assert.equal(await client.ended(), 0, client.stderr);
        assert.match(client.stdout, new RegExp(`^success\nNotSentError .*${words.source}`));
      }
    });
  });
}

test("serve --line says on Linux what is missing where serialport's native part is absent", async (t) => {
  const posline = new PoslineProcess(["serve", "--line", "/dev/ptmx"], { file });
  t.after(() => posline.ended("SIGTERM"));
  await posline.logged((line) => /native part/.test(JSON.stringify(line)), "the sentence");
});
