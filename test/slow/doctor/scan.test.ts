import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { LineConfig } from "../../../src/config/config.ts";
import { lineDefaults } from "../../../src/config/limits.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { serialPort } from "../../../src/device/serial-port.ts";
import type { LineToProbe } from "../../../src/doctor/diagnosis.ts";
import type { Finding } from "../../../src/doctor/finding.ts";
import { hostOf } from "../../../src/doctor/host.ts";
import { scanLine } from "../../../src/doctor/scan.ts";
import type { Crc16 } from "../../../src/wire/crc16.ts";
import { createDecoder } from "../../../src/wire/decoder.ts";
import { frameOf } from "../../../src/wire/framing.ts";
import { FakeLine } from "../../doctor/fake-line.ts";
import { Pty } from "../../support/pty.ts";
import { serviceConfigOf } from "../../support/service-config.ts";
import { probeReply } from "../../support/terminal.ts";
import { VirtualTime } from "../../support/virtual-time.ts";
import { sampledAt } from "../../support/wrong-speed.ts";

const folder = mkdtempSync(join(tmpdir(), "posline-scan-"));
after(() => rmSync(folder, { recursive: true }));

const bank = serviceConfigOf({ contract: "bank", port: 8888 });
const qr = serviceConfigOf({ contract: "qr", port: 8887 });
const fiscal = serviceConfigOf({ contract: "fiscal", port: 8008, merchantId: "MERCHANT-1" });

/** Each speed that a terminal's menu offers. */
const speeds = [1_200, 2_400, 4_800, 9_600, 14_400, 19_200, 28_800, 38_400, 57_600, 115_200] as const;

/** A terminal at a speed of its own, on a pty, which has none: what goes over is what the other end's speed makes of it. */
function terminalAt(baudRate: number, crc16: Crc16): { readonly pty: Pty; readonly tuned: (config: LineConfig) => void } {
  let theirs = 115_200;
  const decoder = createDecoder({ stx: true, length: true, crc16, payloadBytesMax: 1 << 20 });
  let heardMs = 0;
  const pty: Pty = new Pty((bytes) => {
    // What is no frame is forgotten once the line is silent.
    if (performance.now() - heardMs > 100) decoder.reset();
    heardMs = performance.now();
    for (const item of decoder.push(sampledAt(bytes, theirs, baudRate))) {
      if (item.kind !== "frame") continue;
      const text = probeReply({ framing: item.framing, text: Buffer.concat(item.payload).toString(), number: 0 });
      if (text === undefined) continue;
      void pty.write(sampledAt(Buffer.concat(frameOf(item.framing, [Buffer.from(text)], crc16)), baudRate, theirs));
    }
  });
  const tuned = (config: LineConfig) => {
    theirs = config.baudRate;
  };
  return { pty, tuned };
}

async function scanPty(baudRate: number, crc16: Crc16): Promise<readonly Finding[]> {
  const { pty, tuned } = terminalAt(baudRate, crc16);
  const locks = mkdtempSync(join(folder, "locks-"));
  const open = async (config: LineConfig) => {
    tuned(config);
    return serialPort(config, { lockFolder: locks });
  };
  const config = { ...lineDefaults, path: pty.path };
  const line: LineToProbe = { name: "till", config, services: { bank } };
  const began = performance.now();
  try {
    return await scanLine(line, hostOf({ open }), () => {});
  } finally {
    pty.unplug();
    const tookMs = performance.now() - began;
    assert.ok(tookMs <= 60_000, `${baudRate} ${crc16} took ${tookMs} ms`);
  }
}

test("scanLine() finds each of 20 settings of speed and CRC16 over ptys, each within a minute, ready to be pasted", {
  timeout: 120_000,
}, async () => {
  const settings = speeds.flatMap((baudRate) => (["arc", "umts"] as const).map((crc16) => ({ baudRate, crc16 })));
  assert.equal(settings.length, 20);
  await Promise.all(
    settings.map(async ({ baudRate, crc16 }) => {
      const name = `${baudRate} ${crc16}`;
      const findings = await scanPty(baudRate, crc16);
      const [scan, ...others] = findings;
      const isConfigured = baudRate === 115_200 && crc16 === "arc";
      assert.deepEqual(
        [scan?.check, scan?.level],
        ["scan", isConfigured ? "ok" : "bad"],
        `${name}: ${JSON.stringify(findings)}`,
      );
      assert.deepEqual(
        others.filter(({ level }) => level === "bad"),
        [],
        name,
      );
      const env = { POSLINE_CONFIG: undefined };
      const file = join(folder, `${baudRate}-${crc16}.json`);
      writeFileSync(file, `{ "lines": { ${scan?.setting} }, "services": { "bank": { "line": "till" } } }`);
      const { config } = await loadConfig({ env, flags: { config: file } });
      assert.deepEqual([config.lines["till"]?.baudRate, config.lines["till"]?.crc16], [baudRate, crc16], name);
    }),
  );
});

type Scanned = { readonly findings: readonly Finding[]; readonly speeds: readonly number[]; readonly tookMs: number };

/** Scans a line in virtual time. */
async function scan(fake: FakeLine, services: LineToProbe["services"], config: Partial<LineConfig> = {}): Promise<Scanned> {
  const time = new VirtualTime();
  const began = time.nowMs;
  try {
    const tried: number[] = [];
    const open = async ({ baudRate }: LineConfig) => {
      tried.push(baudRate);
      return fake.open;
    };
    const whole = { ...lineDefaults, path: "/dev/ttyUSB0", ...config };
    let findings: readonly Finding[] | undefined;
    const scanning = scanLine({ name: "till", config: whole, services }, hostOf({ open }), () => {}).then((found) => {
      findings = found;
    });
    assert.ok(await time.until(() => findings !== undefined));
    await scanning;
    assert.equal(fake.isOpen, false, "the line is given back");
    return { findings: findings ?? [], speeds: tried, tookMs: time.nowMs - began };
  } finally {
    time.restore();
  }
}

test("scanLine() tries every speed on a silent line within a minute, whatever is served there, and says what it may be", async () => {
  for (const services of [{ bank }, { fiscal }, { bank, qr }, { fiscal, bank, qr }]) {
    const { findings, speeds: tried, tookMs } = await scan(new FakeLine(), services, { lateReplyMs: 600_000 });
    assert.ok(tookMs <= 60_000, `${tookMs}`);
    assert.deepEqual(
      [...tried].sort((one, other) => one - other),
      speeds,
    );
    assert.deepEqual(
      [findings[0]?.level, findings[0]?.what],
      ["bad", "the terminal does not answer, and not one byte comes back, at any speed"],
    );
    assert.equal(findings.filter(({ level }) => level === "bad").length, 1);
    assert.doesNotMatch(findings[0]?.cure ?? "", /--scan/);
    assert.equal(findings.at(-1)?.what, "no setting was found: all 10 speeds were tried");
  }
});

test("scanLine() ends within a minute on a line that babbles", async () => {
  const line = new FakeLine();
  line.onOpen = line.babble;
  const { findings, tookMs } = await scan(line, { fiscal, bank, qr });
  assert.ok(tookMs <= 60_000, `${tookMs}`);
  assert.ok(findings.some(({ check, level }) => check === "bytes" && level === "bad"));
});

test("scanLine() begins with the configured speed, and stops where what comes is known for what it is", async () => {
  const looping = new FakeLine();
  looping.onWrite = (sent) => looping.send(sent);
  const { findings, speeds: tried } = await scan(looping, { bank }, { baudRate: 2_400 });
  assert.deepEqual(tried, [2_400]);
  assert.match(findings[0]?.what ?? "", /^what was sent comes back/);
});
