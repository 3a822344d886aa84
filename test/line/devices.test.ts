import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after, test } from "node:test";
import { accessTo, listDevices, type Places } from "../../src/line/devices.ts";

const boxes = mkdtempSync(join(tmpdir(), "posline-devices-"));
after(() => rmSync(boxes, { recursive: true }));

/** A box in a folder: sysfs, device nodes and a process table, as files and links. */
class Box {
  readonly root = mkdtempSync(join(boxes, "box-"));
  readonly places: Places & { readonly sys: string; readonly dev: string; readonly proc: string; readonly groups: string } = {
    sys: join(this.root, "sys"),
    dev: join(this.root, "dev"),
    proc: join(this.root, "proc"),
    groups: join(this.root, "group"),
    user: "till",
  };

  constructor() {
    for (const folder of ["sys/class/tty", "dev/serial/by-id", "dev/serial/by-path", "proc/812/fd"]) {
      mkdirSync(join(this.root, folder), { recursive: true });
    }
    this.write("group", `root:x:0:\ndialout:x:${this.gid}:someone\n`);
    this.write("proc/812/comm", "ModemManager\n");
  }

  /** A group that a file of this user may belong to, other than root's where that is possible. */
  get gid(): number {
    return process.getuid?.() === 0 ? 20 : (process.getgid?.() ?? 0);
  }

  write(path: string, text: string): void {
    const whole = join(this.root, path);
    mkdirSync(dirname(whole), { recursive: true });
    writeFileSync(whole, text);
  }

  link(path: string, target: string): void {
    const whole = join(this.root, path);
    mkdirSync(dirname(whole), { recursive: true });
    symlinkSync(relative(dirname(whole), join(this.root, target)), whole);
  }

  /** A tty whose device is at a place below sys/devices, with its node. */
  tty(name: string, device: string, driver?: string): void {
    mkdirSync(join(this.root, "sys/devices", device), { recursive: true });
    mkdirSync(join(this.root, "sys/class/tty", name), { recursive: true });
    this.link(`sys/class/tty/${name}/device`, `sys/devices/${device}`);
    if (driver !== undefined) this.link(`sys/devices/${device}/driver`, `sys/bus/drivers/${driver}`);
    this.write(`dev/${name}`, "");
    const node = join(this.places.dev, name);
    if (process.getuid?.() === 0) chownSync(node, 0, this.gid);
    chmodSync(node, 0o660);
  }
}

const usb = "pci0000:00/usb1/1-1";

function ftdi(box: Box): void {
  box.tty("ttyUSB0", `${usb}/1-1:1.0/ttyUSB0`, "ftdi_sio");
  box.link(`sys/devices/${usb}/driver`, "sys/bus/drivers/usb");
  for (const [name, value] of Object.entries({
    idVendor: "0403",
    idProduct: "6001",
    serial: "A50285BI",
    manufacturer: "FTDI",
    product: "FT232R",
  })) {
    box.write(`sys/devices/${usb}/${name}`, `${value}\n`);
  }
  box.link("dev/serial/by-id/usb-FTDI_A50285BI-port0", "dev/ttyUSB0");
  box.link("dev/serial/by-path/pci-usb-1:1.0-port0", "dev/ttyUSB0");
}

test("listDevices() tells a USB adapter's names, identity, driver and access", async () => {
  const box = new Box();
  ftdi(box);
  const { dev } = box.places;
  assert.deepEqual(await listDevices(box.places), [
    {
      path: join(dev, "ttyUSB0"),
      byId: [join(dev, "serial/by-id/usb-FTDI_A50285BI-port0")],
      byPath: [join(dev, "serial/by-path/pci-usb-1:1.0-port0")],
      driver: "ftdi_sio",
      usb: { vendorId: "0403", productId: "6001", serialNumber: "A50285BI", manufacturer: "FTDI", product: "FT232R" },
      holders: [],
      holdersHidden: false,
      access: { granted: true, group: "dialout", cure: undefined },
    },
  ]);
});

test("listDevices() tells who holds a device", async () => {
  const box = new Box();
  ftdi(box);
  box.tty("ttyACM0", `${usb}/1-1:1.2`, "cdc_acm");
  symlinkSync(join(box.places.dev, "ttyUSB0"), join(box.places.proc, "812/fd/7"));
  const devices = await listDevices(box.places);
  assert.deepEqual(
    devices.map(({ path, holders }) => [path.slice(box.places.dev.length), holders]),
    [
      ["/ttyACM0", []],
      ["/ttyUSB0", [{ pid: 812, name: "ModemManager" }]],
    ],
  );
});

test("listDevices() leaves out virtual terminals and serial slots without a chip", async () => {
  const box = new Box();
  mkdirSync(join(box.places.sys, "class/tty/tty0"));
  mkdirSync(join(box.places.sys, "class/tty/ptmx"));
  box.tty("ttyS0", "pnp0/00:00/00:00:0/00:00:0.0");
  box.write("sys/class/tty/ttyS0/type", "4\n");
  box.tty("ttyS1", "platform/serial8250/serial8250:0/serial8250:0.1");
  box.write("sys/class/tty/ttyS1/type", "0\n");
  assert.deepEqual(
    (await listDevices(box.places)).map((device) => device.path),
    [join(box.places.dev, "ttyS0")],
  );
});

test("listDevices() finds the chip's driver above the nodes of serial-base, and no USB identity", async () => {
  const box = new Box();
  box.tty("ttyS0", "pnp0/00:00/00:00:0/00:00:0.0", "port");
  box.link("sys/devices/pnp0/00:00/00:00:0/00:00:0.0/subsystem", "sys/bus/serial-base");
  box.link("sys/devices/pnp0/00:00/driver", "sys/bus/drivers/serial");
  const [device] = await listDevices(box.places);
  assert.equal(device?.driver, "serial");
  assert.equal(device?.usb, undefined);
});

test("listDevices() sorts by number and leaves an adapter's silence undefined", async () => {
  const box = new Box();
  for (const number of [10, 9, 2]) box.tty(`ttyUSB${number}`, `usb/1-${number}/ttyUSB${number}`);
  box.write("sys/devices/usb/1-2/idVendor", "1a86\n");
  const devices = await listDevices(box.places);
  assert.deepEqual(
    devices.map((device) => device.path.slice(box.places.dev.length)),
    ["/ttyUSB2", "/ttyUSB9", "/ttyUSB10"],
  );
  assert.deepEqual(devices[0]?.usb, {
    vendorId: "1a86",
    productId: "",
    serialNumber: undefined,
    manufacturer: undefined,
    product: undefined,
  });
});

test("listDevices() finds nothing on a box without sysfs", async () => {
  assert.deepEqual(await listDevices({ sys: "/absent", dev: "/absent", proc: "/absent" }), []);
});

test("listDevices() tells a device whose node isn't there yet", async () => {
  const box = new Box();
  box.tty("ttyUSB0", "usb/1-1/ttyUSB0");
  rmSync(join(box.places.dev, "ttyUSB0"));
  const [device] = await listDevices(box.places);
  assert.equal(device?.access.granted, false);
  assert.match(device?.access.cure ?? "", /^there is no node /);
});

const denied = () => Promise.reject(new Error("EACCES"));

test("accessTo() names the owning group and the command that joins it", async () => {
  const box = new Box();
  box.tty("ttyUSB0", "usb/1-1/ttyUSB0");
  const path = join(box.places.dev, "ttyUSB0");
  // A root user's group 20 or a user's own: either way the table calls it dialout.
  const { gid } = statSync(path);
  box.write("group", `dialout:x:${gid === 0 ? 20 : gid}:other\n`);
  assert.deepEqual(await accessTo(path, { ...box.places, access: denied }), {
    granted: false,
    group: "dialout",
    cure: "sudo usermod -aG dialout till, then log in again",
  });
});

test("accessTo() asks for a new login when the user has joined the group since", async () => {
  const box = new Box();
  box.tty("ttyUSB0", "usb/1-1/ttyUSB0");
  box.write("group", `dialout:x:${box.gid}:other,till\n`);
  const { cure } = await accessTo(join(box.places.dev, "ttyUSB0"), { ...box.places, access: denied });
  assert.equal(cure, "log in again: till is in group dialout since the last login");
});

test("accessTo() mends the node itself when its group may not use it, or has no name", async () => {
  const box = new Box();
  box.tty("ttyUSB0", "usb/1-1/ttyUSB0");
  const path = join(box.places.dev, "ttyUSB0");
  chmodSync(path, 0o600);
  assert.match(
    (await accessTo(path, { ...box.places, access: denied })).cure ?? "",
    /^sudo chgrp dialout .* && sudo chmod 660 /,
  );
  chmodSync(path, 0o660);
  const nameless = await accessTo(path, { ...box.places, groups: "/absent", access: denied });
  assert.equal(nameless.group, String(box.gid));
  assert.match(nameless.cure ?? "", /^sudo chgrp dialout /);
});
