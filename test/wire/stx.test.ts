import assert from "node:assert/strict";
import { test } from "node:test";
import * as npm from "crc";
import fc from "fast-check";
import { encodeStx } from "../../src/wire/stx.ts";
import { decoderOf, Feed } from "./feed.ts";

const frame = (payload: string): Buffer => Buffer.concat(encodeStx([Buffer.from(payload)]));
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

/** `[kind or reason, wireBytes]` of all events. */
function brief(feed: Feed): [string, number][] {
  return feed.events.map((event) => [event.kind === "frame" ? event.kind : event.reason, event.wireBytes]);
}

/** The rules of the contract and of DESIGN 4 as they are told, one byte at a time over plain arrays. */
function model(stream: Uint8Array, payloadBytesMax: number): [string, number][] {
  const events: [string, number][] = [];
  let noise = 0;
  let window: number[] = [];
  const skip = (n: number): void => {
    noise += n;
    window = window.slice(n);
  };
  const report = (what: string, n: number): void => {
    if (noise > 0) events.push(["noise", noise]);
    noise = 0;
    events.push([what, n]);
    window = window.slice(n);
  };
  const align = (): void => skip(window.includes(2) ? window.indexOf(2) : window.length);
  for (const byte of stream) {
    window.push(byte);
    const last = window.length - 1;
    if (byte === 3) {
      const start = last >= 5 ? window.lastIndexOf(2, last - 5) : -1;
      if (start < 0) skip(window.length);
      else {
        skip(start);
        const payload = Buffer.from(window.slice(1, -5));
        const crc = Buffer.alloc(4);
        crc.writeUInt32BE(npm.crc32(payload));
        const right = crc.every((each, i) => window.at(i - 5) === (each === 3 ? 0x20 : each));
        report(right ? "frame" : "checksum", window.length);
      }
      continue;
    }
    const start = last >= 4 ? window.lastIndexOf(2, last - 4) : -1;
    if (start > 0) skip(start);
    align();
    if (window.length === payloadBytesMax + 6) report("oversize", payloadBytesMax + 2);
    align();
  }
  if (noise > 0) events.push(["noise", noise]);
  if (window.length > 0) events.push(["reset", window.length]);
  return events;
}

test("STX decoder does what the rules say byte by byte, whatever comes in whatever pieces", () => {
  const bytes = fc.array(fc.oneof(fc.constantFrom(2, 3), fc.integer({ min: 0, max: 255 })), { maxLength: 40 });
  const long = fc.integer({ min: 1, max: 700 }).map((n) => Buffer.alloc(n, "t"));
  const good = fc.string({ maxLength: 30 }).map(frame);
  const part = fc.oneof(
    bytes.map((each) => Buffer.from(each)),
    good,
    good,
    long,
  );
  const sizes = fc.array(fc.integer({ min: 1, max: 600 }), { maxLength: 6 });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 14 }), sizes, fc.constantFrom(1, 20, 500), (parts, cut, payloadBytesMax) => {
      const stream = Buffer.concat(parts);
      const feed = new Feed(decoderOf("stx", { payloadBytesMax })).feed(stream, cut).reset();
      assert.deepEqual(brief(feed), model(stream, payloadBytesMax));
    }),
    { numRuns: 600 },
  );
});

test("STX decoder reports noise with the frame it precedes, or at reset", () => {
  const feed = new Feed(decoderOf("stx")).feed(Buffer.from("AT+GCAP\r\u0003AT"));
  assert.deepEqual([feed.events.length, feed.decoder.phase, feed.decoder.pendingBytes], [0, "lost", 11]);
  feed.feed(frame("{}"));
  assert.deepEqual(brief(feed), [
    ["noise", 11],
    ["frame", 8],
  ]);
  assert.equal(feed.decoder.phase, "none");
  assert.deepEqual(feed.events[0], { kind: "discard", reason: "noise", wireBytes: 11, head: "41542b474341500d034154" });
  feed.feed(Buffer.from("ring")).reset();
  assert.deepEqual(brief(feed).slice(2), [["noise", 4]]);
});

test("STX decoder reports a wrong checksum with its ETX and both values, and goes on", () => {
  const wire = Buffer.from(frame("123456789"));
  wire[3] = 0x30;
  const feed = new Feed(decoderOf("stx")).feed(Buffer.concat([Buffer.from("zz"), wire, frame("{}")]), [1]);
  assert.deepEqual(brief(feed), [
    ["noise", 2],
    ["checksum", 15],
    ["frame", 8],
  ]);
  const crc = hex(npm.crc32(Buffer.from("120456789")).toString(16).padStart(8, "0")).map((byte) => (byte === 3 ? 0x20 : byte));
  const [, discard] = feed.events;
  assert.ok(discard?.kind === "discard");
  assert.deepEqual(discard.checksum, { got: "cbf43926", crc32: Buffer.from(crc).toString("hex") });
});

test("STX decoder says body from the STX on and knows no missing bytes", () => {
  const wire = frame("{}");
  const { decoder } = new Feed(decoderOf("stx"));
  for (let i = 0; i < wire.length - 1; i++) {
    decoder.push(wire.subarray(i, i + 1));
    assert.deepEqual([decoder.phase, decoder.pendingBytes, decoder.missingBytes], ["body", i + 1, 0]);
  }
  assert.equal(decoder.push(wire.subarray(-1)).length, 1);
  assert.deepEqual([decoder.phase, decoder.pendingBytes, decoder.missingBytes], ["none", 0, 0]);
});

test("STX decoder is ready for the next frame after a wrong checksum, and lost in noise that follows", () => {
  for (const sizes of [[], [1]]) {
    const bad = Buffer.from(frame("x".repeat(40)));
    bad[20] = 0x79;
    const feed = new Feed(decoderOf("stx")).feed(bad, sizes);
    assert.deepEqual([feed.decoder.phase, feed.decoder.pendingBytes], ["none", 0]);
    feed.feed(Buffer.from("n"));
    assert.deepEqual([feed.decoder.phase, feed.decoder.pendingBytes], ["lost", 1]);
    feed.feed(frame("{}"), sizes);
    assert.deepEqual(brief(feed), [
      ["checksum", 46],
      ["noise", 1],
      ["frame", 8],
    ]);
  }
});
