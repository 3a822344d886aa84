import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { realpathSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { resolveDevice } from "../../src/device/identity.ts";
import { type Adapter, Box } from "../support/box.ts";

/** Devices that are there on every box and are no files: nothing opens them. */
const nodes = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
const tty = (number: number) => ({ name: `ttyUSB${number}`, node: nodes[number] ?? "/dev/null" });

const ftdi: Adapter = { socket: "1-1", serialNumber: "A50285BI", ttys: [tty(0)] };
const another: Adapter = { socket: "1-2", serialNumber: "B7", ttys: [tty(1)] };
const nameless: Adapter = { socket: "1-3", vendorId: "1a86", productId: "7523", ttys: [tty(2)] };

function boxWith(...adapters: readonly Adapter[]): Box {
  const box = new Box();
  for (const adapter of adapters) box.plug(adapter);
  return box;
}

/** Why a path is refused. */
async function refusal(path: string, box: Box): Promise<string> {
  try {
    return `found ${await resolveDevice(path, box.places)}`;
  } catch (error) {
    assert.ok(error instanceof Error && error.name === "OpenError", String(error));
    return error.message;
  }
}

test("resolveDevice() finds a USB adapter by its ids in either case, and by its serial number", async () => {
  const box = boxWith(ftdi, another, nameless);
  assert.equal(await resolveDevice("usb:0403:6001:A50285BI", box.places), "/dev/null");
  assert.equal(await resolveDevice("usb:0403:6001:B7", box.places), "/dev/zero");
  assert.equal(await resolveDevice("usb:1A86:7523", box.places), "/dev/full");
});

test("resolveDevice() refuses what fits two adapters, and names each one's serial number and what to write", async () => {
  const box = boxWith(ftdi, another);
  const { dev } = box.places;
  const socket = (name: string) => join(dev, "serial/by-path", `pci-0000:00:14.0-usb-0:${name}:1.0-port0`);
  assert.equal(
    await refusal("usb:0403:6001", box),
    "usb:0403:6001 matches 2 devices: set path to the right one: " +
      `${dev}/ttyUSB0 (serial number A50285BI) is "usb:0403:6001:A50285BI" or "${socket("1-1")}"; ` +
      `${dev}/ttyUSB1 (serial number B7) is "usb:0403:6001:B7" or "${socket("1-2")}"`,
  );
});

test("resolveDevice() refuses two adapters without a serial number, or with the same one, by their sockets", async () => {
  for (const equal of [nameless, { ...nameless, serialNumber: "0001" }]) {
    const box = boxWith(equal, { ...equal, socket: "1-4", ttys: [tty(3)] });
    const text = await refusal("usb:1a86:7523", box);
    assert.match(text, /matches 2 devices/);
    assert.deepEqual(
      [...text.matchAll(/ is "([^"]*)"/g)].map(([, name = ""]) => name.replace(/^.*by-path./, "")),
      ["pci-0000:00:14.0-usb-0:1-3:1.0-port0", "pci-0000:00:14.0-usb-0:1-4:1.0-port0"],
    );
    assert.doesNotMatch(text, /by-id/);
  }
});

test("resolveDevice() names the ttys of one adapter by its interfaces", async () => {
  const box = boxWith({ ...ftdi, productId: "6011", ttys: [tty(0), tty(1), tty(2), tty(3)] });
  const text = await refusal("usb:0403:6011:A50285BI", box);
  assert.match(text, /matches 4 devices/);
  const names = [...text.matchAll(/"([^"]*)"/g)].map(([, name = ""]) => name);
  assert.equal(names.length, 8);
  const found = await Promise.all(names.map((name) => resolveDevice(name, box.places)));
  assert.deepEqual(found, [
    ...["/dev/null", "/dev/null", "/dev/zero", "/dev/zero", "/dev/full", "/dev/full", "/dev/random", "/dev/random"],
  ]);
});

test("resolveDevice() refuses a by-id name that two equal adapters share, and takes it while there is one", async () => {
  const box = boxWith(nameless);
  const id = join(box.places.dev, "serial/by-id/usb-1a86_7523_-if00-port0");
  assert.equal(await resolveDevice(id, box.places), "/dev/full");
  const equal = { ...nameless, socket: "1-4", ttys: [tty(3)] };
  box.plug(equal);
  assert.match(await refusal(id, box), /by-id\/usb-1a86_7523_-if00-port0 matches 2 devices: .*by-path.*1-3.*by-path.*1-4/);
  box.unplug(nameless);
  assert.equal(await resolveDevice(id, box.places), "/dev/random");
});

test("resolveDevice() says what of the vendor is there instead", async () => {
  const text = await refusal("usb:0403:6001:C9", boxWith(ftdi, nameless));
  assert.equal(
    text,
    "there is no device usb:0403:6001:C9: check the cable and the power; " +
      'plugged in from the same vendor: "usb:0403:6001:A50285BI"',
  );
});

test("resolveDevice() tells an adapter without a driver from none", async () => {
  const box = boxWith({ ...nameless, ttys: [] });
  const text = await refusal("usb:1a86:7523", box);
  assert.match(
    text,
    /^there is no device usb:1a86:7523: its adapter is plugged in, but has no driver: sudo modprobe ch341; .*brltty/,
  );
  assert.doesNotMatch(await refusal("usb:1a86:5523", box), /its adapter/);
});

test("resolveDevice() takes a dangling link and a node that isn't made yet for no device", async () => {
  const box = boxWith(ftdi);
  rmSync(join(box.places.dev, "ttyUSB0"));
  assert.match(await refusal("usb:0403:6001", box), /^there is no device usb:0403:6001: check the cable/);
  for (const name of ["by-id/usb-0403_6001_A50285BI-if00-port0", "by-path/pci-0000:00:14.0-usb-0:1-1:1.0-port0"]) {
    const path = join(box.places.dev, "serial", name);
    assert.equal(await refusal(path, box), `there is no device ${path}: check the cable and the power`);
  }
  // Links of others that dangle are in nobody's way.
  box.plug({ ...another, ttys: [tty(1)] });
  assert.equal(await resolveDevice("usb:0403:6001:B7", box.places), "/dev/zero");
});

test("resolveDevice() says what is wrong with a malformed name, a file, and a path through a file", async () => {
  const box = boxWith(ftdi);
  assert.match(await refusal("usb:403:6001", box), /^usb:403:6001 is not a USB name: write usb:VID:PID or /);
  const file = join(box.root, "group");
  assert.equal(await refusal(file, box), `${file} is not a serial device: "posline ports" lists the serial devices`);
  assert.match(await refusal(join(file, "x"), box), /x cannot be opened: .*ENOTDIR/);
});

test("resolveDevice() takes another node of a device for the kernel's own, so that both have one lock", async () => {
  const box = new Box();
  const own = join(box.places.dev, "ttyUSB7");
  box.write("sys/dev/char/1:7/uevent", "MAJOR=1\nMINOR=7\nDEVNAME=ttyUSB7\n");
  assert.equal(await resolveDevice("/dev/full", box.places), "/dev/full", "the kernel's own isn't there, as in a container");
  symlinkSync("/dev/zero", own);
  assert.equal(await resolveDevice("/dev/full", box.places), "/dev/full", "its name is another device's");
  rmSync(own);
  symlinkSync("/dev/full", own);
  const copy = join(box.root, "copy");
  // Only root may make a node.
  const isMade = spawnSync("mknod", [copy, "c", "1", "7"]).status === 0;
  assert.equal(await resolveDevice(isMade ? copy : own, box.places), "/dev/full");
});

test("resolveDevice() finds nothing on a box without sysfs", async () => {
  const places = { sys: "/absent", dev: "/absent" };
  await assert.rejects(resolveDevice("usb:0403:6001", places), { name: "OpenError", message: /^there is no device / });
});

test("resolveDevice() never guesses, and every name that it offers leads to the device that it stands for", async () => {
  const kind = fc.record({
    productId: fc.constantFrom("6001", "6010"),
    serialNumber: fc.constantFrom(undefined, "A", "a", "A:1"),
    ports: fc.integer({ min: 1, max: 2 }),
  });
  const paths = ["usb:0403:6001", "usb:0403:6010", "usb:0403:6001:A", "usb:0403:6010:A:1"];
  await fc.assert(
    fc.asyncProperty(fc.array(kind, { maxLength: 2 }), kind, fc.constantFrom(...paths), async (more, first, path) => {
      let number = 0;
      const adapters = [first, ...more].map(({ productId, serialNumber, ports }, index): Adapter => {
        const ttys = Array.from({ length: ports }, () => tty(number++)).slice(0, nodes.length);
        return { socket: `1-${index}`, productId, ttys, ...(serialNumber === undefined ? {} : { serialNumber }) };
      });
      const box = boxWith(
        ...adapters.map((adapter) => ({ ...adapter, ttys: adapter.ttys.filter(({ name }) => name < "ttyUSB5") })),
      );
      const [, , productId, ...serial] = path.split(":");
      const fitting = adapters
        .filter((each) => each.productId === productId && (serial.length === 0 || each.serialNumber === serial.join(":")))
        .flatMap(({ ttys }) => ttys.filter(({ name }) => name < "ttyUSB5"));
      const text = await refusal(path, box);
      if (fitting.length === 0) return assert.match(text, /^there is no device /);
      if (fitting.length === 1) return assert.equal(text, `found ${fitting[0]?.node}`);
      assert.match(text, new RegExp(`matches ${fitting.length} devices`));
      const offers = [...text.matchAll(/(\S+) \((?:no serial|serial)[^)]*\) is ("[^;]*")/g)];
      assert.equal(offers.length, fitting.length);
      for (const [, device = "", names = ""] of offers) {
        for (const [, name = ""] of names.matchAll(/"([^"]*)"/g)) {
          assert.equal(await resolveDevice(name, box.places), realpathSync(device), name);
        }
      }
    }),
    { numRuns: 40 },
  );
});
