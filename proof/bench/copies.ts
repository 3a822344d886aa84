import type { Decoded, Decoder, Framing } from "../../src/wire/decoded.ts";
import { decoderOf, frameOf } from "./frames.ts";

/**
 * Counts the payload bytes that a decoder copied: those that don't lie where they were first written.
 *
 * Every byte of the stream is noted with the place in memory that `space()` gave for it. A payload byte that is handed out
 * from another place was copied or moved there.
 */

/** Where a run of the stream's bytes was written. */
interface Written {
  readonly memory: ArrayBufferLike;
  readonly offset: number;
  readonly from: number;
  readonly bytes: number;
}

/** How many bytes of this piece, which begins at stream position `from`, lie elsewhere than where they came in. */
function copiedOf(piece: Buffer, from: number, written: readonly Written[]): number {
  let inPlace = 0;
  for (const run of written) {
    const first = Math.max(from, run.from);
    const last = Math.min(from + piece.length, run.from + run.bytes);
    const same = piece.buffer === run.memory && piece.byteOffset - from === run.offset - run.from;
    if (same && last > first) inPlace += last - first;
  }
  return piece.length - inPlace;
}

/** Writes the stream in pieces of these sizes, one after the other and over again. */
function write(decoder: Decoder, stream: Buffer, sizes: readonly number[]): [Written[], Decoded[]] {
  const written: Written[] = [];
  const decoded: Decoded[] = [];
  for (let from = 0, turn = 0; from < stream.length; turn++) {
    const space = decoder.space();
    const bytes = Math.min(space.length, sizes[turn % sizes.length] ?? 1, stream.length - from);
    stream.copy(space, 0, from, from + bytes);
    written.push({ memory: space.buffer, offset: space.byteOffset, from, bytes });
    decoded.push(...decoder.advance(bytes));
    from += bytes;
  }
  return [written, decoded];
}

/** Over small frames and frames that outgrow any buffer, cut in many ways. */
export function copiedPayloadBytes(framing: Framing): number {
  const payloads = [2, 350, 5000, 350, 70_000, 350, 300_000, 350].map((bytes) => Buffer.alloc(bytes, "0123456789abcdef"));
  const frames = payloads.map((payload) => frameOf(framing, payload));
  let copied = 0;
  for (const sizes of [[1], [16], [64], [4096], [65_536], [7, 1, 4093, 350]]) {
    const [written, decoded] = write(decoderOf(framing), Buffer.concat(frames), sizes);
    let at = 0;
    for (const [i, frame] of frames.entries()) {
      const one = decoded[i];
      if (one?.kind !== "frame") throw new Error(`Cannot count copies: frame ${i} in pieces of ${sizes} was not decoded`);
      let from = at + (framing === "length" ? 4 : 1);
      for (const piece of one.payload) {
        copied += copiedOf(piece, from, written);
        from += piece.length;
      }
      at += frame.length;
    }
  }
  return copied;
}
