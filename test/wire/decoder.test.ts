import assert from "node:assert/strict";
import { test } from "node:test";
import { createDecoder } from "../../src/wire/decoder.ts";
import { encodeLength } from "../../src/wire/length.ts";
import { encodeStx } from "../../src/wire/stx.ts";
import { decoderOf, Feed, modeNames } from "./feed.ts";

const length = (payload: string): Buffer => Buffer.concat(encodeLength("arc", [Buffer.from(payload)]));
const stx = (payload: string): Buffer => Buffer.concat(encodeStx([Buffer.from(payload)]));
const what = (feed: Feed): string[] => feed.events.map((event) => (event.kind === "frame" ? event.framing : event.reason));

test("createDecoder() refuses options that no line can have", () => {
  assert.throws(() => createDecoder({ stx: false, length: false, crc16: "arc", payloadBytesMax: 300 }), {
    name: "RangeError",
    message: /neither STX nor length frames/,
  });
  for (const payloadBytesMax of [0, -1, 1.5, Number.NaN, 2 ** 24]) {
    assert.throws(() => createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax }), {
      name: "RangeError",
      message: new RegExp(`payloadBytesMax is ${payloadBytesMax}; use 1 to ${2 ** 24 - 1}`),
    });
  }
  for (const payloadBytesMax of [1, 2 ** 24 - 1]) assert.equal(decoderOf("dual", { payloadBytesMax }).phase, "none");
});

test("decoder.advance() refuses more bytes than there was room for", () => {
  const decoder = decoderOf("dual");
  const room = decoder.space().length;
  for (const n of [-1, 0.5, room + 1]) assert.throws(() => decoder.advance(n), RangeError);
  assert.equal(decoder.pendingBytes, 0);
});

test("dual decoder tells framings apart by a frame's first byte, back to back", () => {
  const stream = Buffer.concat([stx("a"), length("\u0002\u0003"), length(""), stx(""), stx("b"), length("c")]);
  for (const sizes of [[], [1], [5]]) {
    const feed = new Feed(decoderOf("dual")).feed(stream, sizes);
    assert.deepEqual(what(feed), ["stx", "length", "length", "stx", "stx", "length"]);
    assert.equal(feed.decoder.pendingBytes, 0);
  }
});

test("dual decoder that is lost finds no length frame until reset, and an STX frame at once", () => {
  const feed = new Feed(decoderOf("dual")).feed(Buffer.concat([Buffer.from("x"), length("null"), length("null")]));
  assert.deepEqual([what(feed), feed.decoder.phase, feed.decoder.pendingBytes], [[], "lost", 21]);
  feed.feed(stx("{}"));
  assert.deepEqual(what(feed), ["noise", "stx"]);
  assert.deepEqual(what(feed.feed(length("{}"))), ["noise", "stx", "length"]);
  feed.feed(Buffer.from("x")).reset().feed(length("{}"));
  assert.deepEqual(what(feed).slice(3), ["noise", "length"]);
});

test("dual decoder is lost after a wrong checksum of either framing until an STX frame or reset", () => {
  for (const bad of [Buffer.from(length("{}")), Buffer.from(stx("{}"))]) {
    bad[bad.length - 2] = 0x7f;
    const feed = new Feed(decoderOf("dual")).feed(bad);
    assert.deepEqual([what(feed), feed.decoder.phase, feed.decoder.pendingBytes], [["checksum"], "lost", 0]);
    feed.feed(length("{}")).feed(stx("{}")).feed(length("{}"));
    assert.deepEqual(what(feed), ["checksum", "noise", "stx", "length"]);
    const other = new Feed(decoderOf("dual")).feed(bad).reset().feed(length("{}"));
    assert.deepEqual(what(other), ["checksum", "length"]);
  }
});

test("dual decoder finds the STX frame behind a stray 00 that makes its first bytes a length over the cap", () => {
  const feed = new Feed(decoderOf("dual")).feed(Buffer.concat([Buffer.of(0), stx('{"status":"success"}')]), [1]);
  assert.deepEqual(what(feed), ["oversize", "stx"]);
});

for (const [name, mode] of [
  ["length", "length"],
  ["stx", "stx"],
  ["length", "dual"],
  ["stx", "dual"],
] as const) {
  test(`decoder (${mode}) takes ${name} frames larger than a chunk, back to back, as pieces where they were read`, () => {
    const payloadBytesMax = 4 * 1024 * 1024;
    const feed = new Feed(decoderOf(mode, { payloadBytesMax }));
    const heard: number[] = [];
    for (const bytes of [60_000, 65_535, 65_536, 70_000, 131_072, 200_000, 10, payloadBytesMax]) {
      const payload = Buffer.alloc(bytes, `${bytes} `);
      const wire = Buffer.concat(name === "stx" ? encodeStx([payload]) : encodeLength("arc", [payload]));
      feed.feed(wire, bytes > 300_000 ? [65_536, 30_000] : [4096, 5, 1023]);
      const frame = feed.events.at(-1);
      assert.ok(frame?.kind === "frame");
      assert.ok(Buffer.concat(frame.payload).equals(payload));
      assert.ok(frame.payload.length <= 9, `${frame.payload.length} pieces`);
      heard.push(frame.payloadBytes);
    }
    assert.equal(heard.length, feed.events.length);
    feed.plain();
  });
}

test("decoder gives a header that lies about its length no more memory than twice what came", () => {
  const decoder = decoderOf("length", { payloadBytesMax: 8 * 1024 * 1024 });
  decoder.push(Buffer.of(0, 0x80, 0, 0));
  let came = 4;
  let held = 0;
  let memory: ArrayBufferLike | undefined;
  while (came < 1_000_000) {
    const space = decoder.space();
    if (space.buffer !== memory) held += space.buffer.byteLength;
    memory = space.buffer;
    assert.ok(held <= Math.max(2 * came, came + 65_536), `${held} bytes held for ${came}`);
    const n = Math.min(space.length, 5000);
    decoder.advance(n);
    came += n;
  }
  assert.equal(decoder.missingBytes, 8 * 1024 * 1024 + 6 - came);
});

test("decoder gives the first 16 bytes of what it skipped, in however many reads they came", () => {
  const came = Buffer.from("0123456789abcdefghijklmnop");
  for (const mode of modeNames)
    for (const sizes of [[], [1], [10], [15, 1], [16, 1], [17]]) {
      const head = came.subarray(0, 16).toString("hex");
      const expected = [{ kind: "discard", reason: "noise", wireBytes: 26, head }];
      assert.deepEqual(new Feed(decoderOf(mode)).feed(came, sizes).reset().plain(), expected);
    }
});

test("decoder reports a length frame cut short as one discard, whatever its payload has of STX frames", () => {
  const wire = length("\u0002abc\u0002defgh\u0002ijklmnop");
  for (const mode of ["length", "dual"] as const)
    for (const n of [5, 12, 20]) {
      const feed = new Feed(decoderOf(mode)).feed(wire.subarray(0, n)).reset();
      assert.deepEqual([what(feed), feed.events[0]?.wireBytes], [["reset"], n]);
    }
});

test("decoder.push() takes more than there is room for at once", () => {
  const payload = Buffer.alloc(200_000, "0123456789");
  for (const [mode, wire] of [
    ["stx", stx(payload.toString())],
    ["length", length(payload.toString())],
  ] as const) {
    const decoder = decoderOf(mode, { payloadBytesMax: 200_000 });
    const [frame, ...more] = decoder.push(Buffer.concat([wire, wire.subarray(0, 9)]));
    assert.ok(frame?.kind === "frame");
    assert.ok(Buffer.concat(frame.payload).equals(payload));
    assert.deepEqual([more, decoder.pendingBytes], [[], 9]);
  }
});

test("decoder makes room for no more than can be missing: by the length of a frame, or by the cap of one that has none", () => {
  const bytes = 200_000;
  const header = Buffer.alloc(4);
  header.writeUInt32BE(bytes);
  for (const [mode, start, payloadBytesMax] of [
    ["length", header, 1_000_000],
    ["stx", Buffer.of(2), bytes],
  ] as const) {
    const decoder = decoderOf(mode, { payloadBytesMax });
    // Two chunks of 64 KiB are full then
    decoder.push(Buffer.concat([start, Buffer.alloc(131_072 - start.length, "x")]));
    assert.equal(decoder.space().length, bytes + 6 - 131_072);
  }
});

// --- answers among stray bytes

test("decoder.find() takes an answer behind any number of zeros, of which empty frames have taken some of its header's", () => {
  for (const mode of ["length", "dual"] as const)
    for (let zeros = 0; zeros < 20; zeros++)
      for (const bytes of [2, 40, 300])
        for (const sizes of [[], [1]]) {
          const payload = `{${" ".repeat(bytes - 2)}}`;
          const feed = new Feed(decoderOf(mode, { answers: true }));
          feed.feed(Buffer.concat([Buffer.alloc(zeros), length(payload)]), sizes).find();
          const frames = feed.events.filter((event) => event.kind === "frame" && event.payloadBytes > 0);
          assert.equal(frames.length, 1, `${mode}, ${zeros} zeros, ${bytes} bytes`);
          assert.deepEqual([feed.decoder.phase, feed.decoder.pendingBytes], ["none", 0]);
          feed.plain();
        }
});

test("decoder.find() goes on behind an answer as ever, and leaves what is no answer as it was", () => {
  const feed = new Feed(decoderOf("length", { answers: true }));
  feed.feed(Buffer.concat([Buffer.from("x"), length("{}"), length('{"b":1}'), length("abc").subarray(0, 5)])).find();
  assert.deepEqual(what(feed), ["noise", "length", "length"]);
  assert.deepEqual([feed.decoder.phase, feed.decoder.pendingBytes, feed.decoder.missingBytes], ["body", 5, 4]);
  feed.find().feed(length("abc").subarray(5));
  assert.deepEqual(what(feed).slice(3), ["length"]);
  const broken = Buffer.from(length('{"a":1}'));
  broken[broken.length - 1] = (broken[broken.length - 1] ?? 0) ^ 1;
  for (const bytes of [length("abc"), length("{}").subarray(0, 6), Buffer.concat([broken, length("{}")])]) {
    const none = new Feed(decoderOf("length", { answers: true })).feed(Buffer.concat([Buffer.from("x"), bytes]));
    const { phase, pendingBytes } = none.decoder;
    none.find();
    assert.deepEqual([what(none), none.decoder.phase, none.decoder.pendingBytes], [[], phase, pendingBytes]);
    none.reset();
    assert.deepEqual(what(none), ["noise"]);
  }
});

test("decoder.find() of one that takes requests finds nothing", () => {
  for (const mode of modeNames) {
    const feed = new Feed(decoderOf(mode)).feed(Buffer.concat([Buffer.from("x"), length("{}")])).find();
    assert.deepEqual([what(feed), feed.decoder.pendingBytes], [[], mode === "length" ? 9 : feed.decoder.pendingBytes]);
  }
});

test("dual decoder.find() takes an STX answer whose beginning a stray 00 has made a length of", () => {
  for (const zeros of [1, 2, 3]) {
    const feed = new Feed(decoderOf("dual", { answers: true, payloadBytesMax: 1 << 20 }));
    feed.feed(Buffer.concat([Buffer.alloc(zeros), stx('{"status":"success"}')])).find();
    assert.deepEqual(what(feed), ["noise", "stx"], `${zeros} zeros`);
    assert.equal(feed.decoder.phase, "none");
  }
});

test("decoder says of a broken frame where answers are looked for once sync is back, or at its reset", () => {
  const bad = Buffer.from(stx("{}"));
  bad[bad.length - 2] = 0x7f;
  const feed = new Feed(decoderOf("dual", { answers: true })).feed(bad);
  assert.deepEqual([what(feed), feed.decoder.phase, feed.decoder.pendingBytes], [[], "lost", bad.length]);
  assert.deepEqual(what(feed.feed(stx("{}"))), ["checksum", "stx"]);
  assert.deepEqual(what(feed.feed(bad).reset()).slice(2), ["checksum"]);
  // Without an end they take no memory.
  const babble = new Feed(decoderOf("dual", { answers: true }));
  for (let i = 0; i < 150; i++) babble.feed(bad);
  assert.ok(babble.events.length >= 100, `${babble.events.length}`);
});

test("decoder that hears only what it drops holds no more of it than the largest answer has, and finds that", () => {
  for (const mode of ["length", "dual"] as const) {
    const { decoder } = new Feed(decoderOf(mode, { answers: true }));
    const memories = new Set<ArrayBufferLike>();
    for (let i = 0; i < 300; i++) {
      decoder.push(Buffer.alloc(1000, "n"));
      memories.add(decoder.space().buffer);
    }
    assert.ok(memories.size <= 300_000 / 65_536 + 1, `${memories.size} chunks`);
    assert.equal(decoder.pendingBytes, 300_000);
    decoder.push(length(`{${" ".repeat(298)}}`));
    const [noise, frame] = decoder.find();
    assert.deepEqual(noise, { kind: "discard", reason: "noise", wireBytes: 300_000, head: "6e".repeat(16) });
    assert.deepEqual([frame?.kind, frame?.wireBytes, decoder.pendingBytes], ["frame", 306, 0]);
  }
});
