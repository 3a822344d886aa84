import assert from "node:assert/strict";
import { test } from "node:test";
import { probeIntervalMs, silenceMs } from "../../src/config/limits.ts";
import { msPerByte } from "../../src/device/transport.ts";
import {
  burstMsMax,
  corruptQuietMs,
  fullBytesMin,
  probeReplyMs,
  reopenMs,
  restBytesMax,
  restMsMax,
  silenceMsMax,
} from "../../src/line/limits.ts";
import { asideMs, copyMs, evidenceMs, lostMax, pauseMs, rowMin, silentWarnMs } from "../../src/recovery/limits.ts";
import { configOf } from "./lines.ts";

/** The fixed numbers, held against the reasons that stand beside them. */

/** Milliseconds for which a USB adapter keeps bytes back. */
const adapterMs = 16;
/** Bytes that the kernel keeps for a tty. */
const kernelBytes = 4_096;

test("corruptQuietMs outlasts twenty byte times at 2400 baud behind a USB adapter, by less than a millisecond", () => {
  const ms = 20 * msPerByte(configOf({ baudRate: 2_400 })) + adapterMs;
  assert.equal(corruptQuietMs, Math.ceil(ms));
});

test("silentWarnMs and evidenceMs are the time of five probes", () => {
  assert.equal(silentWarnMs, 5 * probeIntervalMs);
  assert.equal(evidenceMs, 5 * probeIntervalMs);
});

test("limits of bytes that lie are shares of what the kernel and an adapter keep", () => {
  assert.equal(burstMsMax, 4 * adapterMs);
  assert.equal(restMsMax, 2 * adapterMs);
  assert.equal(restBytesMax, kernelBytes / 2);
  assert.equal(fullBytesMin, (3 * kernelBytes) / 4);
});

test("a replug on a line that babbles is served within three seconds: the next attempt, and the silence that is waited for", () => {
  assert.ok(reopenMs.longest + silenceMsMax <= 3_000);
});

test("pauses of a row outlast an opening's silence and a copy's burst, and an idle line's question two of a recovery", () => {
  assert.ok(pauseMs > silenceMs && pauseMs < probeIntervalMs);
  assert.ok(copyMs.first > burstMsMax && copyMs.first < pauseMs);
  assert.ok(probeReplyMs > 2 * probeIntervalMs);
});

test("a row of answers to older questions is right by chance once in a million, however many of them stayed out", () => {
  assert.ok(2 ** rowMin >= 1_000_000);
  assert.ok(lostMax < rowMin / 4);
});

test("a terminal that is switched on is asked and proven within forty seconds, and a night's questions are few", () => {
  const answerMs = 200;
  assert.ok(asideMs.least + (rowMin + 2) * answerMs <= 40_000);
  assert.ok(((12 * 3_600_000) / asideMs.least) * answerMs <= 8 * 60_000);
  assert.ok(asideMs.least < asideMs.most);
});
