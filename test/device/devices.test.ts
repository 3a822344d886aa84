import assert from "node:assert/strict";
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accessTo, listDevices } from "../../src/device/devices.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { Box } from "../support/box.ts";

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
      usbName: "usb:0403:6001:A50285BI",
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
  assertMapped(
    devices,
    [
      ["/ttyACM0", []],
      ["/ttyUSB0", [{ pid: 812, name: "ModemManager" }]],
    ],
    ({ path, holders }) => [path.slice(box.places.dev.length), holders],
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
  assertMapped(await listDevices(box.places), [join(box.places.dev, "ttyS0")], (device) => device.path);
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
  assertMapped(devices, ["/ttyUSB2", "/ttyUSB9", "/ttyUSB10"], (device) => device.path.slice(box.places.dev.length));
  assert.deepEqual(devices[0]?.usb, {
    vendorId: "1a86",
    productId: "",
    serialNumber: undefined,
    manufacturer: undefined,
    product: undefined,
  });
});

test("listDevices() leaves out the names that two equal adapters share", async () => {
  const box = new Box();
  box.plug({ socket: "1-1", serialNumber: "0001", ttys: [{ name: "ttyUSB0" }] });
  box.plug({ socket: "1-2", serialNumber: "0001", ttys: [{ name: "ttyUSB1" }] });
  box.plug({ socket: "1-3", vendorId: "1a86", productId: "7523", ttys: [{ name: "ttyUSB2" }] });
  const names = (await listDevices(box.places)).map(({ byId, byPath, usbName }) => [byId.length, byPath.length, usbName]);
  assert.deepEqual(names, [
    [0, 1, undefined],
    [0, 1, undefined],
    [1, 1, "usb:1a86:7523"],
  ]);
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

const refusing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));

test("accessTo() sends the service to its udev rule for USB, whatever group has the device", async () => {
  const box = new Box();
  for (const name of ["ttyUSB0", "ttyACM0"]) {
    box.tty(name, `usb/1-1/${name}`);
    const path = join(box.places.dev, name);
    const service = { ...box.places, user: "posline", access: denied };
    const cure = `sudo udevadm control --reload && sudo udevadm trigger --action=add --name-match=${path}`;
    for (const group of ["plugdev", "dialout", "nogroup"]) {
      box.write("group", `${group}:x:${box.gid}:posline\n`);
      assert.deepEqual(await accessTo(path, service), { granted: false, group, cure });
    }
    chmodSync(path, 0o600);
    assert.equal((await accessTo(path, service)).cure, cure);
  }
});

test("accessTo() makes the service a member of the group of a board's UART, also where users of its own hide it", async () => {
  const box = new Box();
  box.tty("ttyS0", "pnp0/00:00");
  const path = join(box.places.dev, "ttyS0");
  const service = { ...box.places, user: "posline", access: denied };
  const cure = "sudo usermod -aG dialout posline && sudo systemctl restart posline";
  box.write("group", `dialout:x:${box.gid}:\n`);
  assert.deepEqual(await accessTo(path, service), { granted: false, group: "dialout", cure });
  box.write("group", `nogroup:x:${box.gid}:\n`);
  assert.deepEqual(await accessTo(path, service), { granted: false, group: "nogroup", cure });
  box.write("group", `dialout:x:${box.gid}:posline\n`);
  assert.match((await accessTo(path, service)).cure ?? "", /^sudo systemctl restart posline: /);
});

test("accessTo() names whatever group owns the device, and the usual one of the system where none does", async () => {
  const box = new Box();
  box.tty("ttyACM0", "usb/1-1/ttyACM0");
  const path = join(box.places.dev, "ttyACM0");
  box.write("group", `plugdev:x:${box.gid}:\n`);
  const places = { ...box.places, access: denied };
  assert.equal((await accessTo(path, places)).cure, "sudo usermod -aG plugdev till, then log in again");
  box.write("group", "root:x:0:\nuucp:x:987654:\n");
  assert.match((await accessTo(path, places)).cure ?? "", /^sudo chgrp uucp /);
  box.write("group", `nogroup:x:${box.gid}:\ndialout:x:987654:\n`);
  assert.match((await accessTo(path, places)).cure ?? "", /^sudo chgrp dialout /);
});

test("accessTo() tells a list of allowed devices apart from the node's mode", async () => {
  const box = new Box();
  const places = { ...box.places, access: refusing("EPERM") };
  assert.equal(
    (await accessTo("/dev/zero", { ...places, user: "posline" })).cure,
    'sudo systemctl set-property posline.service "DeviceAllow=char-1 rw"',
  );
  assert.match((await accessTo("/dev/zero", places)).cure ?? "", /--device \/dev\/zero/);
  assert.doesNotMatch((await accessTo("/dev/zero", { ...places, access: refusing("EACCES") })).cure ?? "", /--device/);
});
