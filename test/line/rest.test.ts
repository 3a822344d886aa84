import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { restBeforeMs, restBytesMax, restMsMax } from "../../src/line/limits.ts";
import { Reader } from "../../src/line/reader.ts";
import { frame } from "../support/fake-device.ts";
import { configOf } from "./lines.ts";

/** How long bytes may be left to gather: never past the moment at which the frame could be whole. */

const baudRate = 115_200;
const msPerByte = 10_000 / baudRate;
const reply = frame("length", JSON.stringify({ status: "success", note: "x".repeat(320) }));

const newReader = () => new Reader(configOf({ baudRate }), new Set(["length"] as const));

function hear(reader: Reader, bytes: Uint8Array, now: number): number {
  reader.space().set(bytes);
  return reader.heard(bytes.length, now).length;
}

/** Lets a frame come at a pace, reads as a conduit does, and gives the moments of its reads. */
function come(reader: Reader, bytes: Buffer, beganMs: number, bytesPerMs: number, pieceBytes: number): number[] {
  const reads: number[] = [];
  const arrivedBy = (now: number) => {
    const came = Math.floor(((now - beganMs) * bytesPerMs) / pieceBytes + 1e-9) * pieceBytes + pieceBytes;
    return Math.min(bytes.length, came);
  };
  let read = 0;
  let now = beganMs;
  while (read < bytes.length) {
    const upTo = arrivedBy(now);
    hear(reader, bytes.subarray(read, upTo), now);
    reads.push(now);
    read = upTo;
    const restMs = reader.restMs();
    const nextPieceMs = beganMs + (Math.ceil(read / pieceBytes) * pieceBytes - pieceBytes + pieceBytes) / bytesPerMs;
    now = restMs > 0 ? now + restMs : Math.max(nextPieceMs, now + 0.01);
  }
  return reads;
}

test("Reader.restMs() is 0 between frames, in a header, and for a frame whose end isn't known", () => {
  const reader = newReader();
  assert.equal(reader.restMs(), 0);
  hear(reader, reply.subarray(0, 2), 0);
  assert.equal(reader.restMs(), 0);
  const stx = new Reader(configOf({ baudRate }), new Set(["stx"] as const));
  hear(stx, frame("stx", "x".repeat(300)).subarray(0, 100), 0);
  hear(stx, Buffer.from("y"), 20);
  assert.equal(stx.restMs(), 0);
});

test("Reader.restMs() is 0 until the pace of the first frame is known", () => {
  const reader = newReader();
  hear(reader, reply.subarray(0, 8), 100);
  assert.equal(reader.restMs(), 0);
  hear(reader, reply.subarray(8, 24), 101.4);
  assert.ok(reader.restMs() > 0);
});

test("Reader.restMs() ends restBeforeMs before the frame could be whole, and after restMsMax", () => {
  const reader = newReader();
  const came = 200;
  hear(reader, reply.subarray(0, 8), 0);
  hear(reader, reply.subarray(8, came), came * msPerByte);
  const wholeInMs = (reply.length - came - 8) * msPerByte;
  assert.equal(reader.restMs(), Math.floor(Math.min(wholeInMs - restBeforeMs, restMsMax)));
});

test("Reader.restMs() lets no more than restBytesMax gather at the line's speed", () => {
  const fast = new Reader(configOf({ baudRate: 4_000_000 }), new Set(["length"] as const));
  const large = frame("length", JSON.stringify({ note: "x".repeat(60_000) }));
  hear(fast, large.subarray(0, 8), 0);
  hear(fast, large.subarray(8, 408), 1);
  assert.ok(fast.restMs() <= (restBytesMax * 10_000) / 4_000_000);
});

test("Reader reads a slow frame a dozen times in place of forty, and hears its end at once", () => {
  const reader = newReader();
  const bytesPerMs = 1 / msPerByte;
  for (let n = 0; n < 3; n++) {
    const reads = come(reader, reply, 1_000 * n, bytesPerMs, 8);
    const pieces = Math.ceil(reply.length / 8);
    assert.ok(reads.length <= 14 && reads.length < pieces / 3, `${reads.length} reads of ${pieces} pieces`);
    const wholeAt = 1_000 * n + (Math.ceil(reply.length / 8) - 1) * (8 / bytesPerMs);
    assert.ok((reads.at(-1) ?? 0) - wholeAt < 0.1, "the last byte is read when it comes");
  }
});

test("Reader never rests when that would make an evenly paced frame late, whatever the pace and the pieces", () => {
  fc.assert(
    fc.property(fc.double({ min: 0.5, max: 400, noNaN: true }), fc.integer({ min: 1, max: 62 }), (bytesPerMs, pieceBytes) => {
      const reader = newReader();
      for (let n = 0; n < 3; n++) {
        const beganMs = 10_000 * n;
        const reads = come(reader, reply, beganMs, bytesPerMs, pieceBytes);
        const wholeAt = beganMs + (Math.ceil(reply.length / pieceBytes) - 1) * (pieceBytes / bytesPerMs);
        assert.ok((reads.at(-1) ?? 0) <= wholeAt + 0.1);
      }
    }),
  );
});

test("Reader forgets the pace of a frame that was whole when a rest ended", () => {
  const reader = newReader();
  hear(reader, reply.subarray(0, 8), 0);
  hear(reader, reply.subarray(8, 40), 4);
  assert.ok(reader.restMs() > 0);
  assert.equal(hear(reader, reply.subarray(40), 12), 1);
  hear(reader, reply.subarray(0, 8), 100);
  assert.equal(reader.restMs(), 0);
});

test("Reader.ending is true only for the last two pieces before a frame is whole", () => {
  const reader = newReader();
  const pieces = Math.ceil(reply.length / 8);
  for (let n = 0; n < pieces; n++) {
    hear(reader, reply.subarray(8 * n, 8 * (n + 1)), 100 + n * 8 * msPerByte);
    const left = pieces - 1 - n;
    assert.equal(reader.ending, left === 1 || left === 2, `with ${left} pieces to come`);
  }
});
