import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import pty from "@lydell/node-pty";
import { holdersOf, lookForHolders } from "../../src/line/holders.ts";

interface OpenPty {
  readonly ptsName: string;
  readonly master: { destroy(): void };
  readonly slave: { destroy(): void };
}

// The package exports open() beside spawn(), and its types leave it out.
const { open } = pty as unknown as { open(): OpenPty };

/** A process table with one process that has some files open. */
function processTable(pid: number, files: readonly string[], program = true): string {
  const proc = mkdtempSync(join(tmpdir(), "posline-proc-"));
  chmodSync(proc, 0o755);
  mkdirSync(join(proc, String(pid), "fd"), { recursive: true });
  for (const [index, file] of files.entries()) symlinkSync(file, join(proc, String(pid), "fd", String(index)));
  writeFileSync(join(proc, String(pid), "comm"), "ModemManager\n");
  writeFileSync(join(proc, String(pid), "cmdline"), program ? "/usr/sbin/ModemManager\0" : "");
  mkdirSync(join(proc, "self"));
  return proc;
}

test("holdersOf() names this very process while it holds a pty, and no longer once it let go", async () => {
  const line = open();
  const path = line.ptsName;
  const name = readFileSync("/proc/self/comm", "utf8").trim();
  try {
    assert.deepEqual(await holdersOf(path), [{ pid: process.pid, name }]);
  } finally {
    line.slave.destroy();
    line.master.destroy();
  }
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await holdersOf(path), []);
});

test("holdersOf() finds a holder through another name of the device", async () => {
  const line = open();
  const alias = join(mkdtempSync(join(tmpdir(), "posline-alias-")), "by-id");
  symlinkSync(line.ptsName, alias);
  try {
    assert.deepEqual(
      (await holdersOf(alias)).map((holder) => holder.pid),
      [process.pid],
    );
  } finally {
    line.slave.destroy();
    line.master.destroy();
  }
});

test("holdersOf() finds who still holds an adapter that was unplugged", async () => {
  const proc = processTable(812, ["/dev/null", "/dev/ttyUSB97 (deleted)"]);
  assert.deepEqual(await holdersOf("/dev/ttyUSB97", proc), [{ pid: 812, name: "ModemManager" }]);
  assert.deepEqual(await holdersOf("/dev/ttyUSB9", proc), []);
});

test("holdersOf() finds who holds a lock though its descriptors can't be seen", async () => {
  const proc = processTable(812, []);
  const device = join(proc, "ttyUSB0");
  writeFileSync(device, "");
  const { dev, ino } = statSync(device);
  // Linux packs a small device number as major << 8 | minor.
  const hex = (value: number) => value.toString(16).padStart(2, "0");
  const major = hex((dev >> 8) & 0xfff);
  const minor = hex((dev & 0xff) | ((dev >> 12) & 0xfff00));
  writeFileSync(join(proc, "locks"), `1: POSIX  ADVISORY  WRITE 9 00:01:5 0 EOF\n2: FLOCK  ADVISORY  WRITE 812 ${major}:${minor}:${ino} 0 EOF\n`);
  assert.deepEqual(await holdersOf(device, proc), [{ pid: 812, name: "ModemManager" }]);
});

/** Runs something as a user who is not root, whoever runs the tests. */
async function asNobody<T>(run: () => Promise<T>): Promise<T> {
  const root = process.geteuid?.() === 0;
  if (root) process.seteuid?.(65_534);
  try {
    return await run();
  } finally {
    if (root) process.seteuid?.(0);
  }
}

test("lookForHolders() says that holders are hidden when a program may not be looked into, not for kernel threads", async () => {
  for (const program of [true, false]) {
    const proc = processTable(812, ["/dev/ttyUSB97"], program);
    assert.equal((await lookForHolders(["/dev/ttyUSB97"], proc)).get("/dev/ttyUSB97")?.hidden, false);
    chmodSync(join(proc, "812", "fd"), 0o000);
    const found = await asNobody(() => lookForHolders(["/dev/ttyUSB97"], proc));
    assert.deepEqual(found.get("/dev/ttyUSB97"), { holders: [], hidden: program });
  }
});

test("lookForHolders() says that holders are hidden when there is no process table", async () => {
  assert.deepEqual((await lookForHolders(["/dev/x"], "/absent")).get("/dev/x"), { holders: [], hidden: true });
});
