import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { causeOf } from "../../src/device/devices.ts";
import { wordsOf } from "../../src/device/open-errors.ts";
import { Box } from "../support/box.ts";

/** Tests src/device/open-errors.ts. */

const denied = () => Promise.reject(Object.assign(new Error("EACCES"), { code: "EACCES" }));

function boxWithTty(): { readonly box: Box; readonly device: string } {
  const box = new Box();
  box.tty("ttyUSB0", "usb/1-1/ttyUSB0");
  return { box, device: join(box.places.dev, "ttyUSB0") };
}

test("causeOf() names the command that gives the permission, by the group that owns the device", async () => {
  const { box, device } = boxWithTty();
  box.write("group", `plugdev:x:${box.gid}:\n`);
  const error = new Error(`Error: Permission denied, cannot open ${device}`);
  const message = wordsOf(await causeOf(error, device, { ...box.places, access: denied }));
  assert.equal(message, `no permission to open ${device}: sudo usermod -aG plugdev till, then log in again`);
});

test("causeOf() says so when udev has given the permission in the meantime", async () => {
  const { box, device } = boxWithTty();
  const message = wordsOf(await causeOf(new Error("EPERM: operation not permitted"), device, box.places));
  assert.equal(message, `no permission to open ${device}: it was just granted: posline tries again`);
});

test("causeOf() names who has a busy device, and what stops it", async () => {
  const { box, device } = boxWithTty();
  const error = new Error("Error Resource temporarily unavailable Cannot lock port");
  assert.equal(
    wordsOf(await causeOf(error, device, box.places)),
    `${device} is in use by another process: sudo posline ports shows which`,
  );
  symlinkSync(device, join(box.places.proc, "812/fd/7"));
  assert.equal(
    wordsOf(await causeOf(error, device, box.places)),
    `${device} is in use by process 812 (ModemManager): sudo systemctl disable --now ModemManager`,
  );
  box.write("proc/812/comm", "minicom\n");
  assert.equal(
    wordsOf(await causeOf(new Error("EBUSY"), device, box.places)),
    `${device} is in use by process 812 (minicom): stop it: sudo kill 812`,
  );
});

test("causeOf() takes every word of the system for a device that is gone", async () => {
  for (const text of ["ENOENT: no such file", "Error: No such device, cannot open /dev/x", "ENODEV", "ENXIO: no such device"]) {
    const message = wordsOf(await causeOf(new Error(text), "/dev/x"));
    assert.equal(message, "there is no device /dev/x: check the cable and the power", text);
  }
});

test("causeOf() tells an unknown error in the system's own words, with where to look", async () => {
  const message = wordsOf(await causeOf(new Error("Error: Inappropriate ioctl for device"), "/dev/null"));
  assert.equal(
    message,
    "/dev/null cannot be opened: Inappropriate ioctl for device: sudo dmesg | tail shows what the kernel says of it",
  );
});
