import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeLength, LENGTH_PAYLOAD_BYTES_LIMIT } from "../../src/wire/length.ts";
import { decoderOf, Feed } from "./feed.ts";

const frame = (payload: string): Buffer => Buffer.concat(encodeLength("arc", [Buffer.from(payload)]));
const of = (...bytes: number[]): Buffer => Buffer.from(bytes);

test("encodeLength() refuses a payload whose length wouldn't begin with 00", () => {
  const half = Buffer.alloc(2 ** 23);
  assert.throws(() => encodeLength("arc", [half, half]), {
    name: "RangeError",
    message: /16777216 bytes: a payload is at most 16777215/,
  });
  assert.equal(encodeLength("arc", [half, half.subarray(1)])[0]?.readUInt32BE(), LENGTH_PAYLOAD_BYTES_LIMIT);
});

test("length decoder says its phase and the missing bytes at every byte of a frame", () => {
  for (const wire of [frame("/check"), frame("")]) {
    const { decoder } = new Feed(decoderOf("length"));
    assert.deepEqual([decoder.phase, decoder.pendingBytes, decoder.missingBytes], ["none", 0, 0]);
    for (let i = 0; i < wire.length - 1; i++) {
      decoder.push(wire.subarray(i, i + 1));
      const expected = i < 3 ? ["start", i + 1, 0] : ["body", i + 1, wire.length - i - 1];
      assert.deepEqual([decoder.phase, decoder.pendingBytes, decoder.missingBytes], expected);
    }
    assert.equal(decoder.push(wire.subarray(-1)).length, 1);
    assert.deepEqual([decoder.phase, decoder.pendingBytes, decoder.missingBytes], ["none", 0, 0]);
  }
});

test("length decoder takes a non-zero first byte for noise until reset, a good frame behind it included", () => {
  const feed = new Feed(decoderOf("length")).feed(Buffer.from("AT\r\n")).feed(frame("/check"));
  assert.equal(feed.decoder.phase, "lost");
  assert.equal(feed.decoder.pendingBytes, 16);
  assert.deepEqual(feed.plain(), []);
  const head = Buffer.concat([Buffer.from("AT\r\n"), frame("/check")]).toString("hex");
  assert.deepEqual(feed.reset().plain(), [{ kind: "discard", reason: "noise", wireBytes: 16, head }]);
  assert.equal(feed.feed(frame("/check")).events.at(-1)?.kind, "frame");
});

test("length decoder is lost at the fourth byte of a length over the cap, and takes one of just the cap", () => {
  const feed = new Feed(decoderOf("length", { payloadBytesMax: 300 }));
  feed.feed(of(0, 0, 1, 0x2d), [1]);
  assert.equal(feed.decoder.phase, "lost");
  feed.feed(Buffer.alloc(40, "x")).reset();
  const head = `0000012d${"78".repeat(12)}`;
  assert.deepEqual(feed.plain(), [{ kind: "discard", reason: "oversize", wireBytes: 44, head }]);
  assert.equal(feed.feed(frame("y".repeat(300))).events.at(-1)?.kind, "frame");
  feed.feed(Buffer.from("AT")).reset();
  assert.deepEqual(feed.plain().at(-1), { kind: "discard", reason: "noise", wireBytes: 2, head: "4154" });
});

test("length decoder reports a wrong checksum with its last byte and both readings, then is lost", () => {
  const wire = Buffer.concat(encodeLength("umts", [Buffer.from("123456789")]));
  const feed = new Feed(decoderOf("length")).feed(wire, [3]);
  const checksum = { got: wire.toString("hex").slice(-4), arc: frame("123456789").toString("hex").slice(-4) };
  assert.notEqual(checksum.got, checksum.arc);
  const discard = { kind: "discard", reason: "checksum", wireBytes: 15, head: wire.toString("hex") };
  const expected = [{ ...discard, checksum: { ...checksum, umts: checksum.got } }];
  assert.deepEqual(feed.plain(), expected);
  assert.deepEqual([feed.decoder.phase, feed.decoder.pendingBytes], ["lost", 0]);
  feed.feed(frame("{}")).reset();
  assert.deepEqual(feed.plain().slice(1), [
    { kind: "discard", reason: "noise", wireBytes: 8, head: frame("{}").toString("hex") },
  ]);
});

test("length decoder reports a frame cut short as reset", () => {
  for (const n of [1, 3, 4, 7, 11]) {
    const part = frame("/check").subarray(0, n);
    const expected = [{ kind: "discard", reason: "reset", wireBytes: n, head: part.toString("hex") }];
    assert.deepEqual(new Feed(decoderOf("length")).feed(part).reset().plain(), expected);
  }
});
