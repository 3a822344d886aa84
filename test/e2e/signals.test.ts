import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import pty from "@lydell/node-pty";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { until } from "../support/until.ts";

/** SIGHUP and SIGQUIT: a window that was closed, and Ctrl-\, end a command as Ctrl-C does, with all that it began. */

const folder = scratchFolder();

/** A folder for what a command leaves: it has no other. */
const place = () => mkdtempSync(join(folder.path, "place-"));

/** The command of a process; empty where it has ended. */
const commandOf = (pid: string) => (existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "");

/** Processes that run with this folder among their words. */
const runningWith = (path: string) =>
  readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && commandOf(name).includes(path);
    } catch {
      return false;
    }
  });

for (const signal of ["SIGHUP", "SIGQUIT"] as const) {
  test(`posline rehearse ends the till, its posline and its folder on ${signal}`, async () => {
    const [tmp, pids] = [place(), place()];
    const till = `: {key}; echo >${pids}/$$; exec sleep 300`;
    const rehearse = new PoslineProcess(["rehearse", "--till", till, "--scenario", "approved"], { env: { TMPDIR: tmp } });
    await until(() => readdirSync(pids).length > 0, "the till to run");
    assert.ok(runningWith(tmp).length > 0, "its posline runs");
    assert.equal(await rehearse.ended(signal), 69);
    const [pid = ""] = readdirSync(pids);
    await until(() => runningWith(tmp).length === 0 && commandOf(pid) === "", "its posline and the till to end");
    assert.deepEqual(readdirSync(tmp), []);
  });

  test(`posline emulate, and logs --follow, end on ${signal}`, async () => {
    const emulate = new PoslineProcess(["emulate"]);
    await emulate.port("bank");
    const file = join(place(), "log");
    writeFileSync(file, '{"level":"info","time":1,"msg":"a line"}\n');
    const logs = new PoslineProcess(["logs", "--follow", file]);
    await logs.until(() => (logs.stdout.includes("a line") ? true : undefined), "the log");
    assert.deepEqual([await emulate.ended(signal), await logs.ended(signal)], [0, 0]);
  });
}

test("posline serve --emulated ends on SIGQUIT, with its folder", async () => {
  const tmp = place();
  const serve = new PoslineProcess(["serve", "--emulated"], { env: { TMPDIR: tmp } });
  await serve.port("bank");
  assert.equal(await serve.ended("SIGQUIT"), 0);
  assert.deepEqual(readdirSync(tmp), []);
});

test("posline serve --emulated whose window is closed ends, with its folder, also where its messages go to a file", async () => {
  const tmp = place();
  const log = join(tmp, "log");
  const held = join(tmp, "held");
  mkdirSync(held);
  const ports = { POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0", POSLINE_ADMIN_PORT: "0" };
  const child = pty.spawn("sh", ["-c", `exec "$0" "$1" serve --emulated >${log} 2>&1`, process.execPath, bundle], {
    env: { ...process.env, ...ports, TMPDIR: held },
  });
  const ended = new Promise((resolve) => child.onExit(resolve));
  await until(() => existsSync(log) && readFileSync(log, "utf8").includes("admin listens"), "it to listen");
  // Closes the window; the shell would say so to its jobs as well.
  child.kill("SIGHUP");
  child.kill("SIGHUP");
  await ended;
  assert.match(readFileSync(log, "utf8"), /"msg":"stopped"/);
  assert.deepEqual(readdirSync(held), []);
});
