import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { adminDefaults } from "../../src/config/limits.ts";
import { loadConfig } from "../../src/config/load.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { exitCodes } from "../../src/core/exit.ts";
import { debuggingOf } from "../../src/core/node-debugging.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { folder, missing, root } from "./packages.ts";

const noSystemd = missing("systemd-analyze", "sudo apt-get install systemd");

const unit = (name: string) => join(root, "systemd", name);
const textOf = (name: string) => readFileSync(unit(name), "utf8");

/** A unit's settings by name, in their order; a comment is none. */
function settings(name: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const line of textOf(name).split("\n")) {
    const [, key, value] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
    if (key !== undefined && value !== undefined) found.set(key, [...(found.get(key) ?? []), value]);
  }
  return found;
}

/** Exposure in tenths, as systemd-analyze's threshold counts. */
for (const [name, tenths] of [
  ["posline.service", 7],
  ["posline-gateway.service", 15],
  ["posline-setup@.service", 30],
] as const) {
  test(`${name} is exposed to ${tenths / 10} at most`, { skip: noSystemd }, () => {
    const { status, stdout } = spawnSync(
      "systemd-analyze",
      ["security", "--offline=true", `--threshold=${tenths}`, "--no-pager", unit(name)],
      { encoding: "utf8" },
    );
    assert.equal(status, 0, stdout);
  });
}

test("systemd takes the units as they are meant", { skip: noSystemd }, () => {
  const names = ["posline.service", "posline.socket", "posline-tap.socket", "posline-gateway.service"];
  const units = [...names, "posline-setup.socket", "posline-setup@.service"].map(unit);
  const { stderr, error } = spawnSync("systemd-analyze", ["verify", "--man=no", ...units], { encoding: "utf8" });
  assert.equal(error, undefined);
  const complaints = stderr.split("\n").filter((line) => line.includes("posline"));
  // The command isn't installed where this is tested, and OpenFile= is unknown before systemd 253.
  const expected = /Command \/usr\/bin\/posline is not executable|Unknown key(?: name)? 'OpenFile'/;
  assert.deepEqual(
    complaints.filter((line) => !expected.test(line)),
    [],
  );
});

test("posline.socket listens on the contracts' ports and the admin port, at both addresses of localhost alone, also where there is no ::1", () => {
  const ports = [...Object.values(contracts).map(({ port }) => port), adminDefaults.port];
  const socket = settings("posline.socket");
  const addresses = ports.flatMap((port) => [`127.0.0.1:${port}`, `[::1]:${port}`]);
  assert.deepEqual(socket.get("ListenStream")?.toSorted(), addresses.toSorted());
  assert.deepEqual(socket.get("FreeBind"), ["yes"]);
});

test("posline-tap.socket is for root and posline's group, on a Unix socket that posline.service is given by its name", () => {
  const tap = settings("posline-tap.socket");
  assert.deepEqual(tap.get("ListenStream"), ["/run/posline/tap.sock"]);
  const given = ["SocketUser", "SocketGroup", "SocketMode", "FileDescriptorName", "Service"].map((name) =>
    tap.get(name)?.join(),
  );
  assert.deepEqual(given, ["root", "posline", "0660", "tap", "posline.service"]);
});

test("posline-setup.socket is for posline alone, runs one setup at a time as root, and is where posline.service looks for it", () => {
  const socket = settings("posline-setup.socket");
  const path = socket.get("ListenStream")?.join() ?? "";
  assert.match(settings("posline.service").get("ExecStart")?.join() ?? "", new RegExp(` --setup-socket ${path}$`));
  assert.deepEqual(settings("posline.service").get("Wants"), ["posline-setup.socket"]);
  const given = ["SocketUser", "SocketMode", "Accept", "MaxConnections"].map((name) => socket.get(name)?.join());
  assert.deepEqual(given, ["posline", "0600", "yes", "1"]);
  const helper = settings("posline-setup@.service");
  assert.equal(helper.get("User"), undefined);
  assert.deepEqual(helper.get("ReadWritePaths"), ["/etc/posline", "-/run/lock"]);
  assert.deepEqual(helper.get("DeviceAllow"), settings("posline.service").get("DeviceAllow"));
});

test("a unit isn't started again after the exit codes that a person must mend", () => {
  for (const name of ["posline.service", "posline-gateway.service"]) {
    assert.deepEqual(settings(name).get("RestartPreventExitStatus"), [`${exitCodes.usage} ${exitCodes.config}`]);
  }
});

test("a secret that isn't there has something in its place, or the service wouldn't start", () => {
  for (const name of ["posline.service", "posline-gateway.service"]) {
    const loaded = settings(name)
      .get("LoadCredential")
      ?.map((each) => each.split(":")[0]);
    const placed = settings(name)
      .get("SetCredential")
      ?.map((each) => each.split(":")[0]);
    assert.ok(loaded !== undefined && loaded.length > 0);
    assert.deepEqual(placed, loaded);
  }
});

test("Node is given no variable that was left over by which it prints or writes by itself", () => {
  for (const name of ["posline.service", "posline-gateway.service", "posline-setup@.service"]) {
    const unset = settings(name).get("UnsetEnvironment")?.join(" ").split(" ") ?? [];
    assert.deepEqual(debuggingOf(Object.fromEntries(unset.map((variable) => [variable, "x"])), []), unset);
    for (const variable of ["NODE_DEBUG", "NODE_DEBUG_NATIVE"]) assert.ok(unset.includes(variable), variable);
  }
});

test("devices are allowed by numeric major, since a name is lost on a driver that is loaded later", () => {
  for (const name of ["posline.service", "posline-gateway.service"]) {
    for (const rule of settings(name).get("DeviceAllow") ?? []) assert.match(rule, /^char-\d+ rw$/);
  }
});

test("every hardening that is off says why", () => {
  const lines = textOf("posline.service").split("\n");
  const off = lines.flatMap((line, n) => (/^(?:ProcSubset=all|MemoryDenyWriteExecute=no)$/.test(line) ? [n] : []));
  assert.equal(off.length, 2);
  for (const n of off) assert.match(lines[n - 1] ?? "", /^# /, lines[n] ?? "");
});

test("the default configuration can be used, and names no device until somebody does", async () => {
  const { config, warnings } = await loadConfig({
    env: { STATE_DIRECTORY: "/var/lib/posline" },
    flags: { config: unit("posline.json") },
  });
  assert.deepEqual(Object.keys(config.services).sort(), ["bank", "fiscal", "qr"]);
  // Nothing is sold without a record: the setting for real money (docs/configuration.md).
  assert.ok(config.journal !== false);
  assert.equal(config.journal.onFailure, "refuse");
  assertMapped(Object.values(config.lines), ["/dev/serial/by-id/NAME-THE-DEVICE-by-posline-setup"], ({ path }) => path);
  // The one thing that a technician still has to bring, beside the device.
  assertMapped(warnings, ["services.fiscal.merchantId"], (warning) => warning.split(":")[0]);
});

test("the gateway's example can be used", async () => {
  const { config } = await loadConfig({ env: {}, flags: { config: unit("gateway.json"), gateway: {} } });
  assert.equal(Object.values(config.services).length, 3);
});

test("a rule never sets ModemManager's mark on what has a network interface", () => {
  const rules = textOf("60-posline.rules");
  const leave = rules.indexOf("ENV{ID_USB_INTERFACES}==");
  assert.ok(leave !== -1 && leave < rules.indexOf('ENV{ID_MM_PORT_IGNORE}="1"', leave));
});

test("an adapter that a rule of the administrator's marks is left alone by every rule of the package", () => {
  for (const name of ["60-posline.rules", "91-posline-brltty.rules"]) {
    const [first = "", second = ""] = textOf(name).match(/^[A-Z].*$/gm) ?? [];
    const [, end = ""] = /^ACTION=="remove", GOTO="(\w+)"$/.exec(first) ?? [];
    assert.equal(second, `ENV{POSLINE_IGNORE}=="1", GOTO="${end}"`, name);
    assert.match(textOf(name), new RegExp(`^LABEL="${end}"\\s*$(?![\\s\\S])`, "m"), name);
  }
});

/** What udev would do for a tty of this machine in place of an adapter, by the package's rule and perhaps one of the administrator's. */
function decided(own: string): string {
  const rules = folder();
  // The user isn't here where this is tested, and neither is an adapter.
  const text = textOf("60-posline.rules").replace('OWNER="posline"', 'OWNER="nobody"').replace('"ttyUSB[0-9]*|', '"ptmx|');
  writeFileSync(join(rules, "60-posline.rules"), text);
  writeFileSync(join(rules, "59-posline.rules"), own);
  // A mount of this command's own: the machine's rules stay as they are.
  const script = 'mount -t tmpfs none /run && mkdir -p /run/udev && ln -s "$1" /run/udev/rules.d && udevadm test "$2" 2>&1';
  const { stdout } = spawnSync("unshare", ["--mount", "sh", "-c", script, "sh", rules, ptmx], { encoding: "utf8" });
  assert.match(stdout, /Reading rules file: \S*60-posline\.rules/, stdout);
  return stdout;
}

const ptmx = "/sys/class/tty/ptmx";
const noUdev =
  missing("udevadm", "sudo apt-get install udev") ||
  (existsSync(ptmx) && spawnSync("unshare", ["--mount", "true"]).status === 0 ? false : "a mount namespace needs root");

test("udev gives every adapter to the service, and leaves alone one that a rule of the administrator's marks", {
  skip: noUdev,
}, () => {
  const given = /60-posline\.rules:\d+ OWNER \d+/;
  assert.match(decided(""), given);
  assert.match(decided('KERNEL=="other", ENV{POSLINE_IGNORE}="1"\n'), given);
  assert.doesNotMatch(decided('KERNEL=="ptmx", ENV{POSLINE_IGNORE}="1"\n'), given);
});

test("no rule runs a program", () => {
  for (const name of ["60-posline.rules", "91-posline-brltty.rules"])
    assert.doesNotMatch(textOf(name), /^[^#]*\b(?:RUN|PROGRAM)\b/m);
});

test("the policy for kiosks is JSON with both of the names that browsers know", () => {
  const policy: unknown = JSON.parse(textOf("kiosk/posline-chromium.json"));
  assert.deepEqual(policy, {
    LocalNetworkAccessAllowedForUrls: ["https://till.example"],
    LoopbackNetworkAllowedForUrls: ["https://till.example"],
  });
});
