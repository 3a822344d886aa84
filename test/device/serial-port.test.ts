import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs, { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, type TestContext, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { LinuxPortBinding } from "@serialport/bindings-cpp/dist/linux.js";
import type { LineConfig } from "../../src/config/config.ts";
import { holdersOf } from "../../src/device/holders.ts";
import { serialPort } from "../../src/device/serial-port.ts";
import type { Connection, ConnectionHandler } from "../../src/device/transport.ts";
import { closeMs } from "../../src/device/transport.ts";
import { configOf } from "../line/lines.ts";
import { type Adapter, Box } from "../support/box.ts";
import { needs } from "../support/lacking.ts";
import { gate } from "../support/promises.ts";
import { Pty } from "../support/pty.ts";
import { until } from "../support/until.ts";

const folder = mkdtempSync(join(tmpdir(), "posline-serial-"));
after(() => rmSync(folder, { recursive: true, force: true }));
// A test that fails leaves nothing behind that would keep this process from its end.
const ptys: Pty[] = [];
const openings: Connection[] = [];
afterEach(async () => {
  for (const opening of openings.splice(0)) await opening.close();
  for (const pty of ptys.splice(0)) pty.unplug();
});

function newPty(heard: (bytes: Buffer) => void = () => {}): Pty {
  const pty = new Pty(heard);
  ptys.push(pty);
  return pty;
}

/** A handler that keeps what it hears. */
class Keeper implements ConnectionHandler {
  heardBytes = 0;
  reads = 0;
  text = "";
  writes = 0;
  readonly losses: string[] = [];
  readonly #space = Buffer.alloc(4_096);
  space(): Buffer {
    return this.#space;
  }
  onBytes(n: number): void {
    this.reads++;
    this.heardBytes += n;
    if (this.text.length < 1_000) this.text += this.#space.toString("latin1", 0, n);
  }
  onWritten(): void {
    this.writes++;
  }
  onClosed(reason: string): void {
    this.losses.push(reason);
  }
}

async function opened(
  path: string,
  settings: Partial<LineConfig> = {},
): Promise<{ readonly handler: Keeper; readonly opening: Connection }> {
  const handler = new Keeper();
  const opening = await serialPort(configOf({ path, ...settings }), { lockFolder: folder })(handler);
  openings.push(opening);
  return { handler, opening };
}

const lockOf = (pty: Pty): string => join(folder, `LCK..${pty.path.slice(5).replaceAll("/", "_")}`);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs a program to its end, and gives what it printed. */
async function output(command: string, ...args: string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  await once(child, "close");
  return text;
}

test("serialPort hears a hang-up under a flood at once, 12 of 12, and reads no more", async () => {
  const flood = Buffer.alloc(4_096, "x");
  for (let round = 0; round < 12; round++) {
    const pty = newPty();
    const { handler, opening } = await opened(pty.path);
    for (let write = 0; write < 64; write++) void pty.write(flood);
    await until(() => handler.reads > 3, "the flood");
    pty.unplug();
    await until(() => handler.losses.length > 0, "the loss", 2_000);
    assert.equal(handler.losses.length, 1);
    assert.match(handler.losses[0] ?? "", /^the device was unplugged or hung up/);
    const { reads } = handler;
    await opening.close();
    await sleep(5);
    assert.equal(handler.reads, reads);
    assert.equal(existsSync(lockOf(pty)), false);
  }
});

test("serialPort hears a hang-up of an idle line, and doesn't spin on it", async () => {
  const readSync = fs.readSync;
  let reads = 0;
  const pty = newPty();
  const { handler, opening } = await opened(pty.path);
  try {
    fs.readSync = ((...args: Parameters<typeof readSync>) => {
      reads++;
      return readSync(...args);
      // The overloads of readSync can't be written as one function's type.
    }) as typeof readSync;
    // Named imports of built-ins follow a change only when told to.
    (await import("node:module")).syncBuiltinESMExports();
    pty.unplug();
    await until(() => handler.losses.length > 0, "the loss", 2_000);
    await sleep(50);
    assert.ok(reads <= 2, `${reads} reads`);
  } finally {
    fs.readSync = readSync;
    (await import("node:module")).syncBuiltinESMExports();
    await opening.close();
  }
});

test("serialPort() keeps nothing of a connection that was closed: on a box that reconfigures or unplugs, it would add up", async () => {
  const pty = newPty();
  const handlers: WeakRef<Keeper>[] = [];
  for (let time = 0; time < 5; time++) {
    const handler = new Keeper();
    handlers.push(new WeakRef(handler));
    const opening = await serialPort(configOf({ path: pty.path }), { lockFolder: folder })(handler);
    opening.write([Buffer.from("a")]);
    await opening.close();
  }
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  // The last one may still stand in a register or a timer.
  await until(() => {
    collect();
    return handlers.filter((handler) => handler.deref() !== undefined).length <= 1;
  }, "the handlers to be collected");
});

test("serialPort carries bytes both ways, and tells when they are written", async () => {
  const got: Buffer[] = [];
  const pty = newPty((bytes) => got.push(bytes));
  const { handler, opening } = await opened(pty.path);
  opening.write([Buffer.from("ab"), Buffer.from([0, 3, 17, 19, 255])]);
  assert.equal(handler.writes, 1);
  assert.equal(opening.wroteBytes, 7);
  await pty.write(Buffer.from("answer"));
  await until(() => handler.text === "answer" && Buffer.concat(got).length === 7, "both ways");
  assert.deepEqual([...Buffer.concat(got)], [97, 98, 0, 3, 17, 19, 255]);
  await opening.close();
});

test("serialPort writes much more than the tty takes at once, in pieces of 1 kB at most, in order", async (t) => {
  const got: Buffer[] = [];
  const pty = newPty((bytes) => got.push(bytes));
  const { handler, opening } = await opened(pty.path);
  const writevSync = fs.writevSync;
  const sizes: number[] = [];
  const module = await import("node:module");
  t.after(() => {
    fs.writevSync = writevSync;
  });
  t.after(() => module.syncBuiltinESMExports());
  t.after(() => opening.close());
  fs.writevSync = (fd, buffers, position) => {
    sizes.push(buffers.reduce((sum, each) => sum + each.byteLength, 0));
    return writevSync(fd, buffers, position);
  };
  module.syncBuiltinESMExports();
  const pieces = [Buffer.alloc(5), Buffer.alloc(60_000), Buffer.alloc(9_000)];
  for (const piece of pieces) for (let at = 0; at < piece.length; at++) piece.writeUInt8(at % 251, at);
  opening.write(pieces);
  await until(() => handler.writes === 1 && Buffer.concat(got).length === 69_005, "all bytes");
  assert.ok(Buffer.concat(got).equals(Buffer.concat(pieces)));
  assert.ok(Math.max(...sizes) <= 1_024, `${Math.max(...sizes)} bytes at once`);
});

test("serialPort's write waits while the tty takes nothing, and close() gives up on it within a second", async () => {
  const pty = newPty();
  pty.pause();
  const { handler, opening } = await opened(pty.path);
  opening.write([Buffer.alloc(200_000, "y")]);
  await sleep(30);
  assert.equal(handler.writes, 0);
  assert.ok(opening.wroteBytes > 0 && opening.wroteBytes < 200_000, `${opening.wroteBytes} bytes`);
  const began = performance.now();
  await opening.close();
  assert.ok(performance.now() - began < closeMs + 500);
  assert.deepEqual(handler.losses, []);
});

/** Notes in which order ports are drained, flushed and closed, and does so. */
function orderOf(t: TestContext): string[] {
  const order: string[] = [];
  for (const call of ["drain", "flush", "close"] as const) {
    const really = LinuxPortBinding.prototype[call];
    t.mock.method(LinuxPortBinding.prototype, call, function (this: LinuxPortBinding) {
      order.push(call);
      return really.call(this);
    });
  }
  return order;
}

test("serialPort's close() drains what was taken over, and flushes nothing of it: a late reader gets all", async (t) => {
  const order = orderOf(t);
  const got: Buffer[] = [];
  const pty = newPty((bytes) => got.push(bytes));
  pty.pause();
  const { handler, opening } = await opened(pty.path, { baudRate: 921_600 });
  const answer = Buffer.alloc(9_000, "answer ");
  opening.write([answer]);
  await until(() => handler.writes === 1, "the write");
  await opening.close();
  assert.deepEqual(order, ["drain", "close"]);
  pty.resume();
  await until(() => Buffer.concat(got).length >= answer.length, "all bytes");
  assert.ok(Buffer.concat(got).equals(answer));
});

test("serialPort's close() flushes what a device doesn't take within its time, which ends the drain, and then closes", async (t) => {
  const order = orderOf(t);
  const pty = newPty();
  const { opening } = await opened(pty.path);
  const flushed = gate();
  t.mock.method(LinuxPortBinding.prototype, "drain", () => {
    order.push("drain");
    return flushed.passed;
  });
  opening.write([Buffer.alloc(100)]);
  const closed = opening.close();
  await until(() => order.includes("flush"), "the flush");
  flushed.open();
  await closed;
  assert.deepEqual(order, ["drain", "flush", "close"]);
  assert.equal(existsSync(lockOf(pty)), false);
});

test("serialPort's close() drains nothing once the device is lost, nor while a write is under way", async (t) => {
  const order = orderOf(t);
  const lost = newPty();
  const one = await opened(lost.path);
  one.opening.write([Buffer.alloc(100)]);
  lost.unplug();
  await until(() => one.handler.losses.length > 0, "the loss");
  await one.opening.close();
  assert.deepEqual(order.splice(0), ["flush", "close"]);
  const stuck = newPty();
  stuck.pause();
  const other = await opened(stuck.path);
  other.opening.write([Buffer.alloc(200_000)]);
  assert.equal(other.handler.writes, 0);
  await other.opening.close();
  assert.deepEqual(order, ["flush", "close"]);
});

test("serialPort's close() ends by itself where the device hangs up meanwhile", async (t) => {
  const pty = newPty();
  const { handler, opening } = await opened(pty.path, { baudRate: 9_600 });
  opening.write([Buffer.alloc(100)]);
  const drain = LinuxPortBinding.prototype.drain;
  t.mock.method(LinuxPortBinding.prototype, "drain", async function (this: LinuxPortBinding) {
    pty.unplug();
    await until(() => !pty.isOpen, "the end of the pty");
    return drain.call(this);
  });
  await opening.close();
  assert.deepEqual(handler.losses, []);
  assert.equal(existsSync(lockOf(pty)), false);
});

test("serialPort sends nothing on an opening that was to go out on the one before", async () => {
  const link = join(folder, "replug");
  const before = newPty().linkAt(link);
  before.pause();
  const first = await opened(link);
  first.opening.write([Buffer.from("S".repeat(200_000))]);
  before.unplug();
  await until(() => first.handler.losses.length > 0, "the loss");
  await first.opening.close();
  const got: Buffer[] = [];
  // The system gives the number of the old tty away, and the same name leads to another one now.
  newPty();
  const afterwards = newPty((bytes) => got.push(bytes)).linkAt(link);
  assert.notEqual(afterwards.path, before.path);
  const second = await opened(link);
  assert.notEqual(second.opening, first.opening);
  second.opening.write([Buffer.from("new")]);
  await until(() => Buffer.concat(got).length >= 3, "the new bytes");
  await sleep(20);
  assert.equal(Buffer.concat(got).toString(), "new");
  await second.opening.close();
});

test("serialPort refuses a device that is open already, and leaves the live line's speed alone", needs("stty"), async () => {
  const pty = newPty();
  const { opening } = await opened(pty.path, { baudRate: 57_600 });
  const speed = await output("stty", "-F", pty.path, "speed");
  assert.equal(speed.trim(), "57600");
  await assert.rejects(opened(pty.path, { baudRate: 9_600 }), { name: "OpenError", message: /is in use by process \d+/ });
  assert.equal(await output("stty", "-F", pty.path, "speed"), speed);
  assert.equal(existsSync(lockOf(pty)), true, "the refused one leaves the lock");
  await opening.close();
  assert.equal(existsSync(lockOf(pty)), false);
});

test("serialPort refuses a device with another process's lock file, by its name", needs("sleep"), async (t) => {
  const pty = newPty();
  const holder = spawn("sleep", ["30"]);
  writeFileSync(lockOf(pty), `${String(holder.pid).padStart(10)}\n`);
  t.after(() => holder.kill());
  t.after(() => rmSync(lockOf(pty)));
  await assert.rejects(opened(pty.path), {
    name: "OpenError",
    message: new RegExp(`in use by process ${holder.pid} \\(sleep\\)`),
  });
  assert.equal(existsSync(lockOf(pty)), true);
});

test(
  "serialPort refuses a device that another process has locked with flock, and leaves its speed alone",
  needs("flock", "stty", "cat"),
  async (t) => {
    const pty = newPty();
    const holder = spawn("flock", [pty.path, "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
    t.after(() => holder.kill());
    await once(holder.stdout, "data");
    const speed = await output("stty", "-F", pty.path, "speed");
    await assert.rejects(opened(pty.path, { baudRate: 2_400 }), {
      name: "OpenError",
      message: new RegExp(`is locked by process ${holder.pid} \\(flock`),
    });
    assert.equal(await output("stty", "-F", pty.path, "speed"), speed);
    assert.equal(existsSync(lockOf(pty)), false);
  },
);

test(
  "serialPort names the process that has the device, and not the one that locked it and has ended",
  needs("flock", "sleep"),
  async (t) => {
    const pty = newPty();
    const locker = spawn("flock", [pty.path, "sh", "-c", "sleep 600 & echo $!"], { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(locker, "exit");
    const child = Number(String((await once(locker.stdout, "data"))[0]));
    t.after(() => process.kill(child));
    await exited;
    await assert.rejects(opened(pty.path), {
      name: "OpenError",
      message: new RegExp(`is in use by process ${child} \\(sleep\\): stop it: sudo kill ${child}$`),
    });
    const pids = (await holdersOf(pty.path)).map(({ pid }) => pid);
    assert.deepEqual([pids.includes(child), pids.includes(locker.pid ?? 0)], [true, false]);
  },
);

test("serialPort opens without a lock file where there is no folder for it", async () => {
  const pty = newPty();
  const opening = await serialPort(configOf({ path: pty.path }), { lockFolder: join(folder, "absent") })(new Keeper());
  await opening.close();
});

test("serialPort's close() twice is one close", async () => {
  const pty = newPty();
  const { opening } = await opened(pty.path);
  await Promise.all([opening.close(), opening.close()]);
  await opening.close();
  assert.equal(existsSync(lockOf(pty)), false);
});

test("serialPort says why it can't open, and what to do", async () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  const dangling = join(folder, "dangling");
  symlinkSync(join(folder, "nowhere"), dangling);
  await assert.rejects(opened(file), {
    name: "OpenError",
    message: `${file} is not a serial device: "posline ports" lists the serial devices`,
  });
  for (const path of [dangling, "/dev/posline-absent"]) {
    await assert.rejects(opened(path), {
      name: "OpenError",
      message: `there is no device ${path}: check the cable and the power`,
    });
  }
  await assert.rejects(opened("/dev/null"), { name: "OpenError", message: /^\/dev\/null cannot be opened: / });
});

const adapter = (name: string, pty: Pty, serialNumber = "A5"): Adapter => ({
  socket: "1-1",
  serialNumber,
  ttys: [{ name, node: pty.path }],
});

test("serialPort finds the same USB adapter again under another tty number, and tells the device it opened", async () => {
  const box = new Box();
  const open = serialPort(configOf({ path: "usb:0403:6001:A5" }), { lockFolder: folder, places: box.places });
  const [before, stranger, afterwards] = [newPty(), newPty(), newPty()];
  box.plug(adapter("ttyUSB0", before));
  const handler = new Keeper();
  const first = await open(handler);
  openings.push(first);
  assert.equal(first.device, before.path);
  before.unplug();
  await until(() => handler.losses.length > 0, "the loss");
  await first.close();
  box.unplug(adapter("ttyUSB0", before));
  await assert.rejects(open(new Keeper()), { name: "OpenError", message: /^there is no device usb:0403:6001:A5: check/ });
  box.plug({ ...adapter("ttyUSB0", stranger, "B7"), socket: "1-2" });
  box.plug(adapter("ttyUSB1", afterwards));
  const second = await open(new Keeper());
  openings.push(second);
  assert.equal(second.device, afterwards.path);
});

test("serialPort lets go of a device that is another adapter's by the time it is open", async () => {
  const pty = newPty();
  const [box, later] = [new Box(), new Box()];
  box.plug(adapter("ttyUSB0", pty));
  later.plug(adapter("ttyUSB0", pty, "B7"));
  let looks = 0;
  const replugged = {
    dev: box.places.dev,
    get sys() {
      return looks++ === 0 ? box.places.sys : later.places.sys;
    },
  };
  const open = serialPort(configOf({ path: "usb:0403:6001:A5" }), { lockFolder: folder, places: replugged });
  await assert.rejects(open(new Keeper()), { name: "OpenError", message: /^there is no device usb:0403:6001:A5: / });
  assert.equal(looks, 2);
  assert.equal(existsSync(lockOf(pty)), false);
  const { opening } = await opened(pty.path);
  await opening.close();
});

test("serialPort lets go of a device when its name has come to lead to another", async () => {
  const [old, now] = [newPty(), newPty()];
  const [box, later] = [new Box(), new Box()];
  box.plug(adapter("ttyUSB0", old));
  later.plug(adapter("ttyUSB1", now));
  let looks = 0;
  const tree = () => (looks++ < 2 ? box.places : later.places);
  const replugged = {
    get sys() {
      return tree().sys;
    },
    get dev() {
      return tree().dev;
    },
  };
  const open = serialPort(configOf({ path: "usb:0403:6001:A5" }), { lockFolder: folder, places: replugged });
  await assert.rejects(open(new Keeper()), {
    name: "OpenError",
    message: `usb:0403:6001:A5 is no longer ${old.path}: it was plugged in again while it was being opened: posline tries again`,
  });
});

test("serialPort names this posline itself where two of its lines have one device", async () => {
  const pty = newPty();
  const { opening } = await opened(pty.path);
  await assert.rejects(opened(pty.path), {
    message: `${pty.path} is in use by process ${process.pid}, this posline itself: if this lasts, two lines are configured with this device: put their services on one line`,
  });
  await opening.close();
});
