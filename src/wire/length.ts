import { type Crc16, crc16 } from "./crc16.ts";
import type { Decoded } from "./decoded.ts";
import { type Checksum, type Memory, SUM_EVERY_BYTES } from "./memory.ts";
import type { Skipped } from "./skipped.ts";

/**
 * The length frame (bank and qr, Serial): length u32 big-endian | payload | CRC-16 u16 big-endian over length and payload.
 *
 * Nothing in it marks a beginning, so bytes are not searched for one while they come: any four bytes would do as a header, and a wrong
 * guess swallows the next reply. Once a header can't be right, or a checksum is wrong (perhaps because the length was), sync is lost, and
 * only time finds the next header: the owner of the clock resets the decoder when the line has been quiet.
 *
 * Before that, a whole answer is looked for in the bytes that came: the first that begin as each answer does, with a length and "{". If
 * length and checksum are right as well, sync is back.
 */

const HEADER_BYTES = 4;
const TRAILER_BYTES = 2;

/** The first byte of each answer, which is a JSON object; and the bytes that may follow it: a name, its end, or white space. */
const BRACE = 0x7b;
const BEHIND_BRACE: ReadonlySet<number> = new Set(Buffer.from('"} \t\r\n'));

/** The first header byte is 0 in every frame of less than 16 MiB: any other first byte is noise, known at once. */
export const LENGTH_PAYLOAD_BYTES_LIMIT = 2 ** 24 - 1;

/**
 * Frames a payload without copying it: header, the pieces themselves, trailer.
 * @throws RangeError for a payload of 16 MiB or more, which no decoder of ours would take.
 */
export function encodeLength(kind: Crc16, pieces: readonly Buffer[]): Buffer[] {
  const payloadBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (payloadBytes > LENGTH_PAYLOAD_BYTES_LIMIT) {
    throw new RangeError(`Cannot frame ${payloadBytes} bytes: a payload is at most ${LENGTH_PAYLOAD_BYTES_LIMIT} bytes`);
  }
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32BE(payloadBytes);
  let sum = crc16(kind, header, 0, HEADER_BYTES);
  for (const piece of pieces) sum = crc16(kind, piece, 0, piece.length, sum);
  const trailer = Buffer.allocUnsafe(TRAILER_BYTES);
  trailer.writeUInt16BE(sum);
  return [header, ...pieces, trailer];
}

/** Result of `scan`: `more` bytes are needed; a `frame`; or why sync is lost. */
export type LengthVerdict = "more" | "frame" | "noise" | "oversize" | "checksum";

/** Finds the length frame that begins at the window's first byte. */
export class LengthFramer {
  private readonly memory: Memory;
  private readonly skipped: Skipped;
  private readonly sums: Readonly<Record<Crc16, Checksum>>;
  private readonly kind: Crc16;
  private readonly payloadBytesMax: number;
  /** The length in the header; -1 until it came. */
  private payloadBytes = -1;
  /** Bytes of the header in the window. */
  private headerBytes = HEADER_BYTES;
  /** Zeros right before the window that were read as the end of an empty frame, and may be the beginning of the next header. */
  private zeros = 0;
  /** The checksum of the window's first `summedBytes` bytes. */
  private sum = 0;
  private summedBytes = 0;

  constructor(memory: Memory, skipped: Skipped, kind: Crc16, payloadBytesMax: number) {
    this.memory = memory;
    this.skipped = skipped;
    this.kind = kind;
    this.payloadBytesMax = payloadBytesMax;
    this.sums = {
      arc: (bytes, from, to, value) => crc16("arc", bytes, from, to, value),
      umts: (bytes, from, to, value) => crc16("umts", bytes, from, to, value),
    };
  }

  /** True until the length is known. */
  get inHeader(): boolean {
    return this.payloadBytes < 0;
  }

  /** Bytes still to come of a frame whose length is known; 0 otherwise. */
  get missingBytes(): number {
    return this.inHeader ? 0 : this.headerBytes + this.payloadBytes + TRAILER_BYTES - this.memory.size;
  }

  /** The window's size at which there is something to look at; until then bytes only come. */
  lookAtBytes = 1;

  /**
   * Looks at the window: a frame goes to `found`, a frame with a wrong checksum to the skipped bytes; bytes that are neither stay in the
   * window. The window isn't empty.
   */
  scan(found: Decoded[]): LengthVerdict {
    const { memory } = this;
    if (this.payloadBytes < 0) {
      if (memory.at(0) !== 0) return "noise";
      this.lookAtBytes = HEADER_BYTES;
      if (memory.size < HEADER_BYTES) return "more";
      const payloadBytes = memory.uint(0, HEADER_BYTES);
      if (payloadBytes > this.payloadBytesMax) return "oversize";
      this.payloadBytes = payloadBytes;
    }
    const end = this.headerBytes + this.payloadBytes;
    if (memory.size < end + TRAILER_BYTES) {
      const came = Math.min(memory.size, end);
      if (came - this.summedBytes >= SUM_EVERY_BYTES) this.sumTo(came);
      this.lookAtBytes = Math.min(end + TRAILER_BYTES, this.summedBytes + SUM_EVERY_BYTES);
      return "more";
    }
    this.sumTo(end);
    const verdict = memory.uint(end, TRAILER_BYTES) === this.sum ? "frame" : "checksum";
    if (verdict === "frame") this.take(end, found);
    else this.reject(end, found);
    this.reset();
    return verdict;
  }

  /**
   * The window position of the first answer; undefined if there is none, or it isn't whole and right. Below 0 if its first zeros were read
   * as an empty frame, which changes no checksum.
   */
  findAnswer(): number | undefined {
    const { memory, payloadBytesMax, zeros } = this;
    for (let brace = memory.indexOf(BRACE, 1, memory.size); brace > 0; brace = memory.indexOf(BRACE, brace + 1, memory.size)) {
      const begin = brace - HEADER_BYTES;
      if (begin < -zeros || (begin >= 0 && memory.at(begin) !== 0)) continue;
      const from = Math.max(0, begin);
      const end = brace + memory.uint(from, brace - from);
      if (end - brace > payloadBytesMax || brace + 1 >= memory.size || !BEHIND_BRACE.has(memory.at(brace + 1))) continue;
      const isRight =
        end + TRAILER_BYTES <= memory.size &&
        memory.uint(end, TRAILER_BYTES) === memory.sum(this.sums[this.kind], from, end, 0);
      return isRight ? begin : undefined;
    }
    return undefined;
  }

  /** Begins a frame at this position of the window: its first byte, or before it. */
  beginAt(begin: number): void {
    this.reset();
    this.headerBytes = HEADER_BYTES + Math.min(0, begin);
    this.payloadBytes = this.memory.uint(0, this.headerBytes);
  }

  /** Forgets the zeros before the window. */
  forget(): void {
    this.reset();
    this.zeros = 0;
  }

  /** Forgets the frame in progress. */
  reset(): void {
    this.payloadBytes = -1;
    this.headerBytes = HEADER_BYTES;
    this.sum = 0;
    this.summedBytes = 0;
    this.lookAtBytes = 1;
  }

  private sumTo(to: number): void {
    this.sum = this.memory.sum(this.sums[this.kind], this.summedBytes, to, this.sum);
    this.summedBytes = to;
  }

  private take(end: number, found: Decoded[]): void {
    const wireBytes = end + TRAILER_BYTES;
    const payload = this.memory.pieces(this.headerBytes, end);
    found.push({ kind: "frame", framing: "length", payload, payloadBytes: this.payloadBytes, wireBytes });
    this.memory.release(wireBytes);
    this.zeros = this.payloadBytes === 0 ? HEADER_BYTES - 1 : 0;
  }

  /** Rejects a frame. Both readings are given, so that a log shows if only the line's `crc16` setting is wrong. */
  private reject(end: number, found: Decoded[]): void {
    const { memory, sums } = this;
    this.skipped.reject(found, "checksum", end + TRAILER_BYTES, {
      got: hex16(memory.uint(end, TRAILER_BYTES)),
      arc: hex16(memory.sum(sums.arc, 0, end, 0)),
      umts: hex16(memory.sum(sums.umts, 0, end, 0)),
    });
  }
}

function hex16(value: number): string {
  return value.toString(16).padStart(4, "0");
}
