import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { exitCodes } from "../../src/core/exit.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";

/** Tests src/core/node-debugging.ts by the bundle: nothing of Node opens, prints or writes by itself. */

/** The commands that run until they are stopped, and what each logs when it runs. */
const commands = [
  { args: ["serve", "--emulated"], verb: "serve", started: "posline serves" },
  { args: ["gateway", "--line", "/dev/none"], verb: "relay", started: "posline relays" },
  { args: ["emulate"], verb: "emulate", started: "posline emulates" },
] as const;

type Started = (typeof commands)[number];

function begun({ args }: Pick<Started, "args">, env: Readonly<Record<string, string>>): PoslineProcess {
  return new PoslineProcess([...args, "--log-format", "json"], { env });
}

async function running(command: Started, env: Readonly<Record<string, string>>): Promise<PoslineProcess> {
  const posline = begun(command, env);
  await posline.logged(({ msg }) => msg === command.started, command.started);
  return posline;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}

for (const command of commands) {
  const [name] = command.args;

  test(`${name} opens no debugger on SIGUSR1`, async () => {
    const [port = 0] = await freePorts(1);
    const posline = await running(command, { NODE_OPTIONS: `--inspect-port=${port}` });
    posline.child.kill("SIGUSR1");
    // Node opens one within some milliseconds.
    await wait(500);
    assert.equal(await isOpen(port), false);
    assert.doesNotMatch(posline.stderr, /Debugger/);
    assert.equal(await posline.ended("SIGTERM"), exitCodes.ok);
  });

  test(`${name} closes the debugger that a flag left over has opened, and says who opened it`, async () => {
    const [port = 0] = await freePorts(1);
    const posline = await running(command, { NODE_OPTIONS: `--inspect=${port}` });
    assert.match(posline.stderr, /^Debugger listening/, "Node had opened it");
    assert.equal(await isOpen(port), false);
    await posline.logged(
      ({ level, msg }) =>
        level === "warn" && String(msg).startsWith("Node was started with --inspect in NODE_OPTIONS: take it out"),
      "the warning",
    );
    assert.equal(await posline.ended("SIGTERM"), exitCodes.ok);
  });

  test(`${name} doesn't start where Node would print what passes through`, async () => {
    for (const variable of ["NODE_DEBUG", "NODE_DEBUG_NATIVE"]) {
      const posline = begun(command, { [variable]: "http" });
      assert.equal(await posline.ended(), exitCodes.config);
      assert.match(
        posline.stderr,
        new RegExp(`^Cannot ${command.verb}: ${variable} is set, by which Node prints what passes through`),
      );
      assert.equal(posline.stdout, "");
    }
  });

  test(`${name} writes neither a report nor a copy of its memory on a signal`, async () => {
    for (const flag of ["--report-on-signal", "--heapsnapshot-signal=SIGUSR2"]) {
      const folder = scratchFolder();
      const places = `--diagnostic-dir=${folder.path} --report-directory=${folder.path}`;
      const posline = await running(command, { NODE_OPTIONS: `${flag} ${places}` });
      // Nobody listens to it any more, so it ends the process.
      assert.equal(await posline.ended("SIGUSR2"), null);
      assert.equal(posline.child.signalCode, "SIGUSR2");
      assert.deepEqual(readdirSync(folder.path), [], flag);
    }
  });
}

test("serve closes the debugger that a signal opened before posline's first line", async () => {
  const [serve] = commands;
  const folder = scratchFolder();
  const hook = join(folder.path, "hook.cjs");
  // Node opens it at once, and once more from its event loop.
  writeFileSync(hook, 'process.kill(process.pid, "SIGUSR1");\nfor (const end = Date.now() + 200; Date.now() < end; );\n');
  const [port = 0] = await freePorts(1);
  const posline = await running(serve, { NODE_OPTIONS: `--inspect-port=${port} --require=${hook}` });
  assert.match(posline.stderr, /^Debugger listening/, "Node had opened it");
  await wait(200);
  assert.equal(await isOpen(port), false);
  await posline.ended("SIGKILL");
});

test("serve logs a warning of Node's as a line of its own, and prints none", async () => {
  const folder = scratchFolder();
  const hook = join(folder.path, "hook.cjs");
  writeFileSync(hook, 'setTimeout(() => process.emitWarning("it is old", "DeprecationWarning"), 1_500);\n');
  const posline = await running(commands[0], { NODE_OPTIONS: `--require=${hook}` });
  const line = await posline.logged(({ msg }) => msg === "a warning of Node's", "the warning");
  assert.deepEqual([line["level"], line["error"]], ["warn", "DeprecationWarning: it is old"]);
  assert.doesNotMatch(posline.stderr, /DeprecationWarning/);
  await posline.ended("SIGKILL");
});
