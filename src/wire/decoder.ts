import type { Crc16 } from "./crc16.ts";
import type { Decoded, Decoder, Discard } from "./decoded.ts";
import { LENGTH_PAYLOAD_BYTES_LIMIT, LengthFramer } from "./length.ts";
import { Memory } from "./memory.ts";
import { Skipped } from "./skipped.ts";
import { StxFramer } from "./stx.ts";

/** The kinds of frames that a line may bring, and their limits. */
export interface DecoderOptions {
  /** STX frames come (fiscal). */
  readonly stx: boolean;
  /** Length frames come (bank, qr). With both, a frame's first byte tells them apart: 02, or 00. */
  readonly length: boolean;
  /** How the peer reads "CRC16-IBM" in length frames. */
  readonly crc16: Crc16;
  /** The largest payload taken, in bytes, below 16 MiB; a larger one is discarded as `oversize`. */
  readonly payloadBytesMax: number;
  /** True if the frames are answers, which `find()` looks for among stray bytes; default false. */
  readonly answers?: boolean;
}

/**
 * Makes the decoder of one line.
 *
 * Lost sync comes back in three ways. By an STX frame with a right CRC, if STX frames may come: they are searched for wherever sync was
 * lost. By `find()`, in a whole answer in a length frame. And by `reset()`, which makes any length frame be looked for again.
 * @throws RangeError for options that no line can have.
 */
export function createDecoder(options: DecoderOptions): Decoder {
  const { payloadBytesMax } = options;
  if (!options.stx && !options.length) {
    throw new RangeError("Cannot make a decoder: neither STX nor length frames are to come; choose at least one");
  }
  if (!Number.isInteger(payloadBytesMax) || payloadBytesMax < 1 || payloadBytesMax > LENGTH_PAYLOAD_BYTES_LIMIT) {
    throw new RangeError(
      `Cannot make a decoder: payloadBytesMax is ${payloadBytesMax}; use 1 to ${LENGTH_PAYLOAD_BYTES_LIMIT} bytes`,
    );
  }
  return new LineDecoder(options);
}

/** Bytes around the payload of any frame, at most. */
const FRAMING_BYTES_MAX = 6;

/** The empty result of most calls; shared, since at one byte a read an array each would be the larger part of the work. */
const NOTHING: readonly Decoded[] = Object.freeze([]);

/**
 * The framer that looks at the window. `between`: a new frame may begin. `length`, `stx`: that framer; stx also when sync is lost and STX
 * frames may come. `skip`: none, all is dropped until `reset`.
 */
type Mode = "between" | "length" | "stx" | "skip";

class LineDecoder implements Decoder {
  private readonly options: DecoderOptions;
  private readonly memory = new Memory();
  private readonly skipped: Skipped;
  private readonly length: LengthFramer;
  private readonly stx: StxFramer;
  private readonly finds: boolean;
  private mode: Mode = "between";
  private found: Decoded[] = [];

  constructor(options: DecoderOptions) {
    this.options = options;
    this.finds = options.length && options.answers === true;
    this.skipped = new Skipped(this.memory, this.finds ? options.payloadBytesMax + FRAMING_BYTES_MAX : 0);
    this.length = new LengthFramer(this.memory, this.skipped, options.crc16, options.payloadBytesMax);
    this.stx = new StxFramer(this.memory, this.skipped, options.payloadBytesMax);
  }

  get pendingBytes(): number {
    return this.skipped.bytes + this.memory.size;
  }

  get phase(): "none" | "start" | "body" | "lost" {
    if (this.mode === "between") return "none";
    if (this.mode === "length") return this.length.inHeader ? "start" : "body";
    if (this.memory.size > 0) return "body";
    // With nothing pending, an STX line can take its next frame; if length frames come too, only reset finds theirs
    return this.skipped.bytes > 0 || this.options.length ? "lost" : "none";
  }

  get missingBytes(): number {
    return this.length.missingBytes;
  }

  space(): Buffer {
    return this.memory.space(this.missingBytesMax());
  }

  advance(n: number): readonly Decoded[] {
    this.memory.advance(n);
    this.decode();
    return this.take();
  }

  push(chunk: Uint8Array): readonly Decoded[] {
    for (let from = 0; from < chunk.length; ) {
      const space = this.space();
      const n = Math.min(space.length, chunk.length - from);
      space.set(chunk.subarray(from, from + n));
      this.memory.advance(n);
      this.decode();
      from += n;
    }
    return this.take();
  }

  reset(): readonly Discard[] {
    const discards: Discard[] = [];
    if (this.mode === "stx") this.stx.settleAll();
    if (this.memory.size > 0) this.skipped.reject(discards, "reset", this.memory.size);
    this.skipped.report(discards);
    this.length.forget();
    this.stx.reset();
    this.mode = "between";
    return discards;
  }

  find(): readonly Decoded[] {
    if (!this.finds || this.pendingBytes === 0) return NOTHING;
    const held = this.skipped.rewind();
    const begin = this.length.findAnswer();
    // A stray 00 before an STX frame may have taken its beginning for a length
    const at = begin ?? (this.options.stx ? this.stx.findAnswer() : undefined);
    if (at === undefined) {
      this.skipped.skipAgain(held);
      return NOTHING;
    }
    this.skipped.reportAsNoise(this.found, Math.max(0, at));
    this.stx.reset();
    if (begin === undefined) this.length.forget();
    else this.length.beginAt(begin);
    this.mode = begin === undefined ? "stx" : "length";
    this.decode();
    return this.take();
  }

  private missingBytesMax(): number {
    return this.mode === "stx" ? this.stx.missingBytesMax : this.missingBytes;
  }

  private take(): readonly Decoded[] {
    if (this.found.length === 0) return NOTHING;
    const { found } = this;
    this.found = [];
    return found;
  }

  /** Looks at the window until it is empty or more bytes are needed. */
  private decode(): void {
    if (this.mode === "stx" && this.stx.waits()) return;
    while (this.memory.size > 0) {
      if (this.mode === "between") {
        const isLength = this.options.length && (!this.options.stx || this.memory.at(0) === 0);
        this.mode = isLength ? "length" : "stx";
      }
      if (this.mode === "length") {
        if (this.memory.size < this.length.lookAtBytes) return;
        const verdict = this.length.scan(this.found);
        if (verdict === "more") return;
        if (verdict === "frame") this.mode = "between";
        else this.lose(verdict);
      } else if (this.mode === "stx") {
        if (!this.stx.scan(this.found)) return;
        this.mode = "between";
        this.length.forget();
      } else {
        this.skipped.skip(this.memory.size);
      }
    }
  }

  /** The bytes of a header that can't be right stay in the window: after a stray 00 there may stand an STX frame. */
  private lose(verdict: "noise" | "oversize" | "checksum"): void {
    if (verdict === "oversize") this.skipped.reason = "oversize";
    this.mode = this.options.stx ? "stx" : "skip";
  }
}
