import assert from "node:assert/strict";
import { test } from "node:test";
import { LineTraffic } from "../../src/capture/line-traffic.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { bytesOf } from "../../src/core/pieces.ts";
import { lineService } from "../../src/line/caller.ts";
import { LineEngine } from "../../src/line/engine.ts";
import { configOf, ending, hasEnded, type LineSetup, lineOver, requestFor } from "../line/lines.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";

/** What is counted of a line against a device that does just what a test says. */

const time = virtualTime();

const good = '{"status":"success"}';

/** A line with a device that answers probes and calls as it is told; what the device received and sent is known to the byte. */
function counted(config: LineSetup["config"] = {}, traffic = new LineTraffic(), contract: ContractName = "bank") {
  let repliedBytes = 0;
  const answers = { probe: probeReply, call: (): string | undefined => good };
  const reply = (text: string | undefined) => {
    if (text === undefined) return;
    repliedBytes += frame("length", text).length;
    device.reply("length", text);
  };
  const device = new FakeDevice((framing, text) => {
    const isProbe = probeReply({ framing, text, number: 0 }) !== undefined;
    reply(isProbe ? answers.probe({ framing, text, number: 0 }) : answers.call());
  });
  const services = [lineService(contracts[contract], { crc16: "arc", quiet: false, merchantId: undefined })];
  const observe = traffic.watch({ name: "till", services });
  const { line } = lineOver(device.open, { config: { idleProbeMs: 0, ...config }, services: [contract], observe });
  line.start();
  const counts = traffic.of("till");
  const probes = () => ({ ...counts.probes.get(contract) });
  const send = (bytes: Buffer) => {
    repliedBytes += bytes.length;
    device.send(bytes);
  };
  return { device, line, counts, probes, answers, send, repliedBytes: () => repliedBytes, traffic };
}

test("LineTraffic counts each byte and frame either way once, those of discards too", async () => {
  const { device, line, counts, send, repliedBytes } = counted();
  assert.ok(await time.until(() => line.state === "idle"));
  const end = ending(line, requestFor("SALE"));
  assert.ok(await time.until(() => hasEnded(end)));
  assert.equal(counts.sentFrames, counts.receivedFrames);
  assert.ok(counts.sentFrames >= 2);
  const corrupt = frame("length", good);
  corrupt.writeUInt8(corrupt.readUInt8(corrupt.length - 1) ^ 1, corrupt.length - 1);
  send(corrupt);
  assert.ok(await time.until(() => line.state === "idle", 60_000));
  await time.advance(10_000);
  assert.equal(counts.sentBytes, bytesOf(device.written));
  assert.equal(counts.receivedBytes, repliedBytes());
});

test("LineTraffic counts a probe as answered once, in a recovery and on an idle line", async () => {
  const { line, probes, counts } = counted({ idleProbeMs: 5_000 });
  assert.ok(await time.until(() => line.state === "idle"));
  const opening = probes();
  assert.deepEqual(opening, { answered: counts.sentFrames, refused: 0, unanswered: 0 });
  await time.advance(16_000);
  assert.deepEqual(probes(), { answered: counts.sentFrames, refused: 0, unanswered: 0 });
  assert.ok(counts.sentFrames > (opening.answered ?? 0) + 1);
});

test("LineTraffic counts a probe that is answered with an error as refused, and none of a call's errors", async () => {
  const { line, probes, answers, counts } = counted();
  const error = '{"status":"error","code":-1}';
  answers.probe = () => error;
  answers.call = () => error;
  assert.ok(await time.until(() => line.state === "idle"));
  assert.deepEqual(probes(), { answered: 0, refused: counts.sentFrames, unanswered: 0 });
  const { refused } = probes();
  const end = ending(line, requestFor("SALE"));
  assert.ok(await time.until(() => hasEnded(end)));
  assert.equal(probes().refused, refused);
});

test("LineTraffic counts an error as answered where it is the right answer, to qr's second question", async () => {
  const { line, probes, counts } = counted({}, new LineTraffic(), "qr");
  assert.ok(await time.until(() => line.state === "idle"));
  assert.deepEqual(probes(), { answered: counts.sentFrames, refused: 0, unanswered: 0 });
});

test("LineTraffic counts a probe as unanswered when the next frame goes out, or the device is lost", async () => {
  const { device, line, probes, answers, counts } = counted();
  answers.probe = () => undefined;
  await time.advance(3_000);
  const sent = counts.sentFrames;
  assert.ok(sent >= 2);
  assert.deepEqual(probes(), { answered: 0, refused: 0, unanswered: sent - 1 });
  device.unplug();
  await time.settle();
  assert.equal(line.state, "down");
  assert.deepEqual(probes(), { answered: 0, refused: 0, unanswered: sent });
});

test("LineTraffic counts no answer for a service when another's probe is answered late", () => {
  const traffic = new LineTraffic();
  const rules = { crc16: "arc", quiet: false, merchantId: undefined } as const;
  const services = [lineService(contracts.bank, rules), lineService(contracts.qr, rules)];
  const observe = traffic.watch({ name: "till", services });
  const engine = new LineEngine({ name: "till", config: configOf(), services });
  const probeOf = (service: "bank" | "qr") => ({ do: "write", frame: [], service, exchange: undefined }) as const;
  const answer = { kind: "frame", framing: "length", payload: [Buffer.from(good)], payloadBytes: 20, wireBytes: 26 } as const;
  const receiving = { phase: "idle", heardMs: 0, burstUntilMs: 0 } as const;
  const answeredBy = (service: "bank" | "qr") =>
    observe(
      { at: "received", items: [answer], receiving },
      [{ do: "report", what: { is: "probe answered", service, answer: {} } }],
      0,
      engine,
    );
  observe({ at: "tick" }, [probeOf("bank")], 0, engine);
  observe({ at: "tick" }, [probeOf("qr")], 0, engine);
  answeredBy("bank");
  answeredBy("qr");
  const { probes } = traffic.of("till");
  assert.deepEqual(probes.get("bank"), { answered: 0, refused: 0, unanswered: 1 });
  assert.deepEqual(probes.get("qr"), { answered: 1, refused: 0, unanswered: 0 });
});

test("LineTraffic goes on where a line takes another's place, and begins at 0 for what it doesn't know", () => {
  const { traffic, counts } = counted();
  counts.sentFrames = 7;
  counted({}, traffic);
  assert.equal(traffic.of("till").sentFrames, 7);
  assert.equal(traffic.of("other").sentFrames, 0);
  assert.deepEqual([...counts.probes], [["bank", { answered: 0, refused: 0, unanswered: 0 }]]);
});
