import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, test } from "node:test";
import pty from "@lydell/node-pty";
import { holdersOf, lockedFileOf, lookForHolders } from "../../src/device/holders.ts";
import { heldBy } from "../../src/device/open-errors.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { needs } from "../support/lacking.ts";

type OpenPty = { readonly ptsName: string; readonly master: Duplex; readonly slave: Duplex };

/** Ends the use of both ends. */
function close(line: OpenPty): void {
  line.slave.destroy();
  line.master.destroy();
}

// The package exports open() beside spawn(), and its types leave it out.
const { open } = pty as unknown as { open(): OpenPty };

const folder = mkdtempSync(join(tmpdir(), "posline-holders-"));
// Passed through by the user that some tests turn into.
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true }));

/** A process table with one process that has some files open. */
function processTable(pid: number, files: readonly string[], program = true): string {
  const proc = mkdtempSync(join(folder, "proc-"));
  chmodSync(proc, 0o755);
  mkdirSync(join(proc, String(pid), "fd"), { recursive: true });
  for (const [index, file] of files.entries()) symlinkSync(file, join(proc, String(pid), "fd", String(index)));
  writeFileSync(join(proc, String(pid), "comm"), "ModemManager\n");
  writeFileSync(join(proc, String(pid), "cmdline"), program ? "/usr/sbin/ModemManager\0" : "");
  mkdirSync(join(proc, "self"));
  return proc;
}

test(
  "holdersOf() names each process that has a pty open: this one, and a child for as long as it runs",
  needs("sleep"),
  async (t) => {
    const line = open();
    const fd = openSync(line.ptsName, constants.O_RDWR | constants.O_NOCTTY);
    const child = spawn("sleep", ["600"], { stdio: [fd, "ignore", "ignore"] });
    closeSync(fd);
    const self = { pid: process.pid, name: readFileSync("/proc/self/comm", "utf8").trim() };
    t.after(() => child.kill());
    t.after(() => close(line));
    await once(child, "spawn");
    const both = [self, { pid: child.pid ?? 0, name: "sleep" }].sort((one, other) => one.pid - other.pid);
    assert.deepEqual(await holdersOf(line.ptsName), both);
    child.kill();
    await once(child, "exit");
    assert.deepEqual(await holdersOf(line.ptsName), [self]);
  },
);

test("holdersOf() finds a holder through another name of the device", async (t) => {
  const line = open();
  const alias = join(mkdtempSync(join(folder, "alias-")), "by-id");
  symlinkSync(line.ptsName, alias);
  t.after(() => close(line));
  assertMapped(await holdersOf(alias), [process.pid], (holder) => holder.pid);
});

test("holdersOf() finds a holder whose container gave the device a name of its own", async () => {
  // Only root may make a second node; elsewhere it is the same one.
  const own = join(mkdtempSync(join(folder, "own-")), "ttyUSB0");
  const isMade = spawnSync("mknod", [own, "c", "1", "7"]).status === 0;
  const proc = processTable(812, ["/dev/null", "/dev/full"]);
  assert.deepEqual(await holdersOf(isMade ? own : "/dev/full", proc), [{ pid: 812, name: "ModemManager" }]);
  assert.deepEqual(await holdersOf("/dev/zero", proc), []);
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
  writeFileSync(
    join(proc, "locks"),
    `1: POSIX  ADVISORY  WRITE 9 00:01:5 0 EOF\n2: FLOCK  ADVISORY  WRITE 812 ${major}:${minor}:${ino} 0 EOF\n`,
  );
  assert.deepEqual(await holdersOf(device, proc), [{ pid: 812, name: "ModemManager" }]);
});

test("holdersOf() says that the owner of a lock has ended where nobody else can be seen", async () => {
  const ended = spawn(process.execPath, ["--version"], { stdio: "ignore" });
  await once(ended, "exit");
  const pid = ended.pid ?? 0;
  const proc = processTable(812, []);
  const device = join(proc, "ttyUSB0");
  writeFileSync(device, "");
  writeFileSync(join(proc, "locks"), `1: FLOCK  ADVISORY  WRITE ${pid} ${lockedFileOf(statSync(device))} 0 EOF\n`);
  const holders = await holdersOf(device, proc);
  assert.deepEqual(holders, [{ pid, name: "unknown", ended: true }]);
  assert.equal(heldBy(device, holders[0]).cure, "sudo posline ports shows which");
});

test("holdersOf() takes the owner of a lock for ended also where its parent has not waited for it", async () => {
  const proc = processTable(812, []);
  writeFileSync(join(proc, "812", "status"), "Name:\tModemManager\nState:\tZ (zombie)\n");
  const device = join(proc, "ttyUSB0");
  writeFileSync(device, "");
  writeFileSync(join(proc, "locks"), `1: FLOCK  ADVISORY  WRITE 812 ${lockedFileOf(statSync(device))} 0 EOF\n`);
  assert.deepEqual(await holdersOf(device, proc), [{ pid: 812, name: "ModemManager", ended: true }]);
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
    chmodSync(join(proc, "812", "fd"), 0o755);
    assert.deepEqual(found.get("/dev/ttyUSB97"), { holders: [], hidden: program });
  }
});

test("lookForHolders() says that holders are hidden where a program's command line may not be read either", async () => {
  const proc = processTable(812, ["/dev/ttyUSB97"]);
  chmodSync(join(proc, "812", "fd"), 0o000);
  chmodSync(join(proc, "812", "cmdline"), 0o000);
  const found = await asNobody(() => lookForHolders(["/dev/ttyUSB97"], proc));
  chmodSync(join(proc, "812", "fd"), 0o755);
  assert.deepEqual(found.get("/dev/ttyUSB97"), { holders: [], hidden: true });
});

test("lookForHolders() says that holders are hidden where the process table leaves out other users' processes, but for root", async () => {
  const hides = async (mount: string) => {
    const proc = processTable(812, []);
    writeFileSync(join(proc, "self", "mountinfo"), `24 30 0:22 / / rw - ext4 /dev/sda1 rw\n25 30 0:23 / /proc rw - ${mount}\n`);
    const look = async () => (await lookForHolders(["/dev/ttyUSB97"], proc)).get("/dev/ttyUSB97")?.hidden;
    if (process.geteuid?.() === 0) assert.equal(await look(), false);
    return asNobody(look);
  };
  for (const how of ["invisible", "2", "noaccess", "ptraceable"])
    assert.equal(await hides(`proc proc rw,hidepid=${how}`), true, how);
  for (const how of ["off", "0"]) assert.equal(await hides(`proc proc rw,hidepid=${how}`), false, how);
  assert.equal(await hides("proc proc rw"), false);
});

test("lookForHolders() says that holders are hidden when there is no process table", async () => {
  assert.deepEqual((await lookForHolders(["/dev/x"], "/absent")).get("/dev/x"), { holders: [], hidden: true });
});
