import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { idleProbeMsMin } from "../../src/config/limits.ts";
import { echo, garbage, healthy, lateBy, otherCrc, silent, wrongSpeed } from "../support/bad-terminals.ts";
import { ask, BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { Terminal } from "../support/terminal.ts";

/** A line whose terminal answers is told apart from one beside it whose terminal doesn't: the real bundle, a pty each. */

const behaviours = [healthy, silent, garbage, otherCrc, wrongSpeed, echo, lateBy(18_000)];

/** Minutes of the run below, beyond which it is a campaign: SOAK_MINUTES=30. */
const soakMs = Number(process.env["SOAK_MINUTES"] ?? 0.25) * 60_000;

test("bridge never calls a healthy terminal unheard, busy or idle, while the line beside it fails in every way", {
  timeout: soakMs + 120_000,
}, async (t) => {
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
  t.after(() => bridge.stop());
  t.after(() => sound.unplug());
  t.after(() => faulty.unplug());
  const admin = await bridge.port("admin");
  await bridge.state("sound", "idle");
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
});
