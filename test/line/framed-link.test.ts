import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { LineConfig } from "../../src/config/config.ts";
import { headerMs, payloadMsMin, silenceMs } from "../../src/config/limits.ts";
import { FramedLink } from "../../src/line/framed-link.ts";
import { writeMsMin } from "../../src/line/limits.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { configOf } from "./lines.ts";

const time = new VirtualTime();
after(() => time.restore());

/** A link with its device, and what it told its user. */
class Bench {
  readonly device = new FakeDevice();
  readonly told: string[] = [];
  readonly link: FramedLink;
  /** What its user does with what came. */
  onReceived = () => {};

  constructor(settings: Partial<LineConfig> = {}) {
    const traffic = { framings: new Set(["length"] as const), payloadBytesMax: 1 << 20 };
    this.link = new FramedLink(configOf(settings), traffic, this.device.open, {
      opened: () => this.told.push("opened"),
      drained: () => this.told.push("drained"),
      received: (items) => {
        for (const item of items) this.told.push(item.kind === "frame" ? "frame" : item.reason);
        this.onReceived();
      },
      wrote: () => this.told.push("wrote"),
      lost: (reason, { nothingWritten, discards }) => {
        for (const discard of discards) this.told.push(discard.reason);
        this.told.push(`${nothingWritten ? "lost unwritten" : "lost"}: ${reason}`);
      },
      openFailed: (reason) => this.told.push(reason),
    });
    this.link.start();
  }

  async drained(): Promise<this> {
    await time.advance(silenceMs);
    assert.deepEqual(this.told.splice(0), ["opened", "drained"]);
    return this;
  }
}

const bytes = [frame("length", '{"a":1}')];

test("FramedLink is drained after silenceMs without a byte, and counts what was half heard by then for nothing", async () => {
  const { device, link, told } = new Bench();
  await time.advance(silenceMs - 1);
  device.send(Buffer.from([0, 0]));
  await time.advance(silenceMs - 1);
  assert.deepEqual([link.isOpen, link.isDrained, link.isStill], [true, false, false]);
  await time.advance(1);
  assert.deepEqual([link.isDrained, link.isStill, link.isTimed], [true, true, false]);
  assert.deepEqual(told, ["opened", "reset", "drained"]);
  await link.stop();
});

test("FramedLink.write() throws where nothing is open, and while another frame is being written", async () => {
  const bench = new Bench();
  assert.throws(() => bench.link.write(bytes, time.nowMs), /Cannot write a frame/);
  await bench.drained();
  bench.device.takesBytes = 3;
  bench.link.write(bytes, time.nowMs);
  assert.equal(bench.link.isStill, false);
  assert.throws(() => bench.link.write(bytes, time.nowMs), /another is being written/);
  bench.device.takeRest();
  assert.deepEqual(bench.told, ["wrote"]);
  assert.equal(bench.link.isStill, true);
  await bench.link.stop();
});

test("FramedLink gives a write writeMsMin and twice its time on the wire before it gives the device up", async () => {
  // 10 ms a byte.
  const { device, link, told } = await new Bench({ baudRate: 1_000 }).drained();
  device.takesBytes = 10;
  link.write([Buffer.alloc(400), Buffer.alloc(600)], time.nowMs);
  await time.advance(writeMsMin + 20_000 - 1);
  assert.deepEqual(told, []);
  assert.equal(link.isTimed, true);
  await time.advance(1);
  assert.deepEqual(told, ["lost: the device accepts no data: check flowControl and the cable"]);
  assert.deepEqual([link.isOpen, link.isTimed, device.isOpen], [false, false, false]);
  await link.stop();
});

test("FramedLink tells of a loss whether anything was written, and what was half heard", async () => {
  const { device, link, told } = await new Bench().drained();
  device.takesBytes = 0;
  link.write(bytes, time.nowMs);
  device.send(frame("length", '{"b":2}').subarray(0, 5));
  device.unplug("unplugged");
  assert.deepEqual(told.splice(0), ["reset", "lost unwritten: unplugged"]);
  assert.deepEqual([link.isOpen, link.isDrained, link.isTimed], [false, false, false]);
  device.plug();
  device.takesBytes = 1;
  await time.advance(1_000);
  assert.deepEqual(told.splice(0).slice(-2), ["opened", "drained"]);
  link.write(bytes, time.nowMs);
  device.unplug("unplugged");
  device.plug();
  await time.advance(1_000);
  link.write(bytes, time.nowMs);
  device.takeRest();
  device.unplug("unplugged");
  assert.deepEqual(
    told.filter((each) => each.startsWith("lost")),
    ["lost: unplugged", "lost: unplugged"],
  );
  await link.stop();
});

test("FramedLink has a clock only while it waits for something, and none once the device is lost, whoever lost it", async () => {
  const bench = await new Bench().drained();
  const { device, link, told } = bench;
  assert.deepEqual([link.isStill, link.isTimed], [true, false]);
  device.send(frame("length", '{"b":2}').subarray(0, 5));
  assert.deepEqual([link.isStill, link.isTimed], [false, true]);
  await time.advance(payloadMsMin - 1);
  assert.deepEqual(told, []);
  await time.advance(1);
  assert.deepEqual(told, ["reset"]);
  assert.equal(link.isTimed, false);
  bench.onReceived = () => device.unplug("its user pulled the plug");
  device.send(frame("length", '{"b":2}').subarray(0, 5));
  assert.deepEqual([link.isOpen, link.isTimed], [false, false]);
  await link.stop();
});

test("FramedLink.stop() gives the device back, and has nothing due or open any more", async () => {
  const { device, link, told } = new Bench();
  await time.settle();
  assert.equal(link.isTimed, true);
  await link.stop();
  assert.deepEqual([link.isOpen, link.isTimed, device.isOpen], [false, false, false]);
  time.forgetTimers();
  await time.advance(60_000);
  assert.equal(link.overdueMs(time.nowMs), 0);
  assert.deepEqual(told, ["opened"]);
});

test("FramedLink.overdueMs() is how long its own clock, or the next attempt to open, is late", async () => {
  const { device, link } = await new Bench().drained();
  device.send(frame("length", '{"b":2}').subarray(0, 3));
  assert.equal(link.overdueMs(time.nowMs + headerMs), 0);
  assert.equal(link.overdueMs(time.nowMs + headerMs + 7), 7);
  device.unplug();
  await time.settle();
  assert.equal(link.overdueMs(time.nowMs), 0);
  assert.ok(link.overdueMs(time.nowMs + 60_000) > 50_000);
  await link.stop();
});

test("FramedLink has no clock once the device is lost within its first silence", async () => {
  const bench = new Bench();
  await time.settle();
  bench.onReceived = () => bench.device.unplug("its user pulled the plug");
  bench.device.send(Buffer.from("AT\r"));
  assert.deepEqual([bench.link.isOpen, bench.link.isTimed], [false, false]);
  await bench.link.stop();
});
