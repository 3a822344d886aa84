import assert from "node:assert/strict";
import { test } from "node:test";
import { headerMs, payloadMsMin } from "../../src/config/limits.ts";
import type { ContractName } from "../../src/core/call.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { drawnFrom, randomStray, type Stray, strayed, strays } from "../support/stray-bytes.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { ending, hasEnded, idOf, type LineSetup, lineOver, merchantId, requestFor } from "./lines.ts";

/**
 * Tests src/wire/decoder.ts, src/line/frame-reader.ts, src/line/engine.ts. Stray bytes around an answer don't take it away, from a call
 * nor from posline's own questions, and no call gets another's for it.
 */

const time = virtualTime();

const good = (id: string) => `{"status":"success","id":"${id}","note":"${"n".repeat(300)}"}`;

/** A line whose terminal's answers are all among stray bytes. */
class StrayLine {
  readonly line;
  readonly told;
  readonly device: FakeDevice;
  stray: () => Stray;
  asked = 0;
  readonly service: ContractName;

  constructor(service: ContractName, stray: () => Stray, setup: LineSetup = {}) {
    this.service = service;
    this.stray = stray;
    this.device = new FakeDevice((framing, text) => {
      this.asked++;
      const answer = frame(framing, probeReply({ framing, text, number: 0 }) ?? good(idOf(text)));
      void this.#send(strayed(answer, this.stray()));
    });
    const { line, told } = lineOver(this.device.open, {
      services: [service],
      ...setup,
      config: { idleProbeMs: 0, queueWaitMs: 600_000, ...setup.config },
    });
    this.line = line;
    this.told = told;
    line.start();
  }

  async #send(pieces: readonly (readonly [Buffer, number])[]): Promise<void> {
    for (const [bytes, ms] of pieces) {
      this.device.send(bytes);
      if (ms > 0) await new Promise<void>((resolve) => setTimeout(resolve, ms));
    }
  }

  async idle(): Promise<void> {
    assert.ok(await time.until(() => this.line.state === "idle", 600_000), this.line.reason);
  }

  /** Calls once, and checks that its own answer comes. */
  async call(id: string, name: string): Promise<number> {
    const beganMs = time.nowMs;
    const end = ending(this.line, requestFor(id, { service: this.service, replyTimeoutMs: 30_000 }));
    await time.until(() => hasEnded(end), 60_000);
    assert.equal(end.text, good(id), `${this.service}, ${name}: ${end.fault?.message}`);
    return time.nowMs - beganMs;
  }
}

const clean: Stray = { name: "", before: Buffer.alloc(0), behind: Buffer.alloc(0), apartMs: 0 };

for (const service of ["bank", "qr"] as const) {
  test(`Line gives ${service}'s calls their own answers, and proves itself by ${service}'s, with each kind of stray bytes around them`, async () => {
    for (const stray of strays) {
      const set = new StrayLine(service, () => stray);
      await set.idle();
      for (const id of ["A", "B", "C"]) await set.call(`${id}-1`, stray.name);
      assert.equal(set.told.states.filter((state) => state === "recovering").length, 1, `${stray.name}: in step all the time`);
      await set.line.stop(0);
    }
  });

  test(`Line gives ${service}'s calls their own answers with 1,000 random stray bytes around them`, async () => {
    const draw = drawnFrom(20_261_120);
    const set = new StrayLine(service, () => clean);
    await set.idle();
    set.stray = () => randomStray(draw);
    for (let n = 0; n < 1_000; n++) await set.call(`R-${n}`, `random ${n}`);
    await set.line.stop(0);
  });
}

test("Line with fiscal beside bank gives both their own answers with stray bytes around them", async () => {
  for (const service of ["bank", "fiscal"] as const) {
    for (const stray of strays) {
      // A frame that begins as a fiscal one may end in the answer.
      const set = new StrayLine(service, () => clean, { services: ["bank", "fiscal"], merchantId });
      await set.idle();
      set.stray = () => stray;
      for (const id of ["A", "B", "C"]) await set.call(`${id}-1`, stray.name);
      await set.line.stop(0);
    }
  }
});

test("Line gives the answer that stray bytes have hidden within a tenth of a second of its last byte", async () => {
  for (const stray of strays.filter(({ behind, apartMs }) => behind.length === 0 && apartMs === 0)) {
    const set = new StrayLine("bank", () => clean);
    await set.idle();
    set.stray = () => stray;
    const ms = await set.call("A", stray.name);
    assert.ok(ms <= 110, `${stray.name}: ${ms} ms`);
    await set.line.stop(0);
  }
});

/** A call that is out, over a terminal that answers posline's own questions alone; what the terminal sends to the call is the test's. */
async function callOut(replyTimeoutMs = 30_000) {
  let isOut = false;
  const device = new FakeDevice((framing, text) => {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe !== undefined) device.reply(framing, probe);
    else isOut = true;
  });
  const { line } = lineOver(device.open, { config: { idleProbeMs: 0 } });
  line.start();
  assert.ok(await time.until(() => line.state === "idle"));
  const end = ending(line, requestFor("A", { replyTimeoutMs }));
  assert.ok(await time.until(() => isOut));
  return { device, line, end };
}

const length = (text: string) => frame("length", text);
const ff = Buffer.of(0xff);

test("Line gives an answer that came in time, though the stray bytes before it pause only behind the call's deadline", async () => {
  const { device, line, end } = await callOut(5_000);
  await time.advance(4_980);
  device.send(Buffer.concat([ff, length(good("A"))]));
  await time.advance(150);
  assert.equal(end.text, good("A"), end.fault?.message);
  await line.stop(0);
});

test("Line gives an answer that comes longer after stray bytes than a frame may take, whatever they announced", async () => {
  for (const bytes of ["00", "000001", "0005", "00050000", "007f0000", "ff", "000000014112340000"]) {
    const { device, line, end } = await callOut();
    device.send(Buffer.from(bytes, "hex"));
    await time.advance(headerMs + payloadMsMin);
    device.send(length(good("A")));
    await time.advance(1);
    assert.equal(end.text, good("A"), `${bytes}: ${end.fault?.message}`);
    await line.stop(0);
  }
});

/** What a call comes to whose terminal sends these bytes in place of its answer. */
async function answeredBy(bytes: Buffer): Promise<string> {
  const { device, line, end } = await callOut(10_000);
  device.send(bytes);
  await time.until(() => hasEnded(end), 60_000);
  await line.stop(0);
  return end.text ?? end.fault?.reason ?? "";
}

test("Line takes no answer beside the beginning of another, nor one of two that differ: which is the call's isn't known", async () => {
  const own = length(good("A"));
  const other = length(good("Z"));
  const damaged = Buffer.from(other);
  damaged.writeUInt8(damaged.readUInt8(20) ^ 1, 20);
  const cases: readonly (readonly [string, Buffer, string])[] = [
    ["two that differ behind FF", Buffer.concat([ff, own, other]), "reply-ambiguous"],
    ["two that are the same behind FF", Buffer.concat([ff, own, own]), good("A")],
    ["half of another before it", Buffer.concat([other.subarray(0, 40), own]), "reply-corrupt"],
    ["FF and half of another before it", Buffer.concat([ff, other.subarray(0, 40), own]), "no-reply"],
    ["another one before it, damaged", Buffer.concat([damaged, own]), "reply-corrupt"],
    ["another one before it, damaged, behind FF", Buffer.concat([ff, damaged, own]), "no-reply"],
    ["half of another behind it", Buffer.concat([ff, own, other.subarray(0, 40)]), good("A")],
  ];
  for (const [name, bytes, end] of cases) assert.equal(await answeredBy(bytes), end, name);
});

test("Line takes no request, no text and no answer with a wrong checksum for an answer behind stray bytes", async () => {
  const damaged = length(good("A"));
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 1) ^ 1, damaged.length - 1);
  for (const bytes of [length('/sale\n{"id":"A"}'), length("BUSY"), length("[1]"), damaged]) {
    assert.equal(await answeredBy(Buffer.concat([ff, bytes])), "no-reply");
  }
});

test("Line that finds an answer among bytes while it is idle is out of step, as with one that comes alone", async () => {
  for (const before of [Buffer.alloc(0), ff, Buffer.of(0)]) {
    const set = new StrayLine("bank", () => clean);
    await set.idle();
    const { length: states } = set.told.states;
    set.device.send(Buffer.concat([before, length(good("Z"))]));
    await time.advance(101);
    assert.deepEqual(set.told.states.slice(states, states + 1), ["recovering"]);
    await set.idle();
    await set.line.stop(0);
  }
});

test("Line doesn't take an answer that came before the whole request was out, whatever stray bytes it lies among", async () => {
  for (const [before, behind] of [
    [ff, Buffer.alloc(0)],
    [Buffer.of(0, 5), ff],
  ] as const) {
    const set = new StrayLine("bank", () => clean);
    await set.idle();
    set.device.takesBytes = 5;
    const end = ending(set.line, requestFor("A", { replyTimeoutMs: 10_000 }));
    await time.advance(10);
    set.device.send(Buffer.concat([before, length(good("Z")), behind]));
    await time.advance(10);
    set.device.takeRest();
    await time.advance(200);
    assert.equal(end.fault?.reason, "reply-ambiguous");
    await set.line.stop(0);
  }
});
