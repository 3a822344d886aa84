import assert from "node:assert/strict";
import { crc16 } from "../../../src/wire/crc16.ts";
import { crc32 } from "../../../src/wire/crc32.ts";
import type { Decoded, Decoder } from "../../../src/wire/decoded.ts";
import { frameOf } from "../../../src/wire/framing.ts";
import { decoderOf, type ModeName } from "../../../test/wire/feed.ts";
import { frames } from "./corpus.ts";
import { mutated } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/**
 * The decoders. A stream of frames, good and spoiled, with right checksums where a wrong one would be found first, is fed whole, byte
 * by byte and in pieces by chance: all three must give the same items, of exactly the bytes that came.
 */

const payloadBytesMax = 300;

/** Text of a payload: what an STX frame may hold. */
function payloadOf(random: Random): Buffer {
  const bytes = random.bytes(random.chance(0.02) ? random.below(2 * payloadBytesMax) : random.size(24));
  if (random.chance(0.1)) return bytes;
  for (let i = 0; i < bytes.length; i++) bytes[i] = 0x20 + ((bytes[i] ?? 0) % 0x5f);
  return bytes;
}

/** A length frame whose header says what it likes, and whose checksum is right all the same. */
function lyingFrame(random: Random, payload: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt32BE(
    random.pick([payload.length, payload.length + 1, payload.length - 1, 0, payloadBytesMax + 1, 2 ** 24, 2 ** 31]) >>> 0,
  );
  const summed = Buffer.concat([header, payload]);
  const trailer = Buffer.alloc(2);
  trailer.writeUInt16BE(crc16(random.chance(0.8) ? "arc" : "umts", summed, 0, summed.length));
  return Buffer.concat([summed, trailer]);
}

/** @param spoiled How often it isn't just a good frame, of 1: a length line that lost its sync finds no frame until the reset. */
function segment(random: Random, mode: ModeName, spoiled: number): Buffer {
  const framing = mode === "dual" ? random.pick(["length", "stx"] as const) : mode;
  const payload = payloadOf(random);
  const good = Buffer.concat(frameOf(framing, [payload], "arc"));
  if (!random.chance(spoiled)) return good;
  switch (random.below(5)) {
    case 0:
      return mutated(random, good, frames);
    case 1:
      return lyingFrame(random, payload);
    case 2:
      return good.subarray(0, random.below(good.length));
    case 3:
      return random.pick(frames);
    default:
      return random.chance(0.5) ? random.bytes(random.size(40)) : Buffer.concat([good, good]);
  }
}

/** What came of it, so that two of them compare; the payload's checksum is taken again at the end. */
type Fed = { readonly items: readonly Decoded[]; readonly sums: readonly number[] };

function sumOf(item: Decoded): number {
  return item.kind === "discard" ? 0 : item.payload.reduce((sum, piece) => crc32(piece, 0, piece.length, sum), 0);
}

function fed(decoder: Decoder, pieces: readonly Buffer[]): Fed {
  const items: Decoded[] = [];
  const sums: number[] = [];
  let bytesIn = 0;
  let bytesOut = 0;
  const take = (found: readonly Decoded[]) => {
    for (const item of found) {
      items.push(item);
      sums.push(sumOf(item));
      bytesOut += item.wireBytes;
    }
    if (bytesIn !== bytesOut + decoder.pendingBytes) assert.fail("bytes in = frames + discards + pending");
  };
  for (const piece of pieces) {
    bytesIn += piece.length;
    take(decoder.push(piece));
  }
  take(decoder.reset());
  for (const [index, item] of items.entries()) assert.equal(sumOf(item), sums[index], "memory that was handed out has changed");
  return { items, sums };
}

function assertSame(one: Fed, other: Fed, how: string): void {
  assert.equal(other.items.length, one.items.length, `${how}: as many items`);
  for (const [index, item] of one.items.entries()) {
    const that = other.items[index];
    if (item.kind === "discard") assert.deepEqual(that, item, `${how}: discard ${index}`);
    else {
      const { kind, framing, payloadBytes, wireBytes } = item;
      assert.ok(
        that?.kind === kind && that.framing === framing && that.payloadBytes === payloadBytes && that.wireBytes === wireBytes,
        `${how}: frame ${index} is another`,
      );
      assert.equal(other.sums[index], one.sums[index], `${how}: payload of frame ${index}`);
    }
  }
}

/** A frame that must come through whatever came before it, once the decoder was reset. */
const honest = {
  length: Buffer.from("00000000000000", "hex").subarray(0, 6),
  stx: Buffer.concat(frameOf("stx", [Buffer.from("ok")], "arc")),
};

/** One for each way of feeding. They stay for many inputs, as a line's does; after a wrong one they are made anew. */
function decodersOf(mode: ModeName): Record<"whole" | "bytes" | "pieces", Decoder> {
  const one = () => decoderOf(mode, { payloadBytesMax });
  return { whole: one(), bytes: one(), pieces: one() };
}

function decoder(mode: ModeName): Target {
  let decoders: ReturnType<typeof decodersOf> | undefined;
  return {
    name: `decoder ${mode}`,
    unit: "frames",
    make: (random) => {
      const spoiled = random.pick([0, 0.02, 0.1, 0.4]);
      return Buffer.concat(Array.from({ length: 1 + random.below(60) }, () => segment(random, mode, spoiled)));
    },
    check: (input, random) => {
      const { whole, bytes, pieces } = decoders ?? decodersOf(mode);
      decoders = undefined;
      const one = fed(whole, [input]);
      assertSame(one, fed(bytes, random.pieces(input, 1)), "byte by byte");
      assertSame(one, fed(pieces, random.pieces(input)), "in pieces");
      const [last, ...more] = fed(whole, [mode === "stx" ? honest.stx : honest.length]).items;
      assert.ok(last?.kind === "frame" && more.length === 0, "an honest frame comes through after a reset");
      decoders = { whole, bytes, pieces };
      return one.items.reduce((count, { kind }) => count + (kind === "frame" ? 1 : 0), 0);
    },
  };
}

/** Streams of good frames alone: every payload comes out as it went in. */
const exact: Target = {
  name: "framing there and back",
  unit: "frames",
  make: (random) => random.bytes(1 + random.size(4_000)),
  check: (input, random) => {
    const crc = random.pick(["arc", "umts"] as const);
    const payloads = random.pieces(input, 600).map((piece) => Buffer.from(piece.map((byte) => 0x20 + (byte % 0x5f))));
    const framings = payloads.map(() => random.pick(["length", "stx"] as const));
    const wire = payloads.flatMap((payload, index) => frameOf(framings[index] ?? "stx", random.pieces(payload, 200), crc));
    const back = fed(decoderOf("dual", { crc16: crc, payloadBytesMax: 600 }), random.pieces(Buffer.concat(wire), 300));
    const came = back.items.map((item) => (item.kind === "frame" ? Buffer.concat(item.payload) : item.reason));
    assert.deepEqual(came, payloads);
    return came.length;
  },
};

export const wireTargets: readonly Target[] = [decoder("length"), decoder("stx"), decoder("dual"), exact];
