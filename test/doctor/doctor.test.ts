import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { resolveDevice } from "../../src/device/identity.ts";
import { type DoctorReport, examine } from "../../src/doctor/doctor.ts";
import type { Finding } from "../../src/doctor/finding.ts";
import type { HostPlaces } from "../../src/doctor/host.ts";
import type { DoctorTarget } from "../../src/doctor/setup.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { probeReplies } from "../support/terminal.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { FakeHost } from "./fake-host.ts";
import { FakeLine } from "./fake-line.ts";

/** A box with one line on its adapter, and bank on it; nothing is wrong with it. */
function soundBox(more: object = {}): { readonly host: FakeHost; readonly line: FakeLine; readonly node: string } {
  const host = new FakeHost();
  const node = host.ftdi();
  host.config({
    lines: { till: { path: node } },
    services: { bank: { line: "till" } },
    journal: { folder: host.at("state") },
    ...more,
  });
  mkdirSync(host.at("state"));
  const line = new FakeLine();
  line.onWrite = () => line.reply("length", probeReplies.bankSupported, 1);
  host.places = { ...host.places, open: async () => line.open };
  return { host, line, node };
}

/** Examines a box while a clock of its own runs as fast as the files are read. */
async function examined(wanted: DoctorTarget, places: HostPlaces): Promise<DoctorReport> {
  const time = new VirtualTime();
  try {
    const done: DoctorReport[] = [];
    const examining = examine({ wanted, places }).then((report) => done.push(report));
    while (done.length === 0) await Promise.race([examining, time.advance(10)]);
    const [report] = done;
    assert.ok(report !== undefined);
    return report;
  } finally {
    time.restore();
  }
}

const look = (host: FakeHost, line?: string): Promise<DoctorReport> => examined({ line }, host.places);

function one(report: DoctorReport, check: string, level?: Finding["level"]): Finding {
  const found = report.findings.filter((each) => each.check === check && (level === undefined || each.level === level));
  assert.equal(found.length > 0, true, `no ${check} ${level ?? ""} in ${JSON.stringify(report.findings, undefined, 1)}`);
  const [first] = found;
  assert.ok(first !== undefined);
  return first;
}

const levels = (report: DoctorReport, check: string) =>
  report.findings.filter((each) => each.check === check).map(({ level }) => level);

test("examine() finds nothing wrong with a sound box, and asks its terminal", async () => {
  const { host, line } = soundBox();
  const report = await look(host);
  assert.deepEqual(
    report.findings.filter(({ level }) => level === "bad" || level === "warn"),
    [],
  );
  assert.equal(report.verdict, "ok");
  assert.equal(report.first, undefined);
  assert.match(one(report, "answer").what, /^bank answered/);
  assert.equal(line.openings, 1);
  assert.deepEqual(report.lines, [{ name: "till", path: host.at("dev/ttyUSB0"), baudRate: 115_200, format: "8N1" }]);
});

test("examine() tells every problem of a configuration as it is worded there, and looks at the box all the same", async () => {
  const { host, line } = soundBox();
  host.config({ lines: { till: { path: "ttyUSB0", baud: 9600 } }, services: { bank: { line: "other" } } });
  const report = await look(host);
  assert.equal(report.verdict, "config");
  assert.ok(report.findings.filter(({ check, level }) => check === "config" && level === "bad").length >= 2);
  assert.equal(one(report, "node").level, "ok");
  assert.equal(one(report, "device").cure, "sudo posline doctor --line usb:0403:6001:A50285BI looks at the first of them");
  assert.equal(line.openings, 0);
});

test("examine() without a usable configuration names a USB adapter before a port of the box's own", async () => {
  const { host } = soundBox();
  host.config({ lines: {} });
  const builtIn = host.tty("ttyS0", "serial8250/ttyS0");
  const { what, cure } = one(await look(host), "device");
  assert.equal(what, `serial devices of this box: ${host.at("dev/ttyUSB0")}, ${builtIn}`);
  assert.equal(cure, "sudo posline doctor --line usb:0403:6001:A50285BI looks at the first of them");
});

test("examine() warns of secrets that every user may read, and tells a user who may not read the file to use sudo", async () => {
  const { host } = soundBox({ services: { bank: { line: "till", apiKey: "GEHEIM-K" } } });
  const file = host.at("etc/posline/posline.json");
  host.write("etc/group", "root:x:0:\nposline:x:990:\n");
  chmodSync(file, 0o644);
  // What others can't pass isn't theirs to read.
  for (let folder = dirname(file); folder !== tmpdir(); folder = dirname(folder)) chmodSync(folder, 0o755);
  const exposed = one(await look(host), "config", "warn");
  assert.match(exposed.what, /^services\.bank\.apiKey: every user .*: sudo chgrp posline .* && sudo chmod 640 /);
  chmodSync(file, 0o640);
  assert.deepEqual(levels(await look(host), "config"), ["ok"]);
  chmodSync(file, 0);
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    const denied = one(await look(host), "config", "bad");
    assert.match(denied.what, /^permission denied: run this command with sudo/);
    assert.equal(denied.cure, "sudo posline doctor");
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
});

test("examine() sends nothing where another user's program may have the device, and says that root can see it", async () => {
  const { host, line } = soundBox();
  const report = await examined({ line: "till" }, { ...host.places, proc: host.at("unseen") });
  const [holder, answer] = [one(report, "holder", "skipped"), one(report, "answer", "skipped")];
  assert.match(holder.what, /^no process has it open, as far as this user can see: /);
  assert.match(answer.what, /^terminal not tested: another user's program may have the device open/);
  assert.deepEqual([holder.cure, answer.cure], ["sudo posline doctor --line till", "sudo posline doctor --line till"]);
  assert.equal(line.openings, 0);
});

test("examine() looks at the line that is named, by its name, its device, or one that no file has", async () => {
  const { host, node } = soundBox();
  for (const named of ["till", node]) assert.equal((await look(host, named)).verdict, "ok", named);
  const wrong = await look(host, "tiil");
  assert.equal(wrong.verdict, "usage");
  assert.equal(one(wrong, "config").what, "--line: there is no line tiil: its lines are till");
  const other = await look(host, "/dev/gone");
  assertMapped(other.lines, ["/dev/gone"], ({ path }) => path);
});

test("examine() asks at another speed than the configured one where it is told to", async () => {
  const { host } = soundBox();
  const report = await examined({ line: "till", baud: 9_600 }, host.places);
  assert.match(one(report, "answer").what, /at 9600 baud/);
  assert.equal((await examined({ baud: 7 }, host.places)).verdict, "usage");
});

test("examine() tells a device that isn't there, with those that are", async () => {
  const { host, line } = soundBox({ lines: { till: { path: "/dev/gone" } } });
  const report = await look(host);
  const device = one(report, "device", "bad");
  assert.equal(device.what, "there is no device /dev/gone");
  assert.equal(device.cure, "check the cable and the power");
  assert.match(device.cause ?? "", /serial devices of this box: .*ttyUSB0$/);
  assert.equal(report.first, device);
  assert.equal(one(report, "answer").level, "skipped");
  assert.equal(line.openings, 0);
});

test("examine() stops nobody for a device that isn't serial at all, as /dev/null, which half of the box has open", async () => {
  const { host } = soundBox({ lines: { till: { path: "/dev/null" } } });
  host.running(812, "sshd", { opens: ["/dev/null"] });
  host.link("sys/dev/char/1:3/subsystem", "sys/class/mem");
  const report = await look(host);
  const device = one(report, "device", "bad");
  assert.deepEqual([device.what, report.first], ["/dev/null is not a serial device", device]);
  for (const { cure = "" } of report.findings) assert.doesNotMatch(cure, /kill/);
});

test("examine() names a stranger that holds the device and how to stop it, and leaves the line alone", async () => {
  const { host, line, node } = soundBox();
  host.running(812, "minicom", { opens: [node] });
  const report = await look(host);
  assert.deepEqual(
    [one(report, "holder").what, one(report, "holder").cure],
    [`${node} is in use by process 812 (minicom)`, "stop it: sudo kill 812"],
  );
  assert.equal(report.verdict, "bad");
  assert.equal(one(report, "answer").level, "skipped");
  assert.equal(line.openings, 0);
});

test("examine() takes what posline starts for a look at its device's settings for no other program", async () => {
  const { host, node } = soundBox();
  host.running(44, "posline", { args: ["posline", "serve"], opens: [node] }).running(812, "node", { opens: [node] });
  host.write("proc/812/status", "Name:\tnode\nState:\tR (running)\nPPid:\t44\n");
  const report = await look(host);
  assert.equal(one(report, "holder").what, "posline has it open (process 44), as it should be");
  assert.equal(one(report, "answer").cure, "sudo kill 44, then this command again, for a full test");
});

test("examine() asks the service that holds the line how it stands, and says how to stop it for a full test", async () => {
  const { host, line, node } = soundBox({ admin: { port: 8880 } });
  host.installed().running(44, "node", {
    args: ["/usr/bin/node", "/usr/lib/posline/posline.cjs", "serve"],
    unit: "posline.service",
    opens: [node],
  });
  host.web.set(...status({ ready: true, lines: { till: { state: "idle", reason: "proven" } } }));
  const report = await look(host);
  assert.equal(one(report, "holder").what, "posline.service has it open (process 44), as it should be");
  assertMapped(
    report.findings.filter(({ check }) => check === "service"),
    [
      ["ok", undefined, "posline (process 44) is ready (http://127.0.0.1:8880/readyz)"],
      ["ok", "till", "posline (process 44) says: line till is idle (proven)"],
    ],
    ({ level, what, line: name }) => [level, name, what],
  );
  assert.equal(
    one(report, "answer").cure,
    "sudo systemctl stop posline.socket posline, then this command again, for a full test",
  );
  assert.equal(line.openings, 0);
});

for (const [unit, host, expected] of [
  ["PrivateNetwork=yes\nRestrictAddressFamilies=AF_UNIX\nIPAddressDeny=0.0.0.0/0 ::/0\n", "192.168.1.40", "bad"],
  ["PrivateNetwork=yes\n", "127.0.0.1", "bad"],
  ["RestrictAddressFamilies=AF_UNIX AF_INET6\n", "192.168.1.40", "bad"],
  ["RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n", "192.168.1.40", "ok"],
  ["RestrictAddressFamilies=~AF_PACKET AF_NETLINK\n", "192.168.1.40", "ok"],
  ["RestrictAddressFamilies=~AF_INET6\n", "[fd00::3]", "bad"],
  ["IPAddressAllow=192.168.1.40/32\nIPAddressDeny=0.0.0.0/0 ::/0\n", "192.168.1.40", "ok"],
  ["IPAddressAllow=192.168.1.40/32\nIPAddressDeny=0.0.0.0/0 ::/0\n", "192.168.1.41", "bad"],
  ["IPAddressAllow=192.168.1.0/24 fd00::/8\nIPAddressDeny=0.0.0.0/0 ::/0\n", "192.168.1.41", "ok"],
  ["IPAddressAllow=192.168.1.0/24 fd00::/8\nIPAddressDeny=0.0.0.0/0 ::/0\n", "[fd00::3]", "ok"],
  ["IPAddressAllow=\nIPAddressDeny=192.168.0.0/16\n", "10.0.0.1", "ok"],
] as const) {
  test(`examine() says whether the unit lets the service connect to ${host}: ${unit.trim().replaceAll("\n", ", ")}`, async () => {
    const { host: box } = soundBox();
    box.config({ lines: { till: { path: `tcp:${host}:4001` } }, services: { bank: { line: "till" } }, journal: false });
    const found = one(await look(box.installed({ more: unit })), "permission");
    assert.equal(found.level, expected);
    assert.equal(found.line, "till");
    if (expected === "ok") return;
    assert.equal(found.what, `tcp:${host}:4001 cannot be reached: the service may open no connection there`);
    const address = host.replaceAll(/[[\]]/g, "");
    assert.ok(
      found.cure?.includes(
        `sudo systemctl edit posline with the lines [Service], PrivateNetwork=no, IPAddressAllow=${address}`,
      ),
    );
  });
}

test("examine() says nothing of a unit for a line over TCP where posline runs by hand", async () => {
  const { host } = soundBox();
  host.config({ lines: { till: { path: "tcp:192.168.1.40:4001" } }, services: { bank: { line: "till" } }, journal: false });
  assert.deepEqual(levels(await look(host), "permission"), []);
});

test("examine() stops nobody for a line whose device isn't there, and says of no service that it didn't answer", async () => {
  const { host, node } = soundBox({ admin: { port: 8880 } });
  host.installed().running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: [node] });
  const heard = { state: "unheard", reason: "bank has not answered since the line opened", cure: "send bank any request" };
  const lines = { till: { state: "down", reason: "there is no device" } };
  host.web.set(...status({ ready: false, lines, services: { bank: { line: "till", heard } } }));
  const report = await look(host);
  const found = report.findings.find(({ what }) => /line till is down/.test(what));
  assert.match(found?.what ?? "", /says: line till is down \(there is no device\)$/);
  assert.match(found?.cure ?? "", /^see what is said of the device: posline tries to open it once a second/);
  assert.equal(report.findings.filter(({ check }) => check === "heard").length, 0);
});

test("examine() takes it from the service that a terminal is not heard, though its line is clean", async () => {
  const { host, node } = soundBox({ admin: { port: 8880 } });
  host.installed().running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: [node] });
  const heard = { state: "unheard", reason: "not one byte comes back", cure: "switch the terminal on" };
  const services = {
    bank: { line: "till", heard },
    qr: { line: "till", heard: { state: "heard" } },
    fiscal: { line: "other", heard },
  };
  host.web.set(...status({ ready: false, lines: { till: { state: "idle", reason: "proven" } }, services }));
  const report = await look(host);
  assert.equal(report.verdict, "bad");
  const found = one(report, "heard", "bad");
  assert.equal(found.what, "not one byte comes back");
  assert.equal(found.cause, "posline (process 44) says so of bank");
  assert.equal(found.cure, "switch the terminal on");
  assert.equal(report.findings.filter(({ check }) => check === "heard").length, 1);
});

test("examine() asks the service with the token of its configuration", async () => {
  const { host, node } = soundBox();
  writeFileSync(host.at("token"), "T-0123456789abcdef\n", { mode: 0o600 });
  const [lines, services] = [{ till: { path: node } }, { bank: { line: "till" } }];
  host.config({ lines, services, journal: { folder: host.at("state") }, admin: { tokenFile: host.at("token") } });
  host.installed().running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: [node] });
  host.web.set(...status({ ready: true, lines: { till: { state: "idle", reason: "proven" } } }));
  host.authorization = "Bearer T-0123456789abcdef";
  assert.equal(one(await look(host), "service", "ok").what, "posline (process 44) is ready (http://127.0.0.1:8880/readyz)");
});

test("examine() says that the service refuses the token of its configuration, and not that it doesn't answer", async () => {
  const { host, node } = soundBox({ admin: {} });
  host.installed().running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: [node] });
  host.web.set("http://127.0.0.1:8880/status", { status: 401, body: '{"error":"the token in Authorization is wrong"}' });
  const { what, cause, cure } = one(await look(host), "service", "warn");
  assert.equal(
    what,
    "posline (process 44) runs, and refuses the token of this configuration, so its status isn't known (http://127.0.0.1:8880/status)",
  );
  assert.match(cause ?? "", /^the token was changed since it was started/);
  assert.equal(cure, "sudo systemctl restart posline");
});

/** What the service answers to /status. */
function status(body: object): [string, { status: number; body: string }] {
  return ["http://127.0.0.1:8880/status", { status: 200, body: JSON.stringify(body) }];
}

test("examine() tells a service that doesn't answer, a line of it that isn't clean, and what its journal doesn't know", async () => {
  const { host, node } = soundBox({ admin: {} });
  host.installed().running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: [node] });
  assert.match(one(await look(host), "service", "bad").what, /doesn't answer on its admin port/);
  const journal = { state: "the disk is full", onFailure: "relay", unknown: { total: 2 } };
  host.web.set(...status({ ready: false, lines: { till: { state: "recovering", reason: "bank owes" } }, journal }));
  const report = await look(host);
  assert.equal(one(report, "service", "warn").what, "posline (process 44) isn't ready (http://127.0.0.1:8880/readyz)");
  const line = one(report, "service", "bad");
  assert.deepEqual([line.line, line.what], ["till", "posline (process 44) says: line till is recovering (bank owes)"]);
  assert.match(one(report, "unknown").cure ?? "", /^sudo posline journal --unknown/);
  assert.equal(one(report, "journal", "warn").what, "the journal of money fails: the disk is full");
});

test("examine() tells that the service's log has gaps, and why nothing gets into it", async () => {
  const { host, node } = soundBox({ admin: {} });
  host.installed().running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: [node] });
  const told = async (log: object) => {
    host.web.set(...status({ ready: true, lines: { till: { state: "idle", reason: "proven" } }, log }));
    return (await look(host)).findings.filter(({ check }) => check === "log");
  };
  assert.deepEqual(await told({ state: "ok", dropped: { budget: 7, reader: 0 } }), []);
  const [gaps] = await told({ state: "ok", dropped: { budget: 0, reader: 1 } });
  assert.deepEqual(
    [gaps?.level, gaps?.what],
    ["note", "1 log line was dropped since posline started: its reader took none, or its disk was full"],
  );
  const state = "journald takes no lines (ECONNREFUSED): lines are held up to 1 MiB, then dropped";
  const [away, ...others] = await told({ state, dropped: { budget: 0, reader: 812 } });
  assert.deepEqual([away?.level, away?.what, away?.cause], ["warn", state, "812 log lines were dropped since posline started"]);
  assert.deepEqual(others, []);
});

test("examine() tells what was left over by which the service's Node opens a debugger, prints or writes", async () => {
  const { host, node } = soundBox({ admin: {} });
  const args = ["/usr/bin/node", "--cpu-prof", "/usr/lib/posline/posline.cjs", "serve"];
  host.installed().running(44, "posline", { args, unit: "posline.service", opens: [node] });
  host.web.set(...status({ ready: true, lines: { till: { state: "idle", reason: "proven" } } }));
  host.write("proc/44/environ", "PATH=/usr/bin\0NODE_OPTIONS=--max-semi-space-size=1 --inspect=9229\0NODE_ENV=production\0");
  const report = await look(host);
  const { what, cause, cure } = one(report, "node", "warn");
  assert.equal(what, "posline (process 44) was started with --cpu-prof, --inspect in NODE_OPTIONS");
  assert.match(cause ?? "", /^by that Node opens a debugger/);
  assert.match(cure ?? "", /^take it out .*sudo systemctl restart posline$/);
  host.write("proc/44/environ", "NODE_OPTIONS=--max-semi-space-size=1\0").write("proc/44/cmdline", "/usr/bin/posline\0serve\0");
  assert.equal((await look(host)).findings.filter(({ check }) => check === "node").length, 1, "its version alone");
});

test("examine() tells that it can't ask a service where its own configuration names no admin port", async () => {
  const { host, node } = soundBox();
  host.running(44, "node", { args: ["node", "dist/posline.cjs", "serve"], opens: [node] });
  const { what, cure } = one(await look(host), "service", "note");
  assert.equal(what, "posline (process 44) runs, but this configuration names no admin port, so its status isn't known");
  assert.equal(
    cure,
    'sudo posline doctor --config FILE, with the file that it was started with; or add "admin": {} to that file, then start it again',
  );
});

test("examine() has a recovery wait for its time, and stops no posline that has just begun one", async () => {
  const { host, node } = soundBox({ admin: {} });
  host.running(44, "posline", { args: ["posline", "serve"], opens: [node] });
  const lines = (sinceMs: number) => ({ till: { state: "recovering", reason: "the device opened", sinceMs } });
  host.web.set(...status({ ready: false, lines: lines(4_000) }));
  const report = await look(host);
  const begun = report.findings.find(({ check, line }) => check === "service" && line === "till");
  assert.deepEqual([begun?.level, begun?.cure, report.verdict], ["warn", "wait 31 s, and run this command again", "ok"]);
  host.web.set(...status({ ready: false, lines: lines(60_000) }));
  assert.match(one(await look(host), "service", "bad").cure ?? "", /^sudo kill 44; sudo posline doctor --line till then/);
});

test("examine() tells a posline that stands still, whether it has an admin port or not", async () => {
  for (const more of [{ admin: {} }, {}]) {
    const { host, node } = soundBox(more);
    host.running(44, "posline", { args: ["posline", "serve"], opens: [node] }).write("proc/44/status", "State:\tT (stopped)\n");
    const report = await look(host);
    const { what, cure } = one(report, "service", "bad");
    assert.equal(what, "posline (process 44) stands still: no call is answered");
    assert.deepEqual([cure, report.verdict], ["sudo kill -CONT 44", "bad"]);
  }
});

test("examine() asks the package's service at the usual admin port, whatever the file says", async () => {
  const { host, node } = soundBox();
  host.installed().running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: [node] });
  assert.match(one(await look(host), "service").what, /127\.0\.0\.1:8880/);
});

test("examine() says that a posline started by hand has the line, and what stops it", async () => {
  const { host, node } = soundBox();
  host.running(77, "node", { args: ["node", "dist/posline.cjs", "serve"], opens: [node] });
  const report = await look(host);
  assert.equal(one(report, "holder").level, "ok");
  assert.match(one(report, "answer").cure ?? "", /^sudo kill 77, then/);
});

test("examine() tells a posline that answers with an emulated terminal, by its status and by its flag", async () => {
  const emulated = { state: "idle", reason: "proven", device: { path: "emulated:" } };
  for (const more of [{ admin: {} }, {}]) {
    const { host } = soundBox(more);
    const args = ["node", "dist/posline.cjs", "serve", ...("admin" in more ? [] : ["--emulated"])];
    host.listening("0100007F", 8888, 5001).running(44, "posline", { args, opens: ["socket:[5001]"] });
    host.web.set(...status({ ready: true, lines: { till: emulated } }));
    const report = await look(host);
    assert.equal(report.verdict, "bad");
    const found = one(report, "service", "bad");
    assert.equal(found.what, "posline (process 44) answers with an emulated terminal in place of line till: no money moves");
    assert.equal(found.cure, "sudo kill 44, and start it again without --emulated");
  }
});

test("examine() has --emulated taken out of a unit that has it, which is started with it again", async () => {
  const { host, node } = soundBox({ admin: {} });
  const args = ["/usr/bin/posline", "serve", "--emulated"];
  host.installed().running(44, "posline", { args, unit: "posline.service", opens: [node] });
  host.web.set(...status({ ready: true }));
  assert.equal(
    one(await look(host), "service", "bad").cure,
    "take --emulated out of its ExecStart (systemctl cat posline shows which file has it), " +
      "then sudo systemctl daemon-reload && sudo systemctl restart posline",
  );
});

test("examine() takes what posline says of another device for no word on the configured one", async () => {
  const { host, node } = soundBox({ admin: {} });
  host.listening("0100007F", 8888, 5001).running(44, "posline", { args: ["posline", "serve"], opens: ["socket:[5001]"] });
  const saying = (device: object) =>
    host.web.set(...status({ ready: true, lines: { till: { state: "idle", reason: "proven", device } } }));
  saying({ path: "/dev/ttyUSB7", node: "/dev/ttyUSB7" });
  const found = one(await look(host), "service", "warn");
  assert.equal(found.what, `posline (process 44) has line till on /dev/ttyUSB7, and not on ${node}`);
  assert.equal(found.cure, "sudo kill 44, and start it again");
  saying({ path: "usb:0403:6001", node });
  assert.deepEqual(levels(await look(host), "service"), ["ok", "ok"]);
});

test("examine() takes no tool of posline's for a bridge, nor a program that has a file of that name", async () => {
  const tools = [
    [["node", "dist/posline.cjs", "tap", "--raw", "--line", "/dev/ttyUSB0"], "it is posline tap, and no bridge"],
    [["/usr/bin/posline", "emulate", "--line", "/dev/ttyUSB0"], "it is posline emulate, and no bridge"],
    [["minicom", "posline"], undefined],
  ] as const;
  for (const [args, cause] of tools) {
    const { host, node } = soundBox();
    host.listening("0100007F", 8888, 5001).running(77, "posline", { args: [...args], opens: [node, "socket:[5001]"] });
    const report = await look(host);
    const holder = one(report, "holder", "bad");
    assert.deepEqual([holder.cause, holder.cure], [cause, "stop it: sudo kill 77"]);
    const port = one(report, "port", "bad");
    assert.deepEqual([port.cause, port.cure], [cause, "sudo kill 77, or configure another port"]);
  }
});

test("examine() of a line named by its device advises no command for a line that a file may not have", async () => {
  const { host, line } = soundBox();
  line.onWrite = () => {};
  const device = host.tty("ttyS7", "platform/serial7/ttyS7");
  const silence = one(await look(host, device), "silence", "bad");
  assert.match(silence.cure ?? "", new RegExp(`3\\. sudo posline doctor --line ${device} --scan tries`));
  const named = one(await look(host), "silence", "bad");
  assert.match(named.cure ?? "", /3\. sudo posline doctor --line till --scan tries/);
});

test("examine() tells missing permission with the command that gives it", async () => {
  const { host, line } = soundBox();
  host.mayOpen = false;
  const report = await look(host);
  assert.deepEqual([one(report, "permission").level, report.verdict], ["bad", "bad"]);
  assert.match(one(report, "permission").cure ?? "", /usermod -aG dialout till/);
  assert.equal(line.openings, 0);
});

test("examine() tells whether the service's user may open the device", async () => {
  const { host, node } = soundBox();
  host.installed({ socket: "inactive" });
  assert.deepEqual(levels(await look(host), "permission"), ["ok", "ok"]);
  chmodSync(node, 0o600);
  const report = await look(host);
  assert.deepEqual(levels(report, "permission"), ["ok", "bad"]);
  assert.match(one(report, "permission", "bad").what, /the service's user posline may not open/);
  assert.match(one(report, "permission", "bad").cure ?? "", /^sudo /);
});

test("examine() warns of ModemManager unless a udev rule keeps it away", async () => {
  const { host } = soundBox();
  assert.equal(one(await look(host), "modemmanager").level, "ok");
  host.running(500, "ModemManager");
  const warned = one(await look(host), "modemmanager");
  assert.deepEqual([warned.level, warned.cure], ["warn", "sudo systemctl disable --now ModemManager"]);
  host.write("run/udev/data/c188:0", "I:1\nE:ID_BUS=usb\nE:ID_MM_DEVICE_IGNORE=1\n");
  assert.equal(one(await look(host), "modemmanager").level, "ok");
});

test("examine() finds the rule of brltty's that claims the adapter, unless posline's takes it back", async () => {
  const { host } = soundBox();
  const rule = "usr/lib/udev/rules.d/85-brltty.rules";
  host.write(rule, '# ENV{PRODUCT}=="403/6001/*"\nENV{PRODUCT}=="1a86/7523/*", ENV{BRLTTY_BRAILLE_DRIVER}="bm"\n');
  assert.equal(one(await look(host), "brltty").level, "ok");
  host.write(rule, 'ENV{PRODUCT}=="403/6001/*", ATTRS{manufacturer}=="Hedo *", ENV{BRLTTY_BRAILLE_DRIVER}="hd"\n');
  assert.equal(one(await look(host), "brltty").level, "ok");
  host.write(rule, 'ENV{PRODUCT}=="403/6001/*", ENV{BRLTTY_BRAILLE_DRIVER}="hd"\n');
  const claimed = one(await look(host), "brltty");
  assert.deepEqual([claimed.level, claimed.cause], ["warn", "its rule 85-brltty.rules names adapters of this kind"]);
  host.write("usr/lib/udev/rules.d/91-posline-brltty.rules", "");
  assert.equal(one(await look(host), "brltty").level, "ok");
});

test("examine() finds the kernel's console and a login prompt on the device, and asks nothing there", async () => {
  const { host, line } = soundBox();
  const uart = host.tty("ttyAMA0", "platform/serial0/ttyAMA0");
  host.link("dev/serial0", "dev/ttyAMA0");
  host.config({ lines: { till: { path: uart } }, services: { bank: { line: "till" } }, journal: false });
  assert.equal(one(await look(host), "console").level, "ok");
  line.openings = 0;
  host.write("proc/cmdline", "console=serial0,115200 console=tty1\n").write("proc/device-tree/model", "Raspberry Pi 4\0");
  host.running(600, "agetty", { args: ["/sbin/agetty", "-o", "-p", "115200", "ttyAMA0", "vt220"] });
  const report = await look(host);
  const [kernel, prompt, ...others] = report.findings.filter(({ check }) => check === "console");
  assert.equal(others.length, 0);
  assert.match(kernel?.cause ?? "", /console=serial0 is in \/boot\/firmware\/cmdline\.txt/);
  assert.match(kernel?.cure ?? "", /raspi-config/);
  assert.equal(prompt?.cure, "sudo systemctl mask --now serial-getty@ttyAMA0.service");
  assert.deepEqual([report.verdict, line.openings], ["bad", 0]);
});

test("examine() finds a login prompt of systemd's, whose program doesn't name its device", async () => {
  const { host, line } = soundBox();
  const args = ["/sbin/agetty", "-o", "-p -- \\u", "--keep-baud", "115200,57600,38400,9600", "-", "vt220"];
  host.running(600, "agetty", { args, unit: "serial-getty@ttyS1.service" });
  assert.equal(one(await look(host), "console").level, "ok");
  line.openings = 0;
  host.running(601, "agetty", { args, unit: "serial-getty@ttyUSB0.service" });
  const report = await look(host);
  assert.equal(one(report, "console", "bad").cure, "sudo systemctl mask --now serial-getty@ttyUSB0.service");
  assert.deepEqual([one(report, "answer").level, line.openings], ["skipped", 0]);
  // A gadget's prompt is of the other unit
  host.running(601, "agetty", { args, unit: "getty@ttyUSB0.service" });
  assert.equal(one(await look(host), "console").cure, "sudo systemctl mask --now getty@ttyUSB0.service");
});

test("examine() tells how the adapter is set: udev rule, latency, sleep", async () => {
  const { host } = soundBox();
  for (const check of ["udev", "latency", "autosuspend"]) assert.equal(one(await look(host), check).level, "ok");
  host.adapter("power/control", "auto\n").adapter("1-1:1.0/ttyUSB0/latency_timer", "16\n");
  const report = await look(host);
  assert.deepEqual([one(report, "latency").level, one(report, "autosuspend").level], ["note", "warn"]);
  assert.match(one(report, "latency").cure ?? "", /^echo 1 \| sudo tee .*latency_timer$/);
  const bare = new FakeHost();
  const node = bare.ftdi();
  const other = { ...bare.places, usr: join(bare.root, "empty") };
  bare.config({ lines: { till: { path: node } }, services: { bank: { line: "till" } }, journal: false });
  assert.equal(one(await examined({}, other), "udev").level, "note");
});

test("examine() notes a name that may be another one after a replug, and which to configure", async () => {
  const { host } = soundBox();
  const device = one(await look(host), "device");
  assert.deepEqual([device.level, device.cure], ["note", "configure it as usb:0403:6001:A50285BI"]);
});

test("examine() tells who has a port: nobody, posline, systemd for posline, a stranger, somebody unseen", async () => {
  const { host } = soundBox();
  assert.match(one(await look(host), "port").what, /is free$/);
  host.listening("0100007F", 8888, 5001);
  assert.match(one(await look(host), "port", "bad").cause ?? "", /this user can't see/);
  host.running(90, "nginx", { unit: "nginx.service", opens: ["socket:[5001]"] });
  const stranger = one(await look(host), "port", "bad");
  assert.match(stranger.what, /taken by process 90 \(nginx\)$/);
  assert.equal(stranger.cure, "sudo systemctl disable --now nginx.service");
  const ours = soundBox()
    .host.listening("00000000", 8888, 5001)
    .running(44, "node", { args: ["node", "posline.cjs"], opens: ["socket:[5001]"] });
  assert.match(one(await look(ours), "port").what, /is posline's \(process 44\)$/);
  const socket = soundBox()
    .host.installed()
    .listening("0100007F", 8888, 5001)
    .running(1, "systemd", { opens: ["socket:[5001]"] });
  assert.match(one(await look(socket), "port").what, /systemd for posline/);
});

test("examine() blames nothing on a posline of another user's, whose sockets and files this user may not see", async () => {
  const { host, node } = soundBox({ admin: {} });
  host.mayOpen = false;
  host.listening("0100007F", 8888, 5001).running(44, "posline", { args: ["posline", "serve"], opens: [node] });
  const journal = { state: "ok", folder: host.at("state") };
  const lines = { till: { state: "idle", reason: "proven" } };
  host.web.set(...status({ ready: true, lines, services: { bank: { line: "till", port: 8888 } }, journal }));
  const report = await look(host);
  assert.equal(report.verdict, "ok", JSON.stringify(report.first));
  assert.equal(one(report, "port").what, "bank's port 8888 is posline's (process 44), as it says");
  assert.equal(one(report, "journal").what, `posline writes it into ${host.at("state")}`);
  assert.equal(one(report, "permission").level, "note");
  host.web.set(...status({ ready: true, lines, services: { bank: { line: "till", port: 9999 } }, journal }));
  assert.equal(one(await look(host), "port", "bad").cure, "sudo posline doctor shows which: it may be posline's own");
});

test("examine() ends no user's whole session for one program of it", async () => {
  for (const own of ["app.slice/vte-spawn-1.scope", "app.slice/oldpos.service", "session.slice/pos.service"]) {
    const { host, node } = soundBox();
    host.listening("0100007F", 8888, 5001).running(90, "python3", { opens: ["socket:[5001]", node] });
    host.write("proc/90/cgroup", `0::/user.slice/user-1000.slice/user@1000.service/${own}\n`);
    const report = await look(host);
    assert.equal(one(report, "port", "bad").cure, "sudo kill 90, or configure another port", own);
    assert.equal(one(report, "holder", "bad").cure, "stop it: sudo kill 90", own);
  }
});

test("examine() stops no unit for one program that the unit's own has started, as cron does", async () => {
  const { host } = soundBox();
  host.listening("0100007F", 8888, 5001).running(90, "node", { unit: "cron.service", opens: ["socket:[5001]"] });
  host.running(70, "cron", { unit: "cron.service" });
  assert.equal(
    one(await look(host), "port", "bad").cure,
    "systemctl status 90 shows what started it, and may do so again: sudo kill 90, or configure another port",
  );
});

test("examine() stops one container for a port that Docker listens on, and not Docker", async () => {
  const { host } = soundBox();
  host.listening("0100007F", 8888, 5001).running(90, "docker-proxy", { unit: "docker.service", opens: ["socket:[5001]"] });
  const { cure } = one(await look(host), "port", "bad");
  assert.equal(cure, "sudo docker ps --filter publish=8888 shows the container: stop that one");
});

test("examine() never advises to kill the first process, which holds the sockets of other units", async () => {
  const { host, node } = soundBox();
  host.listening("0100007F", 8888, 5001).running(1, "systemd", { opens: ["socket:[5001]", node] });
  const report = await look(host);
  assert.equal(
    one(report, "port", "bad").cure,
    "systemctl list-sockets shows whose it is: stop that unit, or configure another port",
  );
  for (const { cure = "" } of report.findings) assert.doesNotMatch(cure, /kill 1\b/);
  host.running(90, "cupsd", { unit: "cups.service", opens: ["socket:[5001]"] });
  assert.match(one(await look(host), "port", "bad").what, /taken by process 90 \(cupsd\)$/);
});

test("examine() lets a port be that is taken on another address, and reads IPv6", async () => {
  const { host } = soundBox({ services: { bank: { line: "till", host: "127.0.0.1" } } });
  host.listening("0A00A8C0", 8888, 5001);
  assert.equal(one(await look(host), "port").level, "ok");
  host.listening(`${"0".repeat(24)}01000000`, 8888, 5001, "tcp6");
  assert.equal(one(await look(host), "port").level, "ok");
  host.listening("0".repeat(32), 8888, 5001, "tcp6");
  assert.equal(one(await look(host), "port").level, "bad");
});

test("examine() names a stranger on either address of localhost, beside posline on the other one too, and whoever has both once", async () => {
  const { host } = soundBox();
  host.running(44, "posline", { args: ["posline", "serve"], opens: ["socket:[5001]", "socket:[5002]"] });
  host.running(45, "node", { args: ["node", "dev.js"], opens: ["socket:[6001]", "socket:[6002]"] });
  const looked = async (inode4: number | undefined, inode6: number | undefined) => {
    host.write("proc/net/tcp", "").write("proc/net/tcp6", "");
    if (inode4 !== undefined) host.listening("0100007F", 8888, inode4);
    if (inode6 !== undefined) host.listening(`${"0".repeat(24)}01000000`, 8888, inode6, "tcp6");
    const { findings } = await look(host);
    return findings.filter(({ check }) => check === "port").map(({ level, what }) => `${level}: ${what}`);
  };
  const ours = "ok: bank's port 8888 is posline's (process 44)";
  const taken = (address: string) => `bad: bank's port 8888 on ${address} is taken by process 45 (node)`;
  assert.deepEqual(await looked(5001, 5002), [ours]);
  assert.deepEqual(await looked(5001, undefined), [ours]);
  assert.deepEqual(await looked(5001, 6002), [taken("::1")]);
  assert.deepEqual(await looked(6001, 5002), [taken("127.0.0.1")]);
  assert.deepEqual(await looked(undefined, 6002), [taken("::1")]);
  assert.deepEqual(await looked(6001, 6002), [taken("127.0.0.1")]);
  assert.deepEqual(await looked(undefined, undefined), ["ok: bank's port 8888 on localhost is free"]);
});

test("examine() has neither a gateway nor its upstream on this box stopped", async () => {
  const { host, node } = soundBox({ services: { bank: { line: "till", upstream: "http://127.0.0.1:8888" } } });
  host.running(44, "node", { args: ["node", "dist/posline.cjs", "gateway"], opens: [node] });
  host.listening("0100007F", 8888, 5001).running(45, "maker", { opens: ["socket:[5001]"] });
  const report = await look(host);
  const { what, cause, cure } = one(report, "port", "note");
  assert.equal(what, "bank's port 8888 on 127.0.0.1 is taken by process 45 (maker)");
  assert.match(cause ?? "", /^posline gateway asks bank at http:\/\/127\.0\.0\.1:8888, and needs no port for it/);
  assert.equal(cure, undefined);
  assert.match(one(report, "answer", "skipped").what, /a till is at its other end/);
  assert.doesNotMatch(JSON.stringify(report), /sudo kill/);
});

test("examine() takes no word from the posline that a gateway asks on this box", async () => {
  const { host } = soundBox({ services: { bank: { line: "till", upstream: "http://127.0.0.1:8888" } }, admin: {} });
  host.listening("0100007F", 8888, 5001).running(46, "posline", { args: ["posline", "serve"], opens: ["socket:[5001]"] });
  host.web.set(...status({ ready: true, lines: { till: { state: "idle", device: { path: "/dev/ttyUSB7" } } } }));
  assert.doesNotMatch(JSON.stringify(await look(host)), /"check":"service"/);
});

test("examine() stops nobody for a port of the other IP version", async () => {
  const [every4, every6, loopback6] = ["0".repeat(8), "0".repeat(32), `${"0".repeat(24)}01000000`];
  const level = async (address: string, taken: string, table?: "tcp6") => {
    const { host } = soundBox({ services: { bank: { line: "till", host: address } } });
    host.listening(taken, 8888, 5001, table);
    return one(await look(host), "port").level;
  };
  assert.equal(await level("::1", every4), "ok");
  assert.equal(await level("0.0.0.0", loopback6, "tcp6"), "ok");
  assert.equal(await level("::1", every6, "tcp6"), "bad");
  assert.equal(await level("127.0.0.1", every6, "tcp6"), "bad", "it has both");
  assert.equal(await level("127.0.0.1", every4), "bad");
  assert.equal(await level("0.0.0.0", "0100007F"), "bad");
  assert.equal(await level("::", every4), "bad");
});

test("examine() knows an IPv6 address however it is written", async () => {
  for (const address of ["fd00::2", "fd00:0::0:2", "fd00:0:0:0:0:0:0:2"]) {
    const { host } = soundBox({ services: { bank: { line: "till", host: address } } });
    host.listening("000000FD000000000000000003000000", 8888, 5001, "tcp6");
    assert.equal(one(await look(host), "port").level, "ok", `${address}, and fd00::3 is taken`);
    host.listening("000000FD000000000000000002000000", 8888, 5001, "tcp6");
    assert.match(one(await look(host), "port", "bad").what, /^bank's port 8888 on fd00::2 is taken/, address);
  }
});

test("examine() finds a port that posline.socket wasn't told of", async () => {
  const { host } = soundBox({ services: { bank: { line: "till", port: 9999 } } });
  const port = one(await look(host.installed()), "port", "bad");
  assert.match(port.cure ?? "", /\[Socket\] ListenStream=127\.0\.0\.1:9999 and ListenStream=\[::1\]:9999,/);
});

test("examine() tells a clock that can't be right, and whether it is set by a time server", async () => {
  const { host } = soundBox();
  assert.equal(one(await look(host), "time sync").level, "ok");
  const wrong = { ...host.places, run: host.at("empty"), now: () => new Date("1970-01-01T00:03:00Z") };
  const report = await examined({}, wrong);
  assert.deepEqual([one(report, "clock").level, one(report, "time sync").level], ["warn", "skipped"]);
  host.commands.set("timedatectl show --property=NTPSynchronized --value", "no\n");
  assert.equal(one(await examined({}, wrong), "time sync").level, "note");
});

test("examine() tells a Node that is too old", async () => {
  const { host } = soundBox();
  for (const [nodeVersion, level] of [
    ["18.19.0", "bad"],
    ["20.18.3", "bad"],
    ["20.19.0", "ok"],
    ["26.0.0", "ok"],
  ] as const) {
    assert.equal(one(await examined({}, { ...host.places, nodeVersion }), "node").level, level, nodeVersion);
  }
});

test("examine() tells where the journal of money can't be written, or isn't kept", async () => {
  const { host } = soundBox();
  assert.equal(one(await look(host), "journal").level, "ok");
  const gone = soundBox({ journal: { folder: "/nowhere/at/all" } }).host;
  assert.match(one(await look(gone), "journal").cure ?? "", /^mkdir -p/);
  const file = soundBox().host;
  file.config({
    lines: { till: { path: file.at("dev/ttyUSB0") } },
    services: { bank: { line: "till" } },
    journal: { folder: file.at("etc/group") },
  });
  assert.match(one(await look(file), "journal", "bad").what, /is not a folder$/);
  assert.equal(one(await look(soundBox({ journal: false }).host), "journal").level, "note");
});

test("examine() tells a journal on a file system that has become read-only, and one whose file is another user's", async () => {
  const { host } = soundBox();
  host.write("state/journal", "");
  const readOnly = async (path: string) => {
    if (path.startsWith(host.at("state"))) throw Object.assign(new Error("read-only"), { code: "EROFS" });
  };
  const found = one(await examined({}, { ...host.places, access: readOnly }), "journal", "bad");
  assert.equal(found.what, `the file system of ${host.at("state")} is read-only`);
  assert.match(found.cure ?? "", /remount,rw/);
  const denied = async (path: string) => {
    if (path.endsWith("/journal")) throw Object.assign(new Error("denied"), { code: "EACCES" });
  };
  const foreign = one(await examined({}, { ...host.places, access: denied }), "journal", "bad");
  assert.equal(foreign.what, `this user may not write into ${host.at("state/journal")}`);
  assert.match(
    foreign.cure ?? "",
    /^run this command as the user who starts posline: if that is this one, sudo chown "\$USER" /,
  );
  const installed = one(await look(host.installed()), "journal", "bad");
  assert.match(installed.cure ?? "", /^sudo chown posline:posline .*state &&/);
});

test("examine() knows the state folder that systemd gives to the service", async () => {
  const { host, node } = soundBox();
  host.installed().config({ lines: { till: { path: node } }, services: { bank: { line: "till" } } });
  // This user's own, so the service's user may not write there.
  const journal = one(await look(host), "journal", "bad");
  assert.match(journal.what, /^the service's user posline may not write into/);
  assert.match(journal.cure ?? "", /^sudo chown posline:posline/);
});

test("examine() tells how the units stand", async () => {
  const { host } = soundBox();
  assert.equal(one(await look(host), "unit").level, "skipped");
  assert.equal(one(await look(host.installed()), "unit").level, "ok");
  assert.equal(one(await look(host.installed({ active: "failed" })), "unit").level, "warn");
  assert.match(one(await look(host.installed({ active: "inactive" })), "unit").cure ?? "", /enable --now/);
});

test("examine() finds a device that the service's unit doesn't allow", async () => {
  const { host } = soundBox();
  // Nobody needs a device to be there for its number: /dev/null has major 1.
  host
    .installed({ socket: "inactive" })
    .config({ lines: { till: { path: "/dev/null" } }, services: { bank: { line: "till" } } });
  const permission = one(await look(host), "permission", "bad");
  assert.match(permission.cure ?? "", /DeviceAllow=char-1 rw/);
});

test("examine() asks nothing where a till is at the other end", async () => {
  const { host, line } = soundBox({ services: { bank: { line: "till", upstream: "http://127.0.0.1:8888" } } });
  const report = await look(host);
  assert.match(one(report, "answer", "skipped").what, /a till is at its other end/);
  assert.equal(line.openings, 0);
});

test("examine() takes word only from a posline that holds this configuration's ports or device", async () => {
  const { host } = soundBox({ admin: { port: 8880 } });
  host
    .installed()
    .running(44, "posline", { args: ["/usr/bin/posline", "serve"], unit: "posline.service", opens: ["/dev/null"] });
  host.running(45, "node", { args: ["node", "dist/posline.cjs", "serve"], opens: ["socket:[7]"] });
  host.web.set(...status({ ready: false, lines: { till: { state: "down" } } }));
  const other = await look(host);
  assert.deepEqual(levels(other, "service"), []);
  assert.equal(other.verdict, "bad", "posline.socket is active, and nothing listens");
  host.listening("0100007F", 8880, 5001).running(46, "node", {
    args: ["node", "dist/posline.cjs", "serve"],
    opens: ["socket:[5001]"],
  });
  assert.match(one(await look(host), "service", "warn").what, /^posline \(process 46\) isn't ready/);
});

test("examine() says nothing of posline.service where another configuration than the service's is checked", async () => {
  const { host, node } = soundBox();
  host.installed({ active: "failed" });
  host.write(
    "own.json",
    JSON.stringify({ lines: { till: { path: node } }, services: { bank: { line: "till", port: 9 } }, journal: false }),
  );
  const report = await examined({ config: host.at("own.json") }, host.places);
  assert.deepEqual(levels(report, "unit"), []);
  assert.deepEqual(levels(report, "port"), ["ok"]);
});

test("examine() stops a posline that a person started by its number, and repeats --config in each command of its own", async () => {
  const { host, node } = soundBox();
  const config = {
    lines: { till: { path: node } },
    services: { bank: { line: "till" } },
    admin: { port: 8880 },
    journal: false,
  };
  host.write("my own.json", JSON.stringify(config));
  host.running(44, "node", { args: ["node", "posline.cjs", "serve"], opens: [node] });
  const heard = { state: "unheard", reason: "silence", cure: "1. switch it on; 2. posline doctor --line till says more" };
  const lines = { till: { state: "recovering", reason: "the device opened" } };
  host.web.set(...status({ ready: false, lines, services: { bank: { line: "till", heard } } }));
  const file = host.at("my own.json");
  const report = await examined({ config: file }, host.places);
  assert.equal(one(report, "answer").cure, "sudo kill 44, then this command again, for a full test");
  assert.equal(one(report, "heard").cure, `1. switch it on; 2. posline doctor --config '${file}' --line till says more`);
  const journal = { unknown: { total: 1 } };
  host.web.set(...status({ ready: false, lines, services: {}, journal }));
  assert.match(
    one(await examined({ config: file }, host.places), "unknown").cure ?? "",
    /^sudo posline journal --config '.*my own\.json' --unknown lists them/,
  );
  assert.equal(
    one(await examined({ config: file }, host.places), "service", "bad").cure,
    `sudo kill 44; sudo posline doctor --config '${file}' --line till then tests the terminal itself`,
  );
});

test("examine() tells of services unheard for one reason once", async () => {
  const { host, node } = soundBox({ admin: { port: 8880 }, services: { bank: { line: "till" }, qr: { line: "till" } } });
  host.running(44, "node", { args: ["node", "posline.cjs", "serve"], opens: [node] });
  const heard = { state: "unheard", reason: "not one byte comes back", cure: "switch the terminal on" };
  const services = { bank: { line: "till", heard }, qr: { line: "till", heard } };
  host.web.set(
    ...status({ ready: false, lines: { till: { state: "recovering", reason: "not one byte comes back" } }, services }),
  );
  const report = await look(host);
  const bad = report.findings.filter(({ level }) => level === "bad");
  assertMapped(bad, [["not one byte comes back", "posline (process 44) says so of bank, qr"]], ({ what, cause }) => [
    what,
    cause,
  ]);
});

test("examine() says posline setup where the configuration names no device yet", async () => {
  const { host } = soundBox({ lines: { till: { path: "/dev/serial/by-id/NAME-THE-DEVICE-by-posline-setup" } } });
  const device = one(await examined({}, { ...host.places, resolve: (path) => resolveDevice(path) }), "device", "bad");
  assert.match(device.what, /^the configuration names no device yet: its path is .*NAME-THE-DEVICE/);
  assert.equal(device.cure, "sudo posline setup finds a terminal, and posline ports lists the devices");
});

test("examine() gives each finding away as it is made, in the report's order, the line's name before it", async () => {
  const { host, line } = soundBox();
  const seen: string[] = [];
  const time = new VirtualTime();
  try {
    let report: DoctorReport | undefined;
    line.onOpen = () => seen.push("opened");
    const onFinding = ({ check }: Finding) => seen.push(check);
    const onLine = ({ name }: { name: string }) => seen.push(`line ${name}`);
    const examining = examine({ wanted: {}, places: host.places, onFinding, onLine }).then((done) => {
      report = done;
    });
    while (report === undefined) await Promise.race([examining, time.advance(10)]);
    const checks = report.findings.map(({ check }) => check);
    assert.deepEqual(
      seen.filter((each) => !/^line |^opened$/.test(each)),
      checks,
    );
    assert.equal(seen[seen.indexOf("device") - 1], "line till");
    assert.ok(seen.indexOf("permission") < seen.indexOf("opened"), seen.join());
  } finally {
    time.restore();
  }
});
