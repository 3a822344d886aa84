import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readTcpAddress, readUsbName, writeUsbName } from "../../src/config/device-name.ts";
import { problemsOf } from "./loading.ts";

const id = fc.integer({ min: 0, max: 0xffff }).map((number) => number.toString(16).padStart(4, "0"));

/** What a string descriptor can hold, trimmed as sysfs's readers trim it. */
const serialNumber = fc
  .string({ unit: "binary", minLength: 1, maxLength: 126 })
  .map((text) => text.replace(/\p{Cc}/gu, "").trim())
  .filter((text) => text !== "");

test("writeUsbName() and readUsbName() are each other's inverse, whatever the serial number", () => {
  fc.assert(
    fc.property(id, id, fc.option(serialNumber, { nil: undefined }), (vendorId, productId, serial) => {
      const name = { vendorId, productId, serialNumber: serial };
      const text = writeUsbName(name);
      assert.ok(text !== undefined);
      assert.deepEqual(readUsbName(text), name);
    }),
  );
});

test("readUsbName() takes the ids in either case, and the serial number as it stands", () => {
  const expected = { vendorId: "0abc", productId: "10c4", serialNumber: "Ab:c d" };
  assert.deepEqual(readUsbName("usb:0ABC:10C4:Ab:c d "), expected);
  assert.equal(readUsbName("usb:0abc:10c4")?.serialNumber, undefined);
});

const malformed = [
  ...["usb:", "usb:403:6001", "usb:0403", "usb:0403:6001:", "usb:0403:6001: A", "usb:0403:60g1", "usb:0403:6001:A\nB"],
  ...["usb:0403:6001:A\u009bB", "USB:0403:6001", "usb:00403:6001", " usb:0403:6001"],
];

test("readUsbName() and the configuration refuse what is malformed, and the latter says what to write", async () => {
  for (const path of malformed) {
    assert.equal(readUsbName(path), undefined, path);
    const [problem] = await problemsOf({ lines: { till: { path } }, services: { bank: { line: "till" } } });
    assert.match(problem ?? "", /^lines\.till\.path: .* is not valid: .*usb:VID:PID:SERIAL .*posline ports lists them$/, path);
  }
});

test("The configuration takes usb:VID:PID and usb:VID:PID:SERIAL as a line's path", async () => {
  for (const path of ["usb:0403:6001", "usb:0403:6001:A50285BI", "usb:10C4:ea60:0001 : x/y"]) {
    assert.deepEqual(await problemsOf({ lines: { till: { path } }, services: { bank: { line: "till" } } }), []);
  }
});

test("writeUsbName() gives nothing for what can't be read back", () => {
  assert.equal(writeUsbName({ vendorId: "0403", productId: "6001", serialNumber: "\u0001" }), undefined);
  assert.equal(writeUsbName({ vendorId: "0403", productId: "", serialNumber: undefined }), undefined);
});

test("readTcpAddress() and the configuration take tcp:host:port, with IPv6 in brackets, and refuse what is malformed", async () => {
  const problems = (path: string) => problemsOf({ lines: { till: { path } }, services: { bank: { line: "till" } } });
  for (const [path, host, port] of [
    ["tcp:192.168.1.40:4001", "192.168.1.40", 4001],
    ["tcp:terminal-1.lan:1", "terminal-1.lan", 1],
    ["tcp:[::1]:65535", "::1", 65_535],
    ["tcp:[fe80::1%eth0]:7000", "fe80::1%eth0", 7000],
  ] as const) {
    assert.deepEqual(readTcpAddress(path), { host, port });
    assert.deepEqual(await problems(path), [], path);
  }
  for (const path of [
    ...["tcp:", "tcp:host", "tcp:host:0", "tcp:host:65536", "tcp:::1:7000", "tcp:a b:1", "tcp://host:1", "TCP:host:1"],
  ]) {
    assert.equal(readTcpAddress(path), undefined, path);
    assert.match((await problems(path))[0] ?? "", /^lines\.till\.path: .* is not valid: .*tcp:HOST:PORT/, path);
  }
});

test("The configuration refuses two lines with one far end, however it is written", async () => {
  const lines = { a: { path: "tcp:[::1]:7000" }, b: { path: "tcp:[0:0::1]:7000" } };
  const services = { bank: { line: "a" }, qr: { line: "b" } };
  assert.match((await problemsOf({ lines, services }))[0] ?? "", /^lines\.b\.path: .* is also the device of line a/);
  assert.deepEqual(await problemsOf({ lines: { ...lines, b: { path: "tcp:[::1]:7001" } }, services }), []);
});
