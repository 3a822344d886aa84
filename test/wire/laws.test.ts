import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeLength } from "../../src/wire/length.ts";
import { encodeStx } from "../../src/wire/stx.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { decoderOf, Feed, type ModeName, modeNames } from "./feed.ts";

/**
 * Tests src/wire/length.ts, src/wire/stx.ts, src/wire/decoder.ts.
 *
 * Over any traffic, good and bad. Feed itself holds the decoder to conservation and thrift at every step.
 */

const binary = fc.uint8Array({ maxLength: 320, size: "max" }).map((bytes) => Buffer.from(bytes));
/** What an STX frame may carry: anything but 02 and 03. */
const text = binary.map((bytes) => Buffer.from(bytes.map((byte) => (byte === 2 || byte === 3 ? 0x41 : byte))));
const goodLength = binary.map((payload) => Buffer.concat(encodeLength("arc", [payload])));
const goodStx = text.map((payload) => Buffer.concat(encodeStx([payload])));
const good = fc.oneof(goodLength, goodStx);
/** Mostly bytes that mean something to a framer. */
const noise = fc
  .array(fc.oneof(fc.constantFrom(0, 2, 3, 0x20), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 60 })
  .map((bytes) => Buffer.from(bytes));
const flipped = fc.tuple(good, fc.nat(), fc.integer({ min: 1, max: 255 })).map(([frame, at, mask]) => {
  const changed = Buffer.from(frame);
  const i = at % frame.length;
  changed[i] = (frame[i] ?? 0) ^ mask;
  return changed;
});
const cutShort = fc.tuple(good, fc.nat()).map(([frame, at]) => frame.subarray(0, at % frame.length));
const item = fc.oneof({ weight: 4, arbitrary: good }, { weight: 2, arbitrary: noise }, flipped, cutShort);
const step = fc.record({ bytes: item, reset: fc.boolean() });
const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 900 })), { maxLength: 8 });
const mode = fc.constantFrom(...modeNames);

type Step = { readonly bytes: Buffer; readonly reset: boolean };

/** A good frame that fills most of a chunk, so that what follows lies over its end. */
function fill(bytes: number, name: ModeName): Buffer {
  const payload = Buffer.alloc(bytes, "f");
  return Buffer.concat(name === "stx" ? encodeStx([payload]) : encodeLength("arc", [payload]));
}

/** @param answers Whether answers are looked for where the line pauses. */
function run(name: ModeName, steps: readonly Step[], cut: readonly number[], fillBytes = 0, answers = false): object[] {
  const feed = new Feed(decoderOf(name, { payloadBytesMax: fillBytes > 0 ? 66_000 : 300, answers }));
  let waiting = fillBytes > 0 ? fill(fillBytes, name) : Buffer.alloc(0);
  const states: object[] = [];
  for (const { bytes, reset } of steps) {
    waiting = Buffer.concat([waiting, bytes]);
    if (!reset) continue;
    feed.feed(waiting, cut);
    waiting = Buffer.alloc(0);
    const { pendingBytes, phase, missingBytes } = feed.decoder;
    states.push({ pendingBytes, phase, missingBytes });
    if (answers) feed.find();
    feed.reset();
  }
  feed.feed(waiting, cut);
  const { pendingBytes, phase, missingBytes } = feed.decoder;
  feed.reset();
  return [...feed.plain(), ...states, { pendingBytes, phase, missingBytes }];
}

test("decoder gives the same for any cut of the stream (split, conservation, thrift)", () => {
  fc.assert(
    fc.property(mode, fc.array(step, { maxLength: 12 }), sizes, fc.boolean(), (name, steps, cut, answers) => {
      const whole = run(name, steps, [], 0, answers);
      assert.deepEqual(run(name, steps, cut, 0, answers), whole);
      assert.deepEqual(run(name, steps, [1], 0, answers), whole);
    }),
    { numRuns: 600 },
  );
});

test("decoder gives the same for any cut where frames lie over the end of a chunk", () => {
  const steps = fc.array(step, { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(
      ...[mode, steps, sizes, fc.integer({ min: 64_800, max: 65_540 }), fc.boolean()],
      (name, traffic, cut, fillBytes, answers) => {
        const whole = run(name, traffic, [], fillBytes, answers);
        const coarse = cut.map((size) => size * 40 + 1);
        assert.deepEqual(run(name, traffic, coarse, fillBytes, answers), whole);
        assert.deepEqual(run(name, traffic, [65_500, 1, 1, 1, 1, 2, 3, 30], fillBytes, answers), whole);
      },
    ),
    { numRuns: 300 },
  );
});

test("push() gives what space() and advance() give", () => {
  fc.assert(
    fc.property(mode, fc.array(item, { maxLength: 8 }), (name, items) => {
      const stream = Buffer.concat(items);
      const fed = new Feed(decoderOf(name)).feed(stream).reset().events;
      const decoder = decoderOf(name);
      assert.deepEqual([...decoder.push(stream), ...decoder.reset()], fed);
    }),
  );
});

test("decoder takes the next good frame, and nothing else, after any bytes and a reset (recovery)", () => {
  fc.assert(
    fc.property(mode, fc.array(item, { maxLength: 6 }), goodLength, goodStx, sizes, (name, before, length, stx, cut) => {
      const next = { length: [length], stx: [stx], dual: [length, stx] }[name].filter((frame) => frame.length <= 306);
      const feed = new Feed(decoderOf(name)).feed(Buffer.concat(before), cut).reset();
      const heard = feed.events.length;
      for (const frame of next) feed.feed(frame, cut);
      const events = feed.events.slice(heard);
      assertMapped(
        events,
        next.map((frame) => ["frame", frame.length]),
        (event) => [event.kind, event.wireBytes],
      );
      assert.equal(feed.decoder.phase, "none");
      feed.plain();
    }),
    { numRuns: 200 },
  );
});

/** An answer, as JSON objects begin. */
const answer = fc
  .tuple(fc.constantFrom('{"a":', "{}", "{ ", "{\n", '{"'), text)
  .map(([begin, rest]) => Buffer.concat([Buffer.from(begin), rest.subarray(0, 200)]));
/** An STX frame without a payload, whose CRC-32 is 0: zeros between a stray 02 and 03 are one. */
const emptyStx = Buffer.concat(encodeStx([]));
/** Whether an answer begins in it, or could with what follows: a length and a brace. */
const beginsAnswer = (bytes: Buffer) =>
  bytes.some((byte, i) => byte === 0x7b && i >= 1 && bytes.subarray(Math.max(0, i - 4), i).includes(0));

test("decoder takes a whole answer among any bytes that begin no other, once the line is quiet (hidden answers)", () => {
  fc.assert(
    fc.property(
      mode,
      answer,
      noise,
      fc.option(noise),
      sizes,
      fc.integer({ min: 0, max: 8 }),
      (name, payload, before, behind, cut, zeros) => {
        const [framing, encoded] =
          name === "stx" ? (["stx", encodeStx([payload])] as const) : (["length", encodeLength("arc", [payload])] as const);
        const stray = Buffer.concat([before, Buffer.alloc(zeros)]);
        fc.pre(!beginsAnswer(stray) && (name !== "stx" || !stray.includes(2)));
        const all = Buffer.concat([stray, ...encoded, behind ?? Buffer.alloc(0)]);
        fc.pre(name !== "dual" || !all.includes(emptyStx));
        const feed = new Feed(decoderOf(name, { answers: true })).feed(all, cut).find();
        const frames = feed.events.filter((event) => event.kind === "frame" && event.payloadBytes > 0);
        assertMapped(frames, [[framing, payload.toString("hex")]], (frame) => [
          frame.kind === "frame" && frame.framing,
          frame.kind === "frame" && Buffer.concat(frame.payload).toString("hex"),
        ]);
        feed.reset().plain();
      },
    ),
    { numRuns: 2_000, endOnFailure: true },
  );
});

test("decoder finds an STX frame behind any noise without a reset, and then length frames again", () => {
  const lost = fc
    .tuple(fc.integer({ min: 1, max: 255 }), noise)
    .map(([first, rest]) => Buffer.concat([Buffer.of(first), rest]));
  fc.assert(
    fc.property(fc.constantFrom("stx", "dual"), lost, goodStx, goodLength, sizes, (name, before, stx, length, cut) => {
      fc.pre(stx.length <= 306 && length.length <= 306);
      const feed = new Feed(decoderOf(name)).feed(before, cut).feed(stx, cut);
      const last = feed.events.at(-1);
      assert.deepEqual([last?.kind, last?.wireBytes], ["frame", stx.length]);
      assert.equal(feed.decoder.phase, "none");
      if (name === "dual") assert.deepEqual(feed.feed(length, cut).events.at(-1)?.wireBytes, length.length);
    }),
    { numRuns: 200 },
  );
});
