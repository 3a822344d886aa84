import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { idleProbeMsMin } from "../../src/config/limits.ts";
import { echo, garbage, healthy, lateBy, otherCrc, silent, wrongSpeed } from "../support/bad-terminals.ts";
import { ask, BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { type LogLine, PoslineProcess } from "../support/posline-process.ts";
import { type Behaviour, Terminal } from "../support/terminal.ts";

/**
 * What a technician is shown of a terminal that isn't there, or speaks otherwise: the log's warning, /readyz, the answer 503, /status
 * and `posline doctor` beside the service name one cause. The real bundle, a pty each, all at once.
 */

interface Case {
  readonly name: string;
  readonly behaviour: Behaviour;
  /** What the log, /readyz, 503 and /status all say. */
  readonly cause: RegExp;
  /** From the start, or once it has answered for a while and is switched off. */
  readonly isSwitchedOff?: boolean;
}

const cases: readonly Case[] = [
  { name: "silent", behaviour: silent, cause: /the terminal does not answer, and not one byte comes back/ },
  {
    name: "garbage",
    behaviour: garbage,
    cause: /bytes come that are not an answer: wrong speed/,
  },
  {
    name: "other CRC",
    behaviour: otherCrc,
    cause: /the terminal uses the CRC-16\/UMTS checksum/,
  },
  {
    name: "wrong speed",
    behaviour: wrongSpeed,
    cause: /bytes come that are not an answer: wrong speed/,
  },
  {
    name: "echo",
    behaviour: echo,
    cause: /what was sent comes back/,
  },
  {
    name: "late",
    behaviour: lateBy(18_000),
    cause: /the terminal does not answer, and not one byte comes back/,
  },
  {
    name: "switched off",
    behaviour: healthy,
    cause: /the terminal does not answer, and not one byte comes back/,
    isSwitchedOff: true,
  },
];

async function examine({ behaviour, cause, isSwitchedOff = false }: Case): Promise<void> {
  const folder = scratchFolder();
  const terminal = new Terminal(join(folder.path, "tty"), behaviour);
  const config = {
    lines: { till: { path: terminal.link, idleProbeMs: idleProbeMsMin, queueWaitMs: 500 } },
    services: { bank: { line: "till" } },
    admin: {},
    journal: false,
  };
  const bridge = new BridgeProcess(config, { env: { POSLINE_ADMIN_PORT: "0" } });
  try {
    const admin = await bridge.port("admin");
    const get = async (path: string) => {
      const { status, text } = await ask(admin, "GET", path, "");
      return { status, body: JSON.parse(text) };
    };
    if (isSwitchedOff) {
      await bridge.state("till", "idle");
      assert.equal((await get("/readyz")).status, 200);
      terminal.behaviour = silent;
    }
    await warned(bridge, cause);
    const ready = await get("/readyz");
    assert.equal(ready.status, 503);
    assert.match(JSON.stringify(ready.body.reasons), cause);
    const status = await get("/status");
    assert.equal(status.body.services.bank.heard.state, "unheard");
    assert.match(status.body.services.bank.heard.reason, cause);
    assert.match(status.body.lines.till.reason, cause);
    const sale = await bridge.post("bank", "/sale", '{"pay_id":"A","amount":1,"currency_name":"EUR"}');
    assert.equal(sale.status, 503);
    assert.equal(sale.headers["x-posline-outcome"], "not-sent");
    assert.match(sale.text, cause);
    assert.match(await doctorBeside(bridge, terminal.link, admin), cause);
    // The terminal is switched on, or its settings are put right: then it is heard again, by the next probe.
    terminal.behaviour = healthy;
    await bridge.logged((line) => line["msg"] === "bank answers again", "bank to answer again");
    await bridge.state("till", "idle", bridge.log.length - 1);
    assert.equal((await get("/readyz")).status, 200);
  } finally {
    await bridge.stop();
    terminal.unplug();
    folder.remove();
  }
}

/** What `posline doctor` finds bad about the line while the service has it. */
async function doctorBeside(bridge: BridgeProcess, link: string, admin: number): Promise<string> {
  const file = `${link}.json`;
  const config = { lines: { till: { path: link } }, services: { bank: { line: "till", port: await bridge.port("bank") } } };
  writeFileSync(file, JSON.stringify({ ...config, admin: { port: admin }, journal: false }));
  const ports = Object.fromEntries(["FISCAL", "BANK", "QR", "ADMIN"].map((name) => [`POSLINE_${name}_PORT`, undefined]));
  const doctor = new PoslineProcess(["doctor", "--config", file, "--json"], { env: ports });
  assert.equal(await doctor.ended(), 69, doctor.stderr);
  const { findings }: { findings: readonly { level: string; line?: string; what: string }[] } = JSON.parse(doctor.stdout);
  const bad = findings.filter(({ level, line }) => level === "bad" && line === "till");
  return bad.map(({ what }) => what).join("; ");
}

async function warned(bridge: BridgeProcess, cause: RegExp): Promise<LogLine> {
  // Longer than the process helper waits: a silent terminal is reported after ten seconds, one that was switched off after a probe.
  const line = await within(40_000, () => bridge.log.find(({ msg }) => msg === "bank does not answer"));
  assert.equal(line["level"], "warn");
  assert.match(String(line["reason"]), cause);
  return line;
}

async function within<T>(ms: number, look: () => T | undefined): Promise<T> {
  for (const endMs = performance.now() + ms; performance.now() < endMs; await pause(100)) {
    const found = look();
    if (found !== undefined) return found;
  }
  throw new Error(`Nothing was found within ${ms} ms`);
}

test("bridge names one cause of a terminal that is not heard, in log, readyz, 503 and status, until it is heard", {
  timeout: 120_000,
}, async () => {
  const ended = await Promise.allSettled(cases.map(examine));
  for (const [index, end] of ended.entries()) {
    if (end.status === "rejected") throw new Error(`${cases[index]?.name}: ${end.reason}`, { cause: end.reason });
  }
});

/** Minutes of the run below, beyond which it is a campaign: SOAK_MINUTES=30. */
const soakMs = Number(process.env["SOAK_MINUTES"] ?? 0.25) * 60_000;

test("bridge never calls a healthy terminal unheard, busy or idle, while the line beside it fails in every way", {
  timeout: soakMs + 120_000,
}, async () => {
  const folder = scratchFolder();
  const sound = new Terminal(join(folder.path, "sound"), healthy);
  const faulty = new Terminal(join(folder.path, "faulty"), healthy);
  const fast = { idleProbeMs: idleProbeMsMin, queueWaitMs: 1_000, lateReplyMs: 4_000 };
  const bridge = new BridgeProcess(
    {
      lines: { sound: { path: sound.link, ...fast }, faulty: { path: faulty.link, ...fast } },
      services: { bank: { line: "sound" }, qr: { line: "sound" }, fiscal: { line: "faulty", merchantId: "MERCHANT-1" } },
      admin: {},
      journal: false,
    },
    { env: { POSLINE_ADMIN_PORT: "0" } },
  );
  try {
    const admin = await bridge.port("admin");
    await bridge.state("sound", "idle");
    const behaviours = [healthy, ...cases.map(({ behaviour }) => behaviour)];
    let looks = 0;
    for (const endMs = performance.now() + soakMs; performance.now() < endMs; looks++) {
      // Some seconds with calls, and some in which the line idles and is probed.
      faulty.behaviour = behaviours[Math.floor(looks / 8) % behaviours.length] ?? healthy;
      if (looks % 24 === 23) {
        faulty.unplug();
        faulty.plug();
      }
      if (looks % 16 < 8) assert.equal((await bridge.post("bank", "/check", '{"pay_id":"A"}')).status, 200);
      const { services, lines } = JSON.parse((await ask(admin, "GET", "/status", "")).text);
      for (const service of ["bank", "qr"])
        assert.equal(services[service].heard.state, "heard", JSON.stringify(services[service]));
      assert.match(lines.sound.state, /^(idle|awaiting)$/);
      await pause(1_000);
    }
    assert.deepEqual(
      bridge.log.filter(({ msg }) => /^(bank|qr) does not answer$/.test(String(msg))),
      [],
    );
    assert.ok(looks >= soakMs / 4_000, `${looks} looks`);
  } finally {
    await bridge.stop();
    sound.unplug();
    faulty.unplug();
    folder.remove();
  }
});
