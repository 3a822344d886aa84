import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle } from "../support/posline-process.ts";
import { patienceMs } from "../support/until.ts";

/** Commands whose working folder was deleted: what needs none works, and what needs one says why it can't, in one sentence. */

/** A command's words for a shell that goes into a folder, deletes it, and runs the command there. */
function words(args: readonly string[]): readonly [string, string[]] {
  const folder = scratchFolder().path;
  const script = 'cd "$1" && rmdir "$1" && shift && exec "$@"';
  return ["sh", ["-c", script, "sh", folder, process.execPath, bundle, ...args]];
}

const env = {
  PATH: process.env["PATH"] ?? "",
  ...{ POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0", POSLINE_ADMIN_PORT: "0" },
};

function run(args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(...words(args), {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    timeout: patienceMs,
  });
  return { status, stdout, stderr };
}

for (const args of [
  ["--version"],
  ["--help"],
  ["serve", "--help"],
  ["completion"],
  ["ports"],
  ["openapi", "bank"],
  ["config", "--schema"],
  ["config", "--emulated"],
  ["support", "--list"],
]) {
  test(`posline ${args.join(" ")} works in a folder that was deleted`, () => {
    const { status, stdout, stderr } = run(args);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.notEqual(stdout, "");
  });
}

const sentence = "Cannot use the working folder: it was deleted: change to another one (cd) and start posline again";

for (const args of [
  ["serve", "--config", "posline.json"],
  ["serve", "--emulated", "--state", "state.json"],
  ["emulate", "--state", "state.json"],
  ["gateway", "--config", "posline.json"],
  ["config", "--config", "posline.json"],
  ["support"],
]) {
  test(`posline ${args.join(" ")} says that the folder was deleted, and that alone`, () => {
    const { status, stderr } = run(args);
    assert.deepEqual([status, stderr], [69, `${sentence}\n`]);
  });
}

for (const args of [
  ["serve", "--emulated"],
  ["serve", "--line", "/dev/none"],
  ["emulate"],
  ["gateway", "--line", "/dev/none"],
]) {
  test(`posline ${args.join(" ")} runs in a folder that was deleted`, async () => {
    const child = spawn(...words([...args, "--log-format", "json"]), { env, stdio: ["ignore", "pipe", "pipe"] });
    const exited = once(child, "exit");
    let log = "";
    const limit = setTimeout(() => child.kill("SIGKILL"), patienceMs);
    for await (const text of child.stdout) {
      log += String(text);
      // A second one would end it at once.
      if (!child.killed && /"msg":"posline (?:serves|emulates|relays)"/.test(log)) child.kill("SIGTERM");
    }
    clearTimeout(limit);
    assert.deepEqual(await exited, [0, null], log);
  });
}
