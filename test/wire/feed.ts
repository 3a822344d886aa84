import assert from "node:assert/strict";
import type { Decoded, Decoder } from "../../src/wire/decoded.ts";
import { createDecoder, type DecoderOptions } from "../../src/wire/decoder.ts";

/** The three kinds of line. */
export const modes = {
  length: { length: true, stx: false },
  stx: { length: false, stx: true },
  dual: { length: true, stx: true },
} as const;
export type ModeName = keyof typeof modes;
export const modeNames: readonly ModeName[] = ["length", "stx", "dual"];

export function decoderOf(mode: ModeName, options: Partial<DecoderOptions> = {}): Decoder {
  return createDecoder({ crc16: "arc", payloadBytesMax: 300, ...modes[mode], ...options });
}

/** A result with its payload as one hex text, for comparing. */
function plain(decoded: Decoded): object {
  if (decoded.kind === "discard") return decoded;
  return { ...decoded, payload: Buffer.concat(decoded.payload).toString("hex") };
}

/** Bytes that were written: `length` of them, at `offset` of `memory`, being those from `from` of the stream. */
interface Write {
  readonly memory: ArrayBufferLike;
  readonly offset: number;
  readonly from: number;
  readonly length: number;
}

/**
 * Feeds a decoder through `space` and `advance`, as the line does, and holds it to three laws at every step.
 * Conservation: bytes in = frames + discards + pending. Thrift: each payload piece is the very memory its bytes were read
 * into. And no `space` ever lies over memory that was handed out, nor has such memory changed in the end.
 */
export class Feed {
  readonly decoder: Decoder;
  readonly events: Decoded[] = [];
  private readonly writes: Write[] = [];
  private readonly handedOut: { readonly piece: Buffer; readonly copy: Buffer }[] = [];
  private bytesIn = 0;
  private bytesOut = 0;

  constructor(decoder: Decoder) {
    this.decoder = decoder;
  }

  /** Feeds `bytes` in pieces of the sizes given, over and over; as large as fits when none are given. */
  feed(bytes: Uint8Array, sizes: readonly number[] = []): this {
    for (let from = 0, i = 0; from < bytes.length; i++) {
      const space = this.decoder.space();
      assert.ok(space.length > 0, "space() is never empty");
      this.checkUntouched(space);
      const n = Math.min(sizes[i % sizes.length] ?? bytes.length, space.length, bytes.length - from);
      space.set(bytes.subarray(from, from + n));
      this.writes.push({ memory: space.buffer, offset: space.byteOffset, from: this.bytesIn, length: n });
      this.bytesIn += n;
      this.take(this.decoder.advance(n));
      from += n;
    }
    return this;
  }

  find(): this {
    this.take(this.decoder.find());
    return this;
  }

  reset(): this {
    this.take(this.decoder.reset());
    assert.equal(this.decoder.pendingBytes, 0);
    assert.equal(this.decoder.phase, "none");
    return this;
  }

  /** What came so far, for comparing. */
  plain(): object[] {
    for (const { piece, copy } of this.handedOut) assert.ok(piece.equals(copy), "memory that was handed out has changed");
    return this.events.map(plain);
  }

  private take(found: readonly Decoded[]): void {
    for (const decoded of found) {
      this.events.push(decoded);
      if (decoded.kind === "frame") {
        const framingBytes = decoded.framing === "stx" ? 1 : 4;
        assert.equal(
          decoded.payload.reduce((sum, piece) => sum + piece.length, 0),
          decoded.payloadBytes,
        );
        // Of a header's zeros, some may have been read as an empty frame.
        const readBefore = framingBytes === 4 ? decoded.payloadBytes + 6 - decoded.wireBytes : 0;
        assert.ok(readBefore >= 0 && readBefore < 4);
        this.checkPieces(decoded.payload, this.bytesOut + framingBytes - readBefore);
      }
      this.bytesOut += decoded.wireBytes;
    }
    assert.equal(this.bytesIn, this.bytesOut + this.decoder.pendingBytes, "bytes in = frames + discards + pending");
  }

  private checkPieces(pieces: readonly Buffer[], payloadFrom: number): void {
    let from = payloadFrom;
    for (const piece of pieces) {
      assert.ok(piece.length > 0);
      for (const i of [0, piece.length - 1]) {
        const write = this.writes.findLast((each) => each.from <= from + i);
        assert.ok(write !== undefined);
        assert.equal(piece.buffer, write.memory, "a payload piece is memory that space() handed out");
        assert.equal(piece.byteOffset + i, write.offset + from + i - write.from, "and lies where it was read to");
      }
      this.handedOut.push({ piece, copy: Buffer.from(piece) });
      from += piece.length;
    }
  }

  private checkUntouched(space: Buffer): void {
    for (const { piece } of this.handedOut) {
      if (piece.buffer !== space.buffer) continue;
      const apart = piece.byteOffset + piece.length <= space.byteOffset || space.byteOffset + space.length <= piece.byteOffset;
      assert.ok(apart, "space() lies over memory that was handed out");
    }
  }
}
