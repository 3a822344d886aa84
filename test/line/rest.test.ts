import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FrameReader } from "../../src/line/frame-reader.ts";
import { restMsMax } from "../../src/line/limits.ts";
import { frame } from "../support/fake-device.ts";
import { configOf } from "./lines.ts";

/**
 * Tests src/line/frame-reader.ts.
 *
 * How long bytes may be left to gather: never past the moment at which the frame could be whole.
 */

const baudRate = 115_200;
const msPerByte = 10_000 / baudRate;
const reply = frame("length", JSON.stringify({ status: "success", note: "x".repeat(320) }));

const newReader = () => new FrameReader(configOf({ baudRate }), new Set(["length"] as const));

function hear(reader: FrameReader, bytes: Uint8Array, now: number): number {
  reader.space().set(bytes);
  return reader.heard(bytes.length, now).length;
}

/** Lets a frame come at a pace, reads as a transport does, and gives the moments of its reads. */
function come(reader: FrameReader, bytes: Buffer, beganMs: number, bytesPerMs: number, pieceBytes: number): number[] {
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

test("FrameReader reads a slow frame a dozen times in place of forty, and hears its end at once", () => {
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

test("FrameReader never rests when that would make an evenly paced frame late, whatever the pace and the pieces", () => {
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

/** Bytes that the kernel holds for a tty. */
const kernelBytes = 4_095;

/**
 * Lets a frame come from a sender that waits while the kernel's buffer is full, as on USB, and gives the rests, and the milliseconds
 * that it took. A read takes all that the kernel holds, and the sender's next bytes follow.
 */
function pour(reader: FrameReader, bytes: Buffer, beganMs: number, bytesPerMs: number): { rests: number[]; tookMs: number } {
  const rests: number[] = [];
  let [sent, read, now] = [0, 0, beganMs];
  const pass = (ms: number) => {
    now += ms;
    sent = Math.min(bytes.length, read + kernelBytes, sent + Math.floor(ms * bytesPerMs));
  };
  while (read < bytes.length) {
    pass(Math.max(0.01, 64 / bytesPerMs));
    while (read < sent) {
      const space = reader.space();
      const n = Math.min(space.length, sent - read);
      space.set(bytes.subarray(read, read + n));
      reader.heard(n, now);
      read += n;
    }
    const restMs = reader.restMs();
    if (restMs === 0) continue;
    rests.push(restMs);
    // A timer is late.
    pass(restMs + 1);
  }
  return { rests, tookMs: now - beganMs };
}

const large = frame("length", JSON.stringify({ status: "success", note: "x".repeat(1_000_000) }));

test("FrameReader makes no frame much later than a sender that never has to wait, whatever its speed", () => {
  fc.assert(
    fc.property(fc.double({ min: 5, max: 20_000, noNaN: true }), fc.boolean(), (bytesPerMs, afterSlow) => {
      const reader = newReader();
      if (afterSlow) come(reader, reply, 1_000, 1 / msPerByte, 8);
      const { tookMs } = pour(reader, large, 10_000, bytesPerMs);
      assert.ok(tookMs <= 1.1 * (large.length / bytesPerMs) + restMsMax + 2, `${tookMs} ms at ${bytesPerMs} bytes a ms`);
    }),
    { numRuns: 40 },
  );
});
