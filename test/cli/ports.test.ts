import assert from "node:assert/strict";
import { test } from "node:test";
import { renderDevices, renderDevicesJson } from "../../src/cli/ports.ts";
import type { Device } from "../../src/device/devices.ts";
import { evil, obeyed } from "../support/evil-text.ts";

const ftdi: Device = {
  path: "/dev/ttyUSB0",
  byId: ["/dev/serial/by-id/usb-FTDI_A5-port0"],
  byPath: ["/dev/serial/by-path/usb-1"],
  usbName: "usb:0403:6001:A5",
  driver: "ftdi_sio",
  usb: { vendorId: "0403", productId: "6001", serialNumber: "A5", manufacturer: "FTDI", product: "FT232R" },
  holders: [],
  holdersHidden: false,
  access: { granted: true, group: "dialout", cure: undefined },
};
const builtIn: Device = {
  ...ftdi,
  path: "/dev/ttyS0",
  byId: [],
  byPath: [],
  usbName: undefined,
  driver: undefined,
  usb: undefined,
};

test("posline ports prints one aligned row a device, and under it the name to configure", () => {
  assert.equal(
    renderDevices([builtIn, ftdi]),
    [
      "DEVICE        DRIVER    ADAPTER                     STATE",
      "/dev/ttyS0    -         built in                    free",
      "/dev/ttyUSB0  ftdi_sio  FTDI FT232R (0403:6001 A5)  free",
      "    configure it as /dev/serial/by-id/usb-FTDI_A5-port0",
      "    or as usb:0403:6001:A5",
      "",
    ].join("\n"),
  );
});

test("posline ports tells who holds a device, and when it can't know", () => {
  assert.match(
    renderDevices([{ ...ftdi, holders: [{ pid: 812, name: "ModemManager" }] }]),
    / held by ModemManager \(pid 812\)\n/,
  );
  assert.match(renderDevices([{ ...ftdi, holdersHidden: true }]), / free, as far as this user can see\n/);
});

test("posline ports tells a device without access with its group and the command that mends it", () => {
  const access = { granted: false, group: "dialout", cure: "sudo usermod -aG dialout till, then log in again" };
  const text = renderDevices([{ ...ftdi, access }]);
  assert.match(text, / no access\n/);
  assert.match(text, /\n {4}it belongs to group dialout: sudo usermod -aG dialout till, then log in again\n/);
});

test("posline ports offers the name by socket where the name by identity isn't unique or isn't there", () => {
  const nameless = {
    ...ftdi,
    usbName: "usb:1a86:7523",
    usb: { vendorId: "1a86", productId: "7523", serialNumber: undefined, manufacturer: undefined, product: undefined },
  };
  assert.match(renderDevices([nameless]), /ADAPTER.*1a86:7523.*by its socket as \/dev\/serial\/by-path\/usb-1\n/s);
  assert.match(renderDevices([nameless]), /\n {4}or, while it is the only one of its kind, as usb:1a86:7523\n/);
  for (const device of [nameless, ftdi]) {
    const shared = renderDevices([{ ...device, byId: [], usbName: undefined }]);
    assert.match(shared, /\n {4}configure it as \/dev\/serial\/by-path\/usb-1\n$/);
  }
  assert.doesNotMatch(renderDevices([ftdi]), /by-path/);
});

test("posline ports says that no USB adapter is plugged in if all ports are built in", () => {
  assert.match(renderDevices([builtIn, { ...builtIn, path: "/dev/ttyS1" }]), / free\nNo USB adapter is plugged in.*dmesg.*\n$/);
  assert.doesNotMatch(renderDevices([builtIn, ftdi]), /No USB adapter/);
});

test("posline ports says what to check when there is no device", () => {
  for (const hint of ["cable", "sudo dmesg | tail", "ttyUSB", "ttyACM", "cdc_acm"])
    assert.ok(renderDevices([]).includes(hint), hint);
});

test("posline ports lets no C1 control, direction mark or invisible character of an adapter reach the terminal, nor as JSON", () => {
  const usb = { vendorId: "1a86", productId: "7523", serialNumber: evil, manufacturer: evil, product: evil };
  const device = { ...ftdi, usb, usbName: `usb:1a86:7523:${evil}`, byId: [`/dev/serial/by-id/${evil}`] };
  assert.doesNotMatch(renderDevices([{ ...device, holders: [{ pid: 812, name: evil }] }]), obeyed);
  assert.doesNotMatch(renderDevicesJson([device]), obeyed);
  assert.deepEqual(JSON.parse(renderDevicesJson([device]))[0].usb, usb);
});
