import assert from "node:assert/strict";
import { test } from "node:test";
import { type Config, ConfigError, emulatedPath, type LineConfig, type ServiceConfig } from "../../src/config/config.ts";
import { adminDefaults, journalDefaults, lineDefaults, serviceDefaults } from "../../src/config/limits.ts";
import { refuseCrossed, refuseUnrecorded, warningsOf } from "../../src/config/rules.ts";

function lineOf(settings: Partial<LineConfig> = {}): LineConfig {
  return { path: "/dev/absent0", ...lineDefaults, ...settings };
}

function serviceOf(port: number, settings: Partial<ServiceConfig> = {}): ServiceConfig {
  return {
    contract: "bank",
    line: "till",
    port,
    ...serviceDefaults,
    replyTimeoutMs: {},
    allowOrigins: [],
    allowHosts: [],
    ...settings,
  };
}

function configOf(settings: Partial<Config> = {}): Config {
  const journal = { folder: "/var/lib/posline", ...journalDefaults };
  return { lines: { till: lineOf() }, services: { bank: serviceOf(8888) }, journal, log: { level: "info" }, ...settings };
}

function problemsOf(settings: Partial<Config>): string[] {
  const problems: string[] = [];
  refuseCrossed(configOf(settings), problems);
  return problems;
}

test("refuseCrossed() lets a sound configuration pass", () => {
  assert.deepEqual(problemsOf({}), []);
});

test("refuseCrossed() tells a service on a line that isn't there, even one named as a property of Object", () => {
  for (const line of ["tll", "constructor", "__proto__"]) {
    assert.deepEqual(problemsOf({ services: { bank: serviceOf(1, { line }) } }), [
      `services.bank.line: there is no line "${line}": use one of till`,
    ]);
  }
});

test("refuseCrossed() tells a line that no service uses", () => {
  assert.deepEqual(problemsOf({ lines: { till: lineOf(), bar: lineOf({ path: "/dev/absent1" }) } }), [
    'lines.bar: no service uses this line: set "line" of a service to it, or remove it',
  ]);
});

test("refuseCrossed() tells two listeners on one host and port, wildcards and the admin page included", () => {
  const on = (bankHost: string, qrHost: string) => ({
    services: { bank: serviceOf(1, { host: bankHost }), qr: serviceOf(1, { contract: "qr", host: qrHost }) },
  });
  for (const [one, other] of [
    ["127.0.0.1", "127.0.0.1"],
    ["localhost", "127.0.0.1"],
    ["::1", "localhost"],
    ["localhost", "localhost"],
    ["localhost", "0.0.0.0"],
    ["0.0.0.0", "10.0.0.7"],
    ["10.0.0.7", "::"],
  ] as const) {
    assert.deepEqual(problemsOf(on(one, other)), [
      `services.qr.port: 1 on ${other} is already used by services.bank.port: give each its own port`,
    ]);
  }
  for (const [one, other] of [
    ["127.0.0.1", "10.0.0.7"],
    ["127.0.0.1", "::1"],
    ["localhost", "127.0.0.2"],
  ] as const) {
    assert.deepEqual(problemsOf(on(one, other)), []);
  }
  assert.deepEqual(problemsOf({ admin: { ...adminDefaults, port: 8888 } }), [
    "admin.port: 8888 on localhost is already used by services.bank.port: give each its own port",
  ]);
  assert.deepEqual(problemsOf({ services: { bank: serviceOf(0), qr: serviceOf(0, { contract: "qr" }) } }), []);
});

test("refuseCrossed() tells a linePort that selects another service of the line, and no other", () => {
  const problems = (linePort: number, qrLine = "till") =>
    problemsOf({
      lines: { till: lineOf(), bar: lineOf({ path: "/dev/absent1" }) },
      services: {
        "card-1": serviceOf(1),
        fiscal: serviceOf(2, { contract: "fiscal", line: "bar" }),
        qr: serviceOf(3, { contract: "qr", line: qrLine, linePort }),
      },
    });
  assert.deepEqual(problems(8888), ["services.qr.linePort: 8888 selects card-1 on line till: give qr another one"]);
  assert.deepEqual(problems(8008, "bar"), ["services.qr.linePort: 8008 selects fiscal on line bar: give qr another one"]);
  for (const [linePort, line] of [
    [8887, "till"],
    [9001, "till"],
    [8008, "till"],
    [8888, "bar"],
  ] as const) {
    assert.deepEqual(problems(linePort, line), []);
  }
});

for (const [one, other] of [
  ["tcp:localhost:4001", "tcp:127.0.0.1:4001"],
  ["tcp:127.0.0.1:4001", "tcp:[::1]:4001"],
  ["tcp:localhost:4001", "tcp:LocalHost:4001"],
  ["tcp:ser2net.shop:4001", "tcp:SER2NET.Shop:4001"],
  ["tcp:0.0.0.0:4001", "tcp:127.1:4001"],
  ["tcp:[::]:4001", "tcp:localhost:4001"],
  ["tcp:192.168.1.40:4001", "tcp:[::ffff:192.168.1.40]:4001"],
  ["tcp:[2001:db8::1]:4001", "tcp:[2001:DB8:0:0:0:0:0:1]:4001"],
  ["tcp:[fe80::1%eth0]:4001", "tcp:[FE80::1%eth0]:4001"],
] as const) {
  test(`refuseCrossed() tells two lines that mean one far end, ${one} and ${other}`, () => {
    const services = { bank: serviceOf(1), qr: serviceOf(2, { contract: "qr", line: "bar" }) };
    const problems = problemsOf({ services, lines: { till: lineOf({ path: one }), bar: lineOf({ path: other }) } });
    assert.match(problems.join(), /^lines\.bar\.path: tcp:\S+ is also the device of line till: .*remove one of the two lines/);
  });
}

test("refuseCrossed() lets two lines have two ports of one far end, or two addresses", () => {
  const services = { bank: serviceOf(1), qr: serviceOf(2, { contract: "qr", line: "bar" }) };
  for (const other of ["tcp:localhost:4002", "tcp:127.0.0.2:4001", "tcp:192.168.1.40:4001", "tcp:local:4001"]) {
    const lines = { till: lineOf({ path: "tcp:localhost:4001" }), bar: lineOf({ path: other }) };
    assert.deepEqual(problemsOf({ services, lines }), []);
  }
});

test("refuseCrossed() tells two lines of one path, but not two emulated ones", () => {
  const services = { bank: serviceOf(1), qr: serviceOf(2, { contract: "qr", line: "bar" }) };
  assert.deepEqual(problemsOf({ services, lines: { till: lineOf(), bar: lineOf() } }), [
    "lines.bar.path: /dev/absent0 is also the device of line till: a device leads to one terminal: remove one of the two lines, or give it another device",
  ]);
  const emulated = lineOf({ path: emulatedPath });
  assert.deepEqual(problemsOf({ services, lines: { till: emulated, bar: emulated } }), []);
});

test("refuseCrossed() tells a queue that would not fit into memory, by the largest body of the line's services", () => {
  const services = (bodyBytesMax: number) => ({ bank: serviceOf(1), qr: serviceOf(2, { contract: "qr", bodyBytesMax }) });
  const lines = { till: lineOf({ queueCallsMax: 65 }) };
  assert.deepEqual(problemsOf({ lines, services: services(8 * 1024 * 1024) }), [
    "lines.till.queueCallsMax: 65 waiting calls of up to 8388608 bytes may take 520 MiB of memory, more than the " +
      "limit of 512 MiB: lower it or bodyBytesMax",
  ]);
  assert.deepEqual(problemsOf({ lines: { till: lineOf() }, services: services(8 * 1024 * 1024) }), []);
});

test("refuseCrossed() tells an origin that no browser would send, with the one it sends", () => {
  const of = (origin: string) => problemsOf({ services: { bank: serviceOf(1, { allowOrigins: [origin] }) } });
  assert.deepEqual(of("https://till.shop:443"), [
    'services.bank.allowOrigins[0]: browsers never send "https://till.shop:443": write https://till.shop',
  ]);
  assert.equal(of("https://till.shop:99999").length, 1);
  for (const origin of ["https://till.shop", "http://localhost:3000", "http://[::1]:3000", "chrome-extension://abcdef"]) {
    assert.deepEqual(of(origin), []);
  }
});

test("warningsOf() is silent about a sound configuration", () => {
  assert.deepEqual(warningsOf(configOf()), []);
});

test("warningsOf() warns of a service that the network reaches, without a key or with one that can be read there", () => {
  const of = (settings: Partial<ServiceConfig>) => warningsOf(configOf({ services: { bank: serviceOf(1, settings) } }));
  assert.match(of({ host: "0.0.0.0" })[0] ?? "", /^services\.bank\.host: .*set apiKey$/);
  assert.match(
    of({ host: "0.0.0.0", apiKey: "k" }).join(),
    /^services\.bank\.host: callers send the API key to 0\.0\.0\.0 unencrypted/,
  );
  for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) assert.deepEqual(of({ host }), []);
});

test("warningsOf() warns of line settings that the frames don't survive, on real lines", () => {
  const of = (settings: Partial<LineConfig>) => warningsOf(configOf({ lines: { till: lineOf(settings) } }));
  assert.match(of({ dataBits: 7 })[0] ?? "", /^lines\.till\.dataBits: 7 bits /);
  assert.match(of({ flowControl: "xonxoff" })[0] ?? "", /^lines\.till\.flowControl: "xonxoff" /);
  assert.deepEqual(of({ flowControl: "xonxoff", path: emulatedPath }), []);
});

test("warningsOf() warns of each setting that a line over TCP can't have here, and says where it is set instead", () => {
  const of = (settings: Partial<LineConfig>) =>
    warningsOf(configOf({ lines: { till: lineOf({ path: "tcp:[::1]:4001", ...settings }) } }));
  assert.deepEqual(of({ baudRate: 9600, crc16: "umts", parity: "none" }), []);
  const settings = { dataBits: 7, parity: "even", stopBits: 2, flowControl: "xonxoff", hupcl: false } as const;
  assert.deepEqual(
    of(settings),
    Object.entries(settings).map(
      ([name, value]) =>
        `lines.till.${name}: ${JSON.stringify(value)} has no effect on a line over TCP: set it at the far end, and take it out here`,
    ),
  );
});

test("refuseUnrecorded() refuses to serve where nothing goes without a record and there is no folder for it", () => {
  const refuse = { ...journalDefaults, onFailure: "refuse" } as const;
  const config = configOf({ journal: { ...refuse, folder: undefined } });
  const said = /journal\.folder: not set, .*does not start: set "journal": .*, or set journal\.onFailure to "relay"$/;
  assert.throws(
    () => refuseUnrecorded(config),
    (error) => error instanceof ConfigError && error.exitCode === 78 && said.test(error.message),
  );
  assert.match(warningsOf(config).join("\n"), said, "a look at it from a shell, without systemd, is no error");
  for (const journal of [false, { ...refuse, folder: "/data" }, { ...journalDefaults, folder: undefined }] as const) {
    refuseUnrecorded(configOf({ journal }));
  }
});

test("warningsOf() warns of a journal without a folder, and not of one that is off", () => {
  const [warning, ...others] = warningsOf(configOf({ journal: { folder: undefined, ...journalDefaults } }));
  assert.match(warning ?? "", /^journal\.folder: not set, so .*: set "journal": \{"folder": "\/var\/lib\/posline"\}, or /);
  assert.deepEqual(others, []);
  assert.deepEqual(warningsOf(configOf({ journal: false })), []);
});

test("warningsOf() warns that fiscal recovers by silence without a merchantId", () => {
  const of = (settings: Partial<ServiceConfig>) =>
    warningsOf(configOf({ services: { fiscal: serviceOf(1, { contract: "fiscal", ...settings }) } }));
  assert.match(
    of({})[0] ?? "",
    /^services\.fiscal\.merchantId: .*its line takes no calls for 30000 ms at each start, and ten times as long after each lost fiscal answer: set merchantId or merchantIdFile$/,
  );
  assert.deepEqual(of({ merchantId: "M" }), []);
});
