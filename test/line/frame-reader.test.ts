import assert from "node:assert/strict";
import { test } from "node:test";
import { headerMs, payloadMsMin } from "../../src/config/limits.ts";
import { FrameReader } from "../../src/line/frame-reader.ts";
import { corruptQuietMs, payloadMsMax } from "../../src/line/limits.ts";
import type { Decoded, Framing } from "../../src/wire/decoded.ts";
import { frame } from "../support/fake-device.ts";
import { configOf } from "./lines.ts";

const slow = configOf({ baudRate: 1_200 });
const msPerByte = 10_000 / 1_200;

function hear(reader: FrameReader, bytes: Uint8Array, now: number): readonly Decoded[] {
  const decoded: Decoded[] = [];
  for (let from = 0; from < bytes.length; ) {
    const space = reader.space();
    const n = Math.min(space.length, bytes.length - from);
    space.set(bytes.subarray(from, from + n));
    decoded.push(...reader.heard(n, now));
    from += n;
  }
  return decoded;
}

const readerOf = (...framings: Framing[]) => new FrameReader(slow, new Set(framings));

test("FrameReader has nothing due while nothing is pending", () => {
  const reader = readerOf("length");
  assert.equal(reader.dueMs, Number.POSITIVE_INFINITY);
  assert.equal(hear(reader, frame("length", "{}"), 1_000).length, 1);
  assert.equal(reader.dueMs, Number.POSITIVE_INFINITY);
  assert.equal(reader.between, true);
});

test("FrameReader gives a header headerMs from its first byte", () => {
  const reader = readerOf("length");
  hear(reader, Buffer.from([0]), 1_000);
  hear(reader, Buffer.from([0]), 2_500);
  assert.equal(reader.begun, true);
  assert.equal(reader.dueMs, 1_000 + headerMs);
});

test("FrameReader gives a short payload payloadMsMin from the frame's first byte", () => {
  const reader = readerOf("length");
  const bytes = frame("length", '{"a":1}');
  hear(reader, bytes.subarray(0, 3), 1_000);
  hear(reader, bytes.subarray(3, 8), 2_000);
  assert.equal(reader.dueMs, 1_000 + payloadMsMin);
});

test("FrameReader gives a long payload twice its time on the wire, as long as it keeps coming", () => {
  const reader = readerOf("length");
  const bytes = frame("length", "x".repeat(2_000));
  hear(reader, bytes.subarray(0, 500), 1_000);
  assert.equal(reader.dueMs, 1_000 + payloadMsMin, "nothing may come for payloadMsMin");
  hear(reader, bytes.subarray(500, 1_900), 30_000);
  assert.equal(Math.round(reader.dueMs), Math.round(1_000 + 2 * bytes.length * msPerByte));
});

test("FrameReader gives no payload more than payloadMsMax, whatever its header says", () => {
  const reader = readerOf("length");
  hear(reader, Buffer.from("007f0000", "hex"), 1_000);
  for (let now = 2_000; now <= payloadMsMax; now += 4_000) hear(reader, Buffer.from("x"), now);
  assert.equal(reader.dueMs, 1_000 + payloadMsMax);
});

test("FrameReader looks for the next frame corruptQuietMs after the last byte of what is none", () => {
  const reader = readerOf("length");
  hear(reader, Buffer.from("AT\r"), 1_000);
  assert.equal(reader.begun, false);
  assert.equal(reader.between, false);
  hear(reader, Buffer.from("AT\r"), 1_070);
  assert.equal(reader.dueMs, 1_070 + corruptQuietMs);
  assert.deepEqual(
    reader.reset().map(({ reason, wireBytes }) => [reason, wireBytes]),
    [["noise", 6]],
  );
  assert.equal(reader.dueMs, Number.POSITIVE_INFINITY);
});

test("FrameReader gives a frame that begins behind another its own time", () => {
  const reader = readerOf("length");
  const [first, second] = [frame("length", '{"a":1}'), frame("length", '{"b":2}')];
  hear(reader, first.subarray(0, 6), 1_000);
  const decoded = hear(reader, Buffer.concat([first.subarray(6), second.subarray(0, 2)]), 3_500);
  assert.equal(decoded.length, 1);
  assert.equal(reader.dueMs, 3_500 + headerMs);
});

test("FrameReader tells STX and length frames apart, and reports a torn one at its reset", () => {
  const reader = readerOf("length", "stx");
  const kinds = hear(reader, Buffer.concat([frame("stx", "{}"), frame("length", "{}")]), 1_000);
  assert.deepEqual(
    kinds.map((item) => (item.kind === "frame" ? item.framing : item.reason)),
    ["stx", "length"],
  );
  hear(reader, frame("stx", '{"a":1}').subarray(0, 5), 2_000);
  assert.equal(reader.begun, true);
  assert.deepEqual(
    reader.reset().map(({ reason }) => reason),
    ["reset"],
  );
});
