import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { LineConfig } from "../../src/config/config.ts";
import { lineDefaults } from "../../src/config/limits.ts";
import { serialPort } from "../../src/device/serial-port.ts";
import { diagnoseLine, type LineToProbe } from "../../src/doctor/diagnosis.ts";
import { hostOf } from "../../src/doctor/host.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { Pty } from "../support/pty.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import { answering, probeReplies, Terminal } from "../support/terminal.ts";

/** Tests src/doctor/diagnosis.ts, src/line/probe-link.ts. */

const folder = mkdtempSync(join(tmpdir(), "posline-doctor-pty-"));
after(() => rmSync(folder, { recursive: true }));

const bank = serviceConfigOf({ contract: "bank", port: 8888 });
const services: LineToProbe["services"] = {
  fiscal: serviceConfigOf({ contract: "fiscal", port: 8008, merchantId: "MERCHANT-1" }),
  bank,
  qr: serviceConfigOf({ contract: "qr", port: 8887 }),
};

/** Asks a terminal on a real tty, which this process itself holds the other end of. */
async function ask(terminal: Terminal, settings: Partial<LineConfig> = {}): Promise<{ what: string; level: string }[]> {
  const config = { ...lineDefaults, path: terminal.link, ...settings };
  const locks = mkdtempSync(join(folder, "locks-"));
  try {
    const host = hostOf({ open: async (line) => serialPort(line, { lockFolder: locks }) });
    const findings = await diagnoseLine({ name: "till", config, services }, host, () => {});
    assert.deepEqual(readdirSync(locks), [], "the lock is given back");
    return findings.map(({ what, level }) => ({ what, level }));
  } finally {
    terminal.unplug();
  }
}

test("diagnoseLine() asks a terminal over a tty, through the project's own parts", async () => {
  const terminal = new Terminal(
    join(folder, "arc"),
    answering(() => undefined),
  );
  const findings = await ask(terminal);
  assert.deepEqual(
    findings.map(({ level }) => level),
    ["ok", "ok", "ok"],
  );
  assert.equal(terminal.calls.length, 0, "nothing but probes");
  assert.equal(terminal.asked.length, 3);
  assert.equal(terminal.inFlightMax, 1);
});

test("diagnoseLine() leaves a terminal alone for pauseMs that is deaf for a moment after each answer", async () => {
  let answeredMs = Number.NEGATIVE_INFINITY;
  const probes = answering(() => undefined);
  const terminal = new Terminal(join(folder, "deaf"), async (asked, self) => {
    if (performance.now() >= answeredMs + 80) await probes(asked, self);
    answeredMs = performance.now();
  });
  const findings = await ask(terminal, { pauseMs: 100 });
  assert.deepEqual(
    findings.map(({ level }) => level),
    ["ok", "ok", "ok"],
  );
  assert.equal(terminal.asked.length, 3);
});

test("diagnoseLine() knows over a tty that the terminal reads CRC16 the other way", async () => {
  const answer = frameOf("length", [Buffer.from(probeReplies.bankSupported)], "umts");
  const pty: Pty = new Pty(() => void pty.write(Buffer.concat(answer)));
  const config = { ...lineDefaults, path: pty.path };
  const host = hostOf({ open: async (line) => serialPort(line, { lockFolder: folder }) });
  const line = { name: "till", config, services: { bank } };
  const findings = await diagnoseLine(line, host, () => {}).finally(() => pty.unplug());
  assert.deepEqual(
    findings.map(({ check, level, cure }) => [check, level, cure]),
    [
      ["checksum", "bad", 'set "crc16": "umts" for line till in the configuration, then sudo systemctl reload posline'],
      ["answer", "note", undefined],
    ],
  );
});

test("diagnoseLine() says over a tty that the line was lost", async () => {
  const terminal = new Terminal(join(folder, "lost"), (_, self) => self.unplug());
  const findings = await ask(terminal);
  assert.ok(findings.some(({ what }) => /^the line was lost during the test/.test(what)));
});
