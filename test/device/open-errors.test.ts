import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as causes from "../../src/device/open-errors.ts";

const { wordsOf } = causes;
const path = "/dev/ttyS0";

test("heldBy() stops a service by its unit, and any other process by its number", () => {
  const cureOf = (name: string) => causes.heldBy(path, { pid: 812, name }).cure;
  assert.equal(cureOf("minicom"), "stop it: sudo kill 812");
  assert.equal(cureOf(""), "stop it: sudo kill 812");
  assert.equal(cureOf("agetty"), "sudo systemctl mask --now serial-getty@ttyS0.service");
  assert.equal(cureOf("gpsd"), "sudo systemctl disable --now gpsd.socket gpsd.service");
  assert.equal(cureOf("brltty"), causes.brltty(path).cure);
  assert.equal(cureOf("ModemManager"), causes.modemManager(path).cure);
  // What Node 20, 22 and 24 call a process that runs posline.
  for (const name of ["node", "node-MainThread", "MainThread", "posline"]) {
    const cureIn = (unit?: string) => causes.heldBy(path, { pid: 812, name, unit }).cure;
    assert.equal(cureIn(), "stop it: sudo kill 812", name);
    assert.equal(cureIn("posline.service"), "sudo systemctl stop posline.socket posline", name);
    assert.equal(cureIn("posline-gateway.service"), "sudo systemctl stop posline-gateway.service", name);
  }
});

test("wordsOf() tells the cause and the cure in the words that the documentation's table has", () => {
  assert.equal(
    wordsOf(causes.heldBy(path, { pid: 812, name: "minicom" })),
    `${path} is in use by process 812 (minicom): stop it: sudo kill 812`,
  );
  assert.match(wordsOf(causes.noDevice(path)), /^there is no device \/dev\/ttyS0: check the cable and the power$/);
  assert.match(wordsOf(causes.noPermission(path, "x")), /^no permission to open \/dev\/ttyS0: x$/);
});

test("lockedBy() offers to remove the lock file, and driverLockedBy() has none to remove", () => {
  const holder = { pid: 812, name: "minicom" };
  assert.match(
    causes.lockedBy(path, holder, "/run/lock/LCK..ttyS0").cure,
    /sudo kill 812; .* sudo rm \/run\/lock\/LCK\.\.ttyS0$/,
  );
  assert.equal(causes.driverLockedBy(path, holder).cure, "stop it: sudo kill 812");
});

test("Every cause that a process holds the device knows this very process", () => {
  const us = { pid: process.pid, name: "node" };
  for (const { cure } of [causes.heldBy(path, us), causes.lockedBy(path, us, "/x"), causes.driverLockedBy(path, us)]) {
    assert.match(cure, /put their services on one line/);
    assert.doesNotMatch(cure, /kill|stop/);
  }
});

test("No cause advises to kill the first process of all, this one, or the one that started it", () => {
  for (const name of ["systemd", "posline", "bash", ""]) {
    for (const pid of [0, 1, process.pid, process.ppid]) {
      const holder = { pid, name };
      const file = "/run/lock/LCK..ttyS0";
      const told = [causes.heldBy(path, holder), causes.driverLockedBy(path, holder), causes.lockedBy(path, holder, file)];
      told.push(causes.wronglyLockedBy(path, holder, file), causes.perhapsLockedBy(path, holder, file));
      for (const { cure } of told) assert.doesNotMatch(cure, /kill \d/);
    }
  }
  assert.equal(causes.killOf([1, 812, process.ppid, 813]), "sudo kill 812 813");
  assert.equal(causes.killOf([1]), undefined);
});

test("ambiguous() tells each candidate with its names ready to paste as JSON, and not endlessly many", () => {
  const candidate = { device: "/dev/ttyUSB0", serialNumber: 'A"5', names: ['usb:0403:6001:A"5'] };
  assert.match(
    causes.ambiguous("usb:0403:6001", [candidate, candidate]).cure,
    /\(serial number A"5\) is "usb:0403:6001:A\\"5"; /,
  );
  const many = causes.ambiguous("usb:0403:6001", Array(20).fill(candidate));
  assert.match(many.cause, /matches 20 devices/);
  assert.match(many.cure, /; and 4 more$/);
});

test("noDriver() names the driver of the vendor", () => {
  assert.match(causes.noDriver("usb:0403:6001", "0403").cure, /modprobe ftdi_sio;/);
  assert.match(causes.noDriver("usb:2fb8:2205", "2fb8").cure, /modprobe cdc_acm;/);
});

test("noConnection() tells a service without a network the drop-in of the documentation, line for line", () => {
  const dropIn = /```ini\n([^`]*)```/.exec(readFileSync("docs/network-lines.md", "utf8"))?.[1] ?? "";
  const lines = dropIn.trim().split("\n").join(", ");
  for (const code of ["EAFNOSUPPORT", "EPERM", "EACCES"]) {
    assert.equal(
      wordsOf(causes.noConnection("tcp:192.168.1.40:4001", code, "x")),
      "tcp:192.168.1.40:4001 cannot be reached: the service may open no connection there: " +
        `sudo systemctl edit posline with the lines ${lines}, then sudo systemctl restart posline`,
    );
  }
  const allowed = (path: string) => /IPAddressAllow=([^,]*),/.exec(causes.noNetwork(path).cure)?.[1];
  assert.equal(allowed("tcp:[fd00::3]:4001"), "fd00::3");
  assert.equal(allowed("tcp:till-3.shop:4001"), "the address of till-3.shop");
});

test("No cause lets a control character of a process, an adapter or a path reach a terminal", () => {
  const evil = "\u001b]0;x\u0007\n\u009b2J";
  const holder = { pid: 812, name: evil };
  const all = [
    causes.noDevice(evil, [evil]),
    causes.noDriver(evil, "0403"),
    causes.ambiguous(evil, [{ device: evil, serialNumber: evil, names: [evil] }]),
    causes.moved(evil, evil),
    causes.malformedName(evil),
    causes.isNoSerialDevice(evil),
    causes.noPermission(evil, evil),
    causes.heldBy(evil, holder),
    causes.lockedBy(evil, holder, evil),
    causes.driverLockedBy(evil, holder),
    causes.wronglyLockedBy(evil, holder, evil),
    causes.perhapsLockedBy(evil, holder, evil),
    causes.lockUnreadable(evil, evil),
    causes.lockReturns(evil, evil),
    causes.cannotOpen(evil, evil),
    causes.cannotSetUp(evil, evil),
    causes.modemManager(evil),
    causes.brltty(evil),
    causes.getty(evil),
    causes.kernelConsole(evil),
  ];
  for (const cause of all) assert.doesNotMatch(wordsOf(cause), /\p{Cc}/u);
});
