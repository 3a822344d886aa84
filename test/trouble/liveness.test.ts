import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { idleProbeMsMin, lineDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { lineService } from "../../src/line/caller.ts";
import { probeReplyMs } from "../../src/line/limits.ts";
import type { Line } from "../../src/line/line.ts";
import { evidenceMs, rowMin, silentWarnMs } from "../../src/recovery/limits.ts";
import { isConsole } from "../../src/trouble/byte-patterns.ts";
import { Liveness } from "../../src/trouble/liveness.ts";
import type { Discard, Framing } from "../../src/wire/decoded.ts";
import { encodeLength } from "../../src/wire/length.ts";
import { ending, hasEnded, type LineSetup, lineOver, merchantId, requestFor, type Told } from "../line/lines.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";

/** Which terminals a line takes for present, why it says that one isn't, and what an idle line asks. */

const time = virtualTime();
const lines: Line[] = [];
afterEach(() => Promise.all(lines.splice(0).map((line) => line.stop(0))));

interface Set {
  readonly device: FakeDevice;
  readonly line: Line;
  readonly told: Told;
  /** The first line of each request that came to the device. */
  readonly asked: string[];
  /** What the terminal does with a request; replaced to switch it off. */
  terminal: Terminal;
}

type Terminal = (device: FakeDevice, framing: Framing, text: string) => void;

const good = '{"status":"success"}';

const healthy: Terminal = (device, framing, text) => device.reply(framing, probeReply({ framing, text, number: 0 }) ?? good);
const dead: Terminal = () => {};
const garbage: Terminal = (device) => device.send(Buffer.from([0xfe, 0x9c, 0xe0, 0x00, 0x18, 0xf8]));
const echo: Terminal = (device, framing, text) => device.reply(framing, text);
const consoleOf: Terminal = (device) => device.send(Buffer.from("\r\nDebian GNU/Linux 12 box ttyS0\r\n\r\nbox login: "));
const otherCrc: Terminal = (device, framing, text) => {
  const reply = Buffer.from(probeReply({ framing, text, number: 0 }) ?? good);
  device.send(Buffer.concat(encodeLength("umts", [reply])));
};

/** A line that has opened a moment ago. */
async function opened(terminal: Terminal, setup: LineSetup = {}): Promise<Set> {
  const asked: string[] = [];
  const device = new FakeDevice((framing, text) => {
    asked.push(text.split(/[\n&]/)[0] ?? "");
    set.terminal(device, framing, text);
  });
  const set: Set = { device, asked, terminal, ...lineOver(device.open, setup) };
  lines.push(set.line);
  set.line.start();
  await time.settle();
  return set;
}

const states = ({ line }: Set) => Object.fromEntries(line.liveness().map(({ service, state }) => [service, state]));
const causes = ({ line }: Set) => line.liveness().map(({ cause }) => cause?.cause ?? "");
const idle = ({ line }: Set) => time.until(() => line.state === "idle");

async function call(set: Set, id: string, settings: Parameters<typeof requestFor>[1] = {}) {
  const end = ending(set.line, requestFor(id, settings));
  await time.until(() => hasEnded(end));
  return end;
}

test("Line.liveness() of a silent terminal stays unheard on a clean line, and it is reported once, with its cause and its fix", async () => {
  const set = await opened(dead);
  await time.advance(silentWarnMs - 100);
  assert.deepEqual(set.told.liveness, []);
  await time.advance(500);
  assert.deepEqual(set.told.liveness, ["bank unheard: the terminal does not answer, and not one byte comes back"]);
  assert.match(set.line.reason, /not one byte comes back: 1\. switch the terminal on/);
  const waiting = ending(set.line, requestFor("A"));
  assert.ok(await idle(set));
  assert.ok(hasEnded(waiting));
  assert.match(
    waiting.fault?.message ?? "",
    /it is recovering \(the terminal does not answer, and not one byte comes back: 1\./,
  );
  assert.equal(waiting.fault?.retryAfterS, 10);
  await time.advance(600_000);
  assert.equal(set.line.state, "idle");
  assert.deepEqual(states(set), { bank: "unheard" });
  assert.equal(set.told.liveness.length, 1);
  assert.match(set.line.reason, /not one byte comes back/);
});

test("Line.run() refuses a call at once where its service has long been silent, as not sent, with the cause and what to do", async () => {
  const set = await opened(dead);
  assert.ok(await idle(set));
  await time.advance(1_200_000);
  const { fault } = await call(set, "A");
  assert.deepEqual([fault?.reason, fault?.outcome], ["recovering", "not-sent"]);
  assert.match(
    fault?.message ?? "",
    /^Cannot send to line till: the terminal does not answer, and not one byte comes back: 1\. switch the terminal on.*\. Nothing was sent/,
  );
  assert.equal(set.asked.includes("/sale"), false);
});

test("Line.run() says in a timeout's message that the terminal has long been silent and who says why, where nothing may be asked", async () => {
  const set = await opened(dead, { config: { recovery: "quiet" } });
  for (const id of ["A", "B"]) {
    assert.ok(await idle(set));
    const end = await call(set, id, { replyTimeoutMs: 4_000 });
    assert.equal(end.fault?.reason, "no-reply");
    const silence = id === "A" ? "" : /\. bank has not answered for 30\d s: sudo posline doctor --line till says why/.source;
    assert.match(
      end.fault?.message ?? "",
      new RegExp(
        `^No valid reply from line till: the terminal did not answer within 4 s\\. Outcome unknown, call /check${silence}$`,
      ),
    );
  }
});

test("Line.liveness() is unheard again after a time-out, until the next reply", async () => {
  const set = await opened(healthy);
  assert.ok(await idle(set));
  set.terminal = dead;
  const end = await call(set, "A", { replyTimeoutMs: 30_000 });
  assert.equal(end.fault?.reason, "no-reply");
  assert.doesNotMatch(end.fault.message, /doctor/, "it answered until then");
  assert.deepEqual(states(set), { bank: "unheard" });
  set.terminal = healthy;
  assert.ok(await idle(set));
  assert.deepEqual(states(set), { bank: "heard" });
  // It answered again before anybody had to be told.
  assert.deepEqual(set.told.liveness, []);
});

test("Line.liveness() says nothing of the device that was there before a replug", async () => {
  const set = await opened(healthy);
  assert.ok(await idle(set));
  set.terminal = dead;
  set.device.unplug();
  set.device.plug();
  assert.ok(await time.until(() => set.line.state === "recovering"));
  const [bank] = set.line.liveness();
  assert.equal(bank?.state, "unheard");
  assert.equal(bank?.heardMs, undefined);
});

test("Line.liveness() of a healthy terminal is heard again right after a replug, with idleProbeMs 0 too", async () => {
  for (const idleProbeMs of [0, lineDefaults.idleProbeMs]) {
    const set = await opened(healthy, { services: ["bank", "qr"], config: { idleProbeMs } });
    assert.ok(await idle(set));
    assert.equal((await call(set, "A")).text, good);
    const asked = set.asked.length;
    set.device.unplug();
    set.device.plug();
    assert.ok(await idle(set));
    assert.deepEqual(states(set), { bank: "heard", qr: "heard" });
    await time.advance(1_000);
    assert.equal(set.asked.length, asked + 2 * (rowMin + 2), "each has made a row");
    assert.deepEqual(set.told.liveness, []);
  }
});

const wrongSum: Terminal = (device) => {
  const broken = Buffer.concat(encodeLength("arc", [Buffer.from(good)]));
  broken[broken.length - 1] = (broken.at(-1) ?? 0) ^ 0x55;
  device.send(broken);
};

for (const [name, terminal, cause, fix] of [
  ["sends garbage", garbage, /^bytes come that are not an answer: wrong speed/, /baudRate/],
  ["echoes", echo, /^what was sent comes back/, /^check the plug and the cable \(RX and TX are joined\)/],
  [
    "is a computer's console",
    consoleOf,
    /^a login prompt comes: the other end is a computer's console/,
    /^plug the cable into the terminal's port for a till \(ECR\)/,
  ],
  [
    "uses the other checksum",
    otherCrc,
    /^the terminal uses the CRC-16\/UMTS checksum/,
    /^set "crc16": "umts" for line till in the configuration, then sudo systemctl reload/,
  ],
  ["sends wrong checksums", wrongSum, /wrong checksum/, /^try another cable and adapter/],
  [
    "is switched off",
    dead,
    /not one byte comes back/,
    /^1\. switch the terminal on .*sudo posline doctor --line till --scan tries the usual speeds .* 115200 baud, and both CRC16/,
  ],
] as const) {
  test(`Line.liveness() names the cause of a terminal that ${name}, in report, reason and refusal alike, and what to do`, async () => {
    const set = await opened(terminal);
    await time.advance(silentWarnMs + 500);
    const [told = ""] = set.told.liveness;
    assert.match(told.replace("bank unheard: ", ""), cause);
    assert.match(causes(set).join(), cause);
    assert.match(set.line.liveness()[0]?.cause?.cure ?? "", fix);
    const end = await call(set, "A");
    assert.equal(end.fault?.outcome, "not-sent");
    const words = set.line.reason;
    assert.match(words, cause);
    assert.ok(end.fault.message.includes(words), `${end.fault.message} has ${words}`);
  });
}

test("Line.liveness() names no cause of a service that answers, beside one that doesn't", async () => {
  const set = await opened(
    (device, framing, text) => {
      if (!text.startsWith(":8887")) healthy(device, framing, text);
    },
    { services: ["bank", "qr"] },
  );
  await time.advance(silentWarnMs + 3_000);
  assert.deepEqual(states(set), { bank: "heard", qr: "unheard" });
  assert.deepEqual(causes(set), ["", "qr does not answer, though another service on this line does"]);
  assert.deepEqual(set.told.liveness, ["qr unheard: qr does not answer, though another service on this line does"]);
});

test("Line.liveness() says of bytes that never pause what they may be, not that none comes", async () => {
  for (const services of [["bank"], ["fiscal"], ["bank", "fiscal"]] as const) {
    const set = await opened(dead, { services, merchantId });
    for (let ms = 0; ms < silentWarnMs + 2_000; ms += 50) {
      set.device.send(Buffer.from("ST,GS,+  1.234kg\r\n"));
      await time.advance(50);
    }
    assert.match(set.line.reason, /wrong speed/);
  }
});

test("Line.liveness() takes no empty frame for an echo: a held line reads as one", async () => {
  const set = await opened((device) => device.send(Buffer.alloc(6)));
  await time.advance(silentWarnMs + 500);
  assert.match(set.line.reason, /wrong speed/);
});

test("Line.liveness() calls a mixture of noise and wrong checksums a wrong speed, in whatever order they come", async () => {
  let count = 0;
  const set = await opened((...asked) => (count++ % 2 === 0 ? garbage : wrongSum)(...asked));
  await time.advance(silentWarnMs + 500);
  for (let seconds = 0; seconds < 8; seconds++) {
    assert.match(set.line.reason, /wrong speed/);
    await time.advance(1_000);
  }
  assert.ok(set.told.discards.includes("checksum"), String(set.told.discards));
});

test("Line.liveness() forgets noise that came once: a terminal that is silent since is called silent", async () => {
  const set = await opened(dead);
  await time.advance(200);
  set.device.send(Buffer.from([0xff, 0xff]));
  // Until the first question behind that.
  await time.advance(silentWarnMs + 4_000);
  assert.match(set.line.reason, /not one byte comes back/);
});

test("Line.liveness() of a terminal that was switched off while idle calls no service of it answered", async () => {
  let isOn = true;
  const set = await opened((device, framing, text) => isOn && healthy(device, framing, text), { services: ["bank", "qr"] });
  await time.advance(30_000);
  assert.deepEqual(states(set), { bank: "heard", qr: "heard" });
  isOn = false;
  await time.advance(120_000);
  const told = causes(set).filter((each) => each !== "");
  assert.ok(told.length > 0);
  for (const each of told) assert.match(each, /not one byte comes back/);
});

test("Line.liveness() counts an error in place of the probe's answer as heard: a terminal sent it", async () => {
  const set = await opened((device, framing) => device.reply(framing, '{"status":"error","code":1}'), {
    services: ["fiscal"],
    merchantId,
  });
  await time.advance(silentWarnMs + 1_000);
  assert.deepEqual(states(set), { fiscal: "heard" });
  assert.deepEqual(set.told.liveness, []);
});

test("Line.liveness() is unproven where posline asks nothing, and unheard there only after a time-out", async () => {
  const quiet = await opened(dead, { config: { recovery: "quiet", lateReplyMs: 8_000 } });
  const unsigned = await opened(dead, { services: ["fiscal"] });
  assert.ok(await idle(quiet));
  assert.ok(await idle(unsigned));
  assert.deepEqual(states(quiet), { bank: "unproven" });
  assert.deepEqual(states(unsigned), { fiscal: "unproven" });
  await call(quiet, "A", { replyTimeoutMs: 4_000 });
  assert.deepEqual(states(quiet), { bank: "unheard" });
  quiet.terminal = healthy;
  assert.ok(await idle(quiet));
  assert.equal((await call(quiet, "B")).text, good);
  assert.deepEqual(states(quiet), { bank: "heard" });
});

// --- idle probes

test("Line probes each service after idleProbeMs of idleness, tells no change of state, and keeps them heard", async () => {
  const set = await opened(healthy, { services: ["bank", "qr"] });
  assert.ok(await idle(set));
  const [asked, told] = [set.asked.length, set.told.states.length];
  await time.advance(lineDefaults.idleProbeMs - 100);
  assert.equal(set.asked.length, asked);
  await time.advance(200);
  assert.deepEqual(set.asked.slice(asked), ["/supported_operations", ":8887/check_connection"]);
  await time.advance(10 * lineDefaults.idleProbeMs);
  assert.equal(set.asked.length, asked + 22);
  assert.equal(set.told.states.length, told);
  assert.deepEqual(states(set), { bank: "heard", qr: "heard" });
});

test("Line probes nothing while calls come, or with idleProbeMs 0", async () => {
  const busy = await opened(healthy);
  const off = await opened(healthy, { config: { idleProbeMs: 0 } });
  for (const set of [busy, off]) assert.ok(await idle(set));
  const asked = [busy, off].map((set) => set.asked.length);
  for (let times = 0; times < 20; times++) {
    await time.advance(lineDefaults.idleProbeMs / 2);
    assert.equal((await call(busy, `B${times}`)).text, good);
  }
  assertMapped([busy, off], [(asked[0] ?? 0) + 20, asked[1]], (set) => set.asked.length);
});

test("Line finds a terminal that is switched off while idle, and refuses the first sale as not sent", async () => {
  const set = await opened(healthy);
  assert.ok(await idle(set));
  set.terminal = dead;
  await time.advance(90_000);
  assert.deepEqual(states(set), { bank: "unheard" });
  assert.deepEqual(set.told.liveness, ["bank unheard: the terminal does not answer, and not one byte comes back"]);
  const sale = await call(set, "A");
  assert.equal(sale.fault?.outcome, "not-sent");
  assert.deepEqual(
    set.asked.filter((route) => route === "/sale"),
    [],
  );
  set.terminal = healthy;
  assert.ok(await time.until(() => set.told.liveness.at(-1) === "bank heard again", 40_000));
  assert.equal((await call(set, "B")).text, good);
});

test("Line lets a call wait for one probe at most, and sends it then", async () => {
  const set = await opened(healthy, { services: ["bank", "qr"], config: { idleProbeMs: idleProbeMsMin } });
  assert.ok(await idle(set));
  const asked = set.asked.length;
  let end: ReturnType<typeof ending> | undefined;
  set.terminal = (device, framing, text) => {
    // The call comes while the first of two probes is under way.
    end ??= ending(set.line, requestFor("A"));
    healthy(device, framing, text);
  };
  await time.until(() => end !== undefined && hasEnded(end));
  assert.equal(end?.text, good);
  assert.deepEqual(set.asked.slice(asked, asked + 2), ["/supported_operations", "/sale"]);
});

test("Line whose idle probe is answered late gives no call that answer, and the terminal is heard again then", async () => {
  const set = await opened(healthy);
  assert.ok(await idle(set));
  // It is asleep, and answers all at once when it wakes up.
  const wakesMs = time.nowMs + lineDefaults.idleProbeMs + probeReplyMs + 1_000;
  set.terminal = (device, framing, text) => time.after(Math.max(1, wakesMs - time.nowMs), () => healthy(device, framing, text));
  await time.advance(lineDefaults.idleProbeMs + probeReplyMs + 500);
  assert.deepEqual(states(set), { bank: "unheard" });
  const sale = ending(set.line, requestFor("A"));
  await time.until(() => hasEnded(sale));
  assert.equal(sale.text, good);
  assert.deepEqual(states(set), { bank: "heard" });
});

test("Line.stop() waits for no probe", async () => {
  const set = await opened(healthy);
  assert.ok(await idle(set));
  set.terminal = dead;
  await time.advance(lineDefaults.idleProbeMs + 10);
  assert.equal(set.line.state, "awaiting");
  const before = time.nowMs;
  await set.line.stop(60_000);
  assert.ok(time.nowMs - before < 1_000);
  assert.equal(set.line.state, "closed");
});

test("Line does not probe while a call is being recorded, and looks at no clock meanwhile", async () => {
  const set = await opened(healthy, { config: { queueWaitMs: 600_000 } });
  assert.ok(await idle(set));
  const asked = set.asked.length;
  ending(set.line, requestFor("A", { beforeSend: () => new Promise(() => {}) }));
  const run = time.timersRun;
  await time.advance(5 * lineDefaults.idleProbeMs);
  assert.equal(set.asked.length, asked);
  assert.ok(time.timersRun - run < 10, `${time.timersRun - run} timers`);
});

// --- by itself

/** What a line of a bank and a qr service is told, and what it reports. */
function watched(crc16: "arc" | "umts" = "arc", names: readonly ContractName[] = ["bank", "qr"], isSigned = true) {
  const told: string[] = [];
  const rules = { crc16, quiet: false, merchantId: isSigned ? merchantId : undefined };
  const services = names.map((name) => lineService(contracts[name], rules));
  const liveness = new Liveness({ name: "till", config: { path: "/dev/ttyUSB0", baudRate: 9_600, crc16 } }, services, {
    unheard: (service, { cause }) => told.push(`${service} unheard: ${cause}`),
    heardAgain: (service) => told.push(`${service} heard again`),
    echoes: ({ cause }) => told.push(`the line echoes: ${cause}`),
  });
  return { liveness, told, cause: () => liveness.view()[0]?.cause };
}

const noise: Discard = { kind: "discard", reason: "noise", wireBytes: 4, head: "fe9ce000" };

test("Liveness says that a service replies again, also where the device was opened anew meanwhile", () => {
  const { liveness, told } = watched();
  liveness.unanswered("bank", 0);
  liveness.reportDue(silentWarnMs);
  liveness.opened();
  assert.equal(liveness.trouble(), undefined, "nothing is known of this opening");
  const { state } = liveness;
  liveness.heard("bank", 20_000);
  liveness.heard("bank", 21_000);
  liveness.opened();
  liveness.heard("bank", 22_000);
  assert.deepEqual(told.slice(1), ["bank heard again"]);
  const another = watched();
  another.liveness.state = state;
  another.liveness.heard("bank", 20_000);
  assert.deepEqual(another.told, ["bank heard again"]);
});

test("Liveness.trouble() is that of the services that are asked about", () => {
  const { liveness } = watched();
  liveness.unanswered("bank", 0);
  liveness.reportDue(silentWarnMs);
  assertMapped(
    [liveness.trouble(), liveness.trouble(["bank"]), liveness.trouble(["qr"])],
    [true, true, false],
    (trouble) => trouble !== undefined,
  );
});

test("Liveness reports each silent service once, silentWarnMs after the first question, and again after an answer", () => {
  const { liveness, told } = watched();
  assert.equal(liveness.reportDueMs, Number.POSITIVE_INFINITY);
  liveness.unanswered("qr", 2_000);
  liveness.unanswered("bank", 1_000);
  liveness.unanswered("bank", 5_000);
  assert.equal(liveness.reportDueMs, 1_000 + silentWarnMs);
  liveness.reportDue(1_000 + silentWarnMs - 1);
  assert.equal(told.length, 0);
  liveness.reportDue(1_000 + silentWarnMs);
  assertMapped(told, ["bank unheard"], (each) => each.split(":")[0]);
  assert.equal(liveness.reportDueMs, 2_000 + silentWarnMs);
  liveness.heard("qr", 3_000);
  assert.equal(liveness.reportDueMs, Number.POSITIVE_INFINITY);
  liveness.reportDue(60_000);
  liveness.heard("bank", 60_000);
  liveness.unanswered("bank", 70_000);
  liveness.reportDue(70_000 + silentWarnMs);
  assertMapped(told, ["bank unheard", "bank heard again", "bank unheard"], (each) => each.split(":")[0]);
});

test("Liveness.silence() says for how long a service has been silent, once that was reported", () => {
  const { liveness } = watched();
  liveness.unanswered("bank", 1_000);
  assert.equal(liveness.silence("bank", 9_000), undefined);
  assert.equal(liveness.trouble(), undefined);
  liveness.reportDue(1_000 + silentWarnMs);
  assert.match(liveness.silence("bank", 31_000) ?? "", /^bank has not answered for 30 s: sudo posline doctor --line till/);
  assert.match(liveness.trouble()?.cause ?? "", /does not answer/);
  assert.equal(liveness.silence("qr", 31_000), undefined);
});

test("Liveness goes by the most telling of what came within evidenceMs", () => {
  const { liveness, cause: told } = watched();
  liveness.unanswered("bank", 0);
  const steps = [
    [() => liveness.strayed("late", 1_000), /answers come too late/],
    [
      () => liveness.discarded({ ...noise, reason: "checksum", checksum: { got: "01", arc: "02", umts: "03" } }, 1_000),
      /wrong checksum/,
    ],
    [() => liveness.discarded(noise, 1_000), /wrong speed/],
    [() => liveness.discarded({ ...noise, checksum: { got: "01", arc: "02", umts: "01" } }, 1_000), /CRC-16\/UMTS/],
    [() => liveness.echoed(1_000), /what was sent comes back/],
    [() => liveness.discarded({ ...noise, head: Buffer.from("box login:").toString("hex") }, 1_000), /login prompt/],
  ] as const;
  for (const [step, cause] of steps) {
    step();
    liveness.unanswered("bank", 1_000 + evidenceMs - 1);
    assert.match(told()?.cause ?? "", cause);
  }
  // A question later nothing has come for so long.
  liveness.unanswered("bank", 1_000 + evidenceMs);
  assert.match(told()?.cause ?? "", /not one byte comes back/);
});

test("Liveness reports once an opening that the line echoes, and goes on knowing it", () => {
  const { liveness, told } = watched();
  liveness.echoed(1_000);
  liveness.echoed(2_000);
  const next = watched();
  next.liveness.state = liveness.state;
  next.liveness.echoed(3_000);
  assert.deepEqual([told, next.told], [["the line echoes: what is sent comes back, and is ignored"], []]);
  next.liveness.opened();
  next.liveness.echoed(4_000);
  assert.equal(next.told.length, 1);
});

test("Liveness knows nothing of the device before an opening, nor what came before an answer", () => {
  for (const forget of ["opened", "heard"] as const) {
    const { liveness, told, cause } = watched();
    liveness.unanswered("bank", 0);
    liveness.discarded(noise, silentWarnMs);
    liveness.reportDue(silentWarnMs);
    if (forget === "opened") liveness.opened();
    else liveness.heard("bank", silentWarnMs);
    assert.equal(liveness.trouble(), undefined);
    liveness.unanswered("bank", silentWarnMs);
    assert.match(cause()?.cause ?? "", /not one byte comes back/);
    liveness.reportDue(2 * silentWarnMs);
    assert.equal(told.filter((each) => each.startsWith("bank unheard")).length, 2, forget);
  }
});

test("Liveness says what to do about each cause, in the settings' own words", () => {
  const other = watched("umts");
  other.liveness.unanswered("bank", 0);
  other.liveness.discarded({ ...noise, checksum: { got: "01", arc: "01", umts: "02" } }, 0);
  assert.match(other.cause()?.cure ?? "", /set "crc16": "arc" for line till/);
  const right = watched("umts");
  right.liveness.unanswered("bank", 0);
  right.liveness.discarded({ ...noise, checksum: { got: "01", arc: "02", umts: "01" } }, 0);
  assert.match(
    right.cause()?.cure ?? "",
    /^1\. sudo posline doctor --line till --scan finds the speed .* 3\. sudo posline tap --raw --line \/dev\/ttyUSB0 shows/,
  );
  const fiscal = watched("arc", ["fiscal"]);
  fiscal.liveness.unanswered("fiscal", 0);
  assert.match(fiscal.cause()?.cure ?? "", /--scan tries the usual speeds beside 9600 baud; 4\. choose/);
  fiscal.liveness.strayed("late", 1);
  assert.match(fiscal.cause()?.cure ?? "", /look at the terminal's screen/);
  const beside = watched();
  assert.match(beside.cause()?.cure ?? "", /send bank any request/, "it was not asked yet");
  beside.liveness.unanswered("bank", 0);
  beside.liveness.heard("qr", 1);
  assert.match(beside.cause()?.cure ?? "", /switch bank on in the terminal, or remove services\.bank/);
});

test("Liveness goes on from another's state, whatever it knew before", () => {
  const { liveness } = watched();
  liveness.unanswered("bank", 1_000);
  liveness.heard("qr", 2_000);
  liveness.discarded(noise, 3_000);
  liveness.reportDue(1_000 + silentWarnMs);
  const used = watched();
  used.liveness.echoed(3_000);
  used.liveness.state = liveness.state;
  assert.deepEqual(used.liveness.state, liveness.state);
  assert.deepEqual(used.liveness.view(), liveness.view());
  const fewer = watched("arc", ["bank"]);
  fewer.liveness.state = liveness.state;
  assert.deepEqual(fewer.liveness.view(), liveness.view().slice(0, 1));
});

test("isConsole() is true of a system's name or a prompt at the beginning, and of nothing behind other bytes", () => {
  const is = (text: string) => isConsole(Buffer.from(text, "latin1"));
  for (const text of ["Debian GNU/Linux", "\r\nRaspbian", "\n\nUbuntu 24", "till-1.shop login:", "Password:"])
    assert.equal(is(text), true, text);
  for (const text of ["\xfeDebian", "AT Password:", "", "login"]) assert.equal(is(text), false, text);
});

const left = (service: string) => `a late answer of ${service} is waited for \\d+ s more`;

test("Line says of a service that answers its question with an error what that is, not that it may be off", async () => {
  const refusing: Terminal = (device, framing) => device.reply(framing, '{"status":"error","code":1,"message":"sign"}');
  const set = await opened(refusing, { services: ["fiscal"], merchantId });
  const said = "fiscal answers posline's own question with code 1";
  const waiting = await call(set, "early");
  assert.match(
    String(waiting.fault?.message),
    new RegExp(`it is recovering \\(.*; ${said}; ${left("fiscal")}\\), and the call waited`),
  );
  assert.ok(await idle(set));
  assert.equal(
    set.line.reason,
    `${said}: compare services.fiscal.merchantId with the terminal's: with another one each request is refused; calls are sent`,
  );
  assert.equal(set.line.liveness()[0]?.refusal?.cause, said);
  // The terminal has the right one now.
  set.terminal = healthy;
  set.device.unplug();
  set.device.plug();
  await time.advance(60_000);
  assert.equal(set.line.liveness()[0]?.refusal, undefined);
});

for (const odd of [good, "BUSY"]) {
  test(`Line says of a service that answers its question with ${odd} that it does, and what to ask, not that answers are late`, async () => {
    const oddly: Terminal = (device, framing, text) =>
      text.startsWith(":8887/check_connection") ? device.reply(framing, odd) : healthy(device, framing, text);
    const set = await opened(oddly, { services: ["bank", "qr"] });
    const said = "qr answers posline's own question with something that its contract doesn't have";
    const cure =
      "ask the terminal's vendor whether its firmware is of the contract's version; posline tap --line till shows what it answers";
    const waiting = await call(set, "early");
    assert.match(
      String(waiting.fault?.message),
      new RegExp(`it is recovering \\(.*${said}; ${left("qr")}\\), and the call waited`),
    );
    assert.equal(set.line.state, "recovering");
    assert.match(set.line.reason, new RegExp(`^${said}: ${cure}; ${left("qr")}$`));
    assert.ok(await idle(set));
    assert.equal(set.line.reason, `${said}: ${cure}; calls are sent`);
    assert.deepEqual(set.told.liveness, []);
    assert.deepEqual(states(set), { bank: "heard", qr: "heard" });
    assert.deepEqual(set.line.liveness()[1]?.refusal, { cause: said, cure });
    assert.equal((await call(set, "A")).text, good);
    // Its firmware is of the right version now.
    set.terminal = healthy;
    set.device.unplug();
    set.device.plug();
    await time.advance(60_000);
    assert.equal(set.line.liveness()[1]?.refusal, undefined);
  });
}

test("Line says of a service that it can't ask that its silence is waited for, not that it didn't answer", async () => {
  const set = await opened(dead, { services: ["fiscal"] });
  const waiting = await call(set, "early");
  assert.match(String(waiting.fault?.message), /fiscal can't be asked, so its silence is waited for/);
});

test("Liveness.state says that a service was reported before only where it was, and knows nothing of services that it lacks", () => {
  const { liveness } = watched();
  const before = () => liveness.state.services.map((service) => "wasReported" in service);
  assert.deepEqual(before(), [false, false]);
  liveness.unanswered("bank", 0);
  liveness.reportDue(silentWarnMs);
  liveness.opened();
  assert.deepEqual(before(), [true, false]);
  const { state } = liveness;
  liveness.heard("gone", 1);
  liveness.unanswered("gone", 1);
  liveness.refused("gone", undefined);
  const isViewed = liveness.view().some(({ service }) => service === "gone");
  assert.deepEqual([liveness.state, isViewed, liveness.silence("gone", 1)], [state, false, undefined]);
});

test("Liveness.whyUnproven() names who hasn't answered, who can't be asked, and what others answer", () => {
  const { liveness } = watched("arc", ["bank", "qr"]);
  assert.deepEqual(liveness.whyUnproven(["bank", "qr"]), ["no answer yet from bank, qr"]);
  liveness.refused("bank", { status: "error", code: 7 });
  assert.deepEqual(liveness.whyUnproven(["bank", "qr"]), [
    "no answer yet from qr",
    "bank answers posline's own question with code 7",
  ]);
  assert.deepEqual(liveness.whyUnproven(["bank"]), ["bank answers posline's own question with code 7"]);
  liveness.refused("bank", { status: "error" });
  assert.deepEqual(liveness.whyUnproven(["bank"]), ["bank answers posline's own question with an error"]);
  assert.equal(liveness.refusal(["qr"]), undefined);
  assert.match(liveness.refusal(["qr", "bank"])?.cure ?? "", /^send bank any request: if it is answered, this does no harm$/);
  liveness.probed("bank");
  assert.deepEqual(liveness.whyUnproven(["bank"]), ["no answer yet from bank"]);
  const unsigned = watched("arc", ["fiscal"], false);
  assert.deepEqual(unsigned.liveness.whyUnproven(["fiscal"]), ["fiscal can't be asked, so its silence is waited for"]);
  unsigned.liveness.refused("fiscal", {});
  assert.equal(unsigned.liveness.whyUnproven(["fiscal"]).length, 2);
});
