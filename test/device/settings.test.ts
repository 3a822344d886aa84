import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { LinuxPortBinding } from "@serialport/bindings-cpp/dist/linux.js";
import type { LineConfig } from "../../src/config/config.ts";
import { wordsOf } from "../../src/device/open-errors.ts";
import { type SerialPortOptions, serialPort } from "../../src/device/serial-port.ts";
import type { Connection } from "../../src/device/transport.ts";
import { configOf } from "../line/lines.ts";
import { needs } from "../support/lacking.ts";
import { Pty } from "../support/pty.ts";
import { until } from "../support/until.ts";

/** What other programs do to the settings of a device while posline has it: a real pty, and `stty` on it from outside. */

const needsStty = needs("stty");
const lockFolder = mkdtempSync(join(tmpdir(), "posline-settings-"));
after(() => rmSync(lockFolder, { recursive: true, force: true }));
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Opened {
  readonly pty: Pty;
  readonly connection: Connection;
  /** What was told, in order. */
  readonly told: string[];
  text: string;
}

async function opened(
  settings: Partial<LineConfig> = {},
  options: SerialPortOptions & { readonly pty?: Pty } = {},
): Promise<Opened> {
  const pty = options.pty ?? new Pty(() => {});
  ends.push(() => pty.unplug());
  const told: string[] = [];
  const space = Buffer.alloc(4_096);
  const opening = { text: "" };
  const connection = await serialPort(configOf({ path: pty.path, ...settings }), {
    lockFolder,
    settingsChanged: (cause) => told.push(wordsOf(cause)),
    ...options,
  })({
    space: () => space,
    onBytes: (n) => {
      opening.text += space.toString("latin1", 0, n);
    },
    onWritten: () => {},
    onClosed: () => {},
  });
  ends.push(() => connection.close());
  return Object.assign(opening, { pty, connection, told });
}

const stty = ({ path }: Pty, ...args: readonly string[]): string =>
  execFileSync("stty", ["-F", path, ...args], { encoding: "utf8" }).trim();

/** Modes and speed as `stty` reads them from outside. */
const settingsOf = (pty: Pty): string => `${stty(pty, "-g")} ${stty(pty, "speed")}`;

/** The open files of this process that are the device, with the flags of each. */
function descriptorsOf({ path }: Pty): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`) !== path) return [];
      return [`${fd}: ${/flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1]}`];
    } catch {
      return [];
    }
  });
}

const changes: readonly (readonly [changed: readonly string[], words: string, settings?: Partial<LineConfig>])[] = [
  [["9600"], "speed (9600 in place of 115200)"],
  [["1200"], "speed (1200 in place of 250000)", { baudRate: 250_000 }],
  [["echo"], "echo"],
  [["icanon"], "line mode"],
  [["isig"], "signal characters"],
  [["opost", "onlcr"], "changed line ends of the output"],
  [["icrnl"], "changed line ends of the input"],
  [["istrip"], "7-bit input"],
  [["ixon", "ixoff"], "flow control by XON and XOFF"],
  [["-ixon"], "flow control by XON and XOFF", { flowControl: "xonxoff" }],
  [["crtscts"], "flow control by RTS and CTS"],
  [["cstopb"], "stop bits"],
  [["-clocal"], "modem control"],
  [["-hupcl"], "HUPCL"],
  [["hupcl"], "HUPCL", { hupcl: false }],
  [["min", "0", "time", "10"], "control characters"],
  [
    ["sane", "9600"],
    "speed (9600 in place of 115200), echo, line mode, signal characters, changed line ends of the output, " +
      "changed line ends of the input",
  ],
];

test(
  "Connection.lookAtSettings() sets again what another program changed, whatever it was, and says what",
  needsStty,
  async () => {
    for (const [changed, words, settings] of changes) {
      const { pty, connection, told } = await opened(settings);
      const own = settingsOf(pty);
      stty(pty, ...changed);
      assert.notEqual(settingsOf(pty), own, changed.join(" "));
      connection.lookAtSettings?.();
      await until(() => told.length > 0, `${changed.join(" ")} to be noticed`);
      assert.equal(settingsOf(pty), own, changed.join(" "));
      assert.deepEqual(told, [
        `another program changed settings of ${pty.path}: ${words}; posline set them again: no other process has the device ` +
          "open any more: sudo posline doctor looks for programs that open it",
      ]);
    }
  },
);

test("Connection.lookAtSettings() names the program that has the device open, with how to stop it", needsStty, async () => {
  const { pty, connection, told } = await opened();
  const script = 'exec 3<>"$1"; stty echo icanon <&3; echo set; exec cat';
  const intruder = spawn("sh", ["-c", script, "sh", pty.path], { stdio: ["pipe", "pipe", "inherit"] });
  ends.push(() => intruder.kill());
  await once(intruder.stdout, "data");
  connection.lookAtSettings?.();
  await until(() => told.length > 0, "the change to be noticed");
  const who = `process ${intruder.pid} (cat)`;
  assert.deepEqual(told, [
    `another program changed settings of ${pty.path}: echo, line mode; posline set them again; ${who} has the device open too: ` +
      `stop it: sudo kill ${intruder.pid}`,
  ]);
});

test(
  "Connection.lookAtSettings() changes nothing by looking: no setting, no flag of the descriptors, no byte, and says nothing",
  needsStty,
  async () => {
    const opening = await opened();
    const { pty, connection, told } = opening;
    connection.write([Buffer.from("out")]);
    await pty.write(Buffer.from("in"));
    await until(() => opening.text === "in", "the reading");
    const before = [settingsOf(pty), ...descriptorsOf(pty)];
    const looks = spawnsSeen();
    connection.lookAtSettings?.();
    connection.lookAtSettings?.();
    await until(() => looks().length > 0, "the look to begin");
    await until(() => looks().length === 0, "the look to end");
    assert.deepEqual([settingsOf(pty), ...descriptorsOf(pty)], before);
    assert.deepEqual(told, []);
    assert.equal(opening.text, "in");
  },
);

/** The children of this process that run now. */
function spawnsSeen(): () => readonly string[] {
  const children = () => readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  const others = new Set(children());
  return () => children().filter((pid) => !others.has(pid));
}

test("serialPort looks at the settings each minute, and not while bytes pass", needsStty, async () => {
  const { pty, told } = await opened({}, { lookMs: 20 });
  const own = settingsOf(pty);
  const beganMs = performance.now();
  let fedMs = 0;
  stty(pty, "opost");
  while (performance.now() < beganMs + 1_500) {
    await pty.write(Buffer.from("x"));
    fedMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(told, []);
  await until(() => told.length > 0, "the change to be noticed");
  assert.ok(performance.now() - fedMs > 900, `${performance.now() - fedMs} ms after the last byte`);
  assert.equal(settingsOf(pty), own);
  stty(pty, "echo");
  await until(() => told.length > 1, "the next change to be noticed");
  assert.equal(settingsOf(pty), own);
});

test(
  "Connection.lookAtSettings() looks once a second at most, and then once more when the line is quiet",
  needsStty,
  async (t) => {
    const { connection, told, pty } = await opened();
    const read = t.mock.method(LinuxPortBinding.prototype, "getBaudRate").mock;
    const beganMs = performance.now();
    while (performance.now() < beganMs + 500) {
      connection.lookAtSettings?.();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(read.callCount(), 1);
    stty(pty, "echo");
    await until(() => told.length > 0, "the change to be noticed");
  },
);

test("serialPort overrules a program that changes the mode while the device is being set up", needsStty, async (t) => {
  const pty = new Pty(() => {});
  // Called once the binding has set the device up.
  t.mock.method(LinuxPortBinding.prototype, "set", async () => stty(pty, "echo", "icanon", "opost", "icrnl", "min", "0"));
  const { told } = await opened({ dtr: true }, { pty });
  assert.match(stty(pty, "-a"), /min = 1;[\s\S]* -icrnl [\s\S]*-opost [\s\S]*-icanon [\s\S]*-echo /);
  assert.deepEqual(told, []);
});

test(
  "serialPort leaves DTR up at the end where hupcl is false, whatever the device was set to before, and not by default",
  needsStty,
  async () => {
    for (const before of ["hupcl", "-hupcl"]) {
      for (const hupcl of [true, false]) {
        const pty = new Pty(() => {});
        stty(pty, before);
        await opened({ hupcl }, { pty });
        assert.equal(/ (-?hupcl) /.exec(stty(pty, "-a"))?.[1], hupcl ? "hupcl" : "-hupcl", `${before}, ${hupcl}`);
      }
    }
  },
);

test(
  "serialPort sets DTR and RTS both, also once its reader's opening has raised them, and neither where neither is configured",
  needsStty,
  async (t) => {
    const set: unknown[] = [];
    t.mock.method(LinuxPortBinding.prototype, "set", async function (this: LinuxPortBinding, lines: object) {
      set.push({ ...lines, openings: this.fd === null ? 0 : openings() });
    });
    let pty = new Pty(() => {});
    const openings = () => descriptorsOf(pty).length;
    const none = openings();
    await opened({ dtr: false }, { pty });
    await until(() => set.length === 2, "both settings");
    const [first, second] = [none + 1, openings()];
    assert.ok(second > first);
    assert.deepEqual(set.splice(0), [
      { dtr: false, rts: true, openings: first },
      { dtr: false, rts: true, openings: second },
    ]);
    pty = new Pty(() => {});
    const { connection } = await opened({}, { pty });
    await until(() => openings() > none + 1, "the reading");
    await connection.close();
    assert.deepEqual(set, []);
  },
);

test("serialPort opens the device where there is no stty, and says that its settings can't be read", async (t) => {
  const { PATH } = process.env;
  t.after(() => {
    process.env["PATH"] = PATH;
  });
  process.env["PATH"] = lockFolder;
  const { told, pty, connection } = await opened();
  assert.match(told.join(), new RegExp(`^the settings of ${pty.path} cannot be read or set: .*: install stty `));
  connection.lookAtSettings?.();
});

test("Connection.close() ends a look that is under way, and leaves no process behind", needsStty, async () => {
  const { pty, connection, told } = await opened();
  const looks = spawnsSeen();
  stty(pty, "echo");
  connection.lookAtSettings?.();
  await connection.close();
  assert.deepEqual(looks(), []);
  assert.deepEqual(told, []);
  const again = await opened({}, { pty });
  assert.match(stty(pty, "-a"), / -echo /);
  assert.deepEqual(again.told, []);
});

test("Connection.lookAtSettings() of a device that is gone says nothing: its loss is said", needsStty, async () => {
  const { pty, connection, told } = await opened();
  pty.unplug();
  connection.lookAtSettings?.();
  await new Promise((resolve) => setTimeout(resolve, 100));
  await connection.close();
  assert.deepEqual(told, []);
});
