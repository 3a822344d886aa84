import { crc32 } from "./crc32.ts";
import type { Decoded } from "./decoded.ts";
import { type Memory, SUM_EVERY_BYTES } from "./memory.ts";
import type { Skipped } from "./skipped.ts";

/**
 * The STX frame (fiscal, Serial): 02 | payload | CRC-32 u32 big-endian over the payload | 03, each CRC byte 03 sent as 20.
 *
 * The payload is text and holds neither 02 nor 03; a CRC byte may be 02 but never 03. So ETX always ends a frame, and its true start is the
 * last STX at or before ETX-5: a later one could only be a CRC byte. That makes sync findable in any stream. An STX therefore supersedes an
 * earlier one only once 5 bytes from it came without an ETX; the bytes before it are noise then, as are bytes up to an ETX that no STX goes
 * with. Every decision hangs on positions alone, never on how the bytes were cut.
 */

const STX = 0x02;
const ETX = 0x03;
const CRC_BYTES = 4;
/** STX, CRC and ETX. */
const FRAMING_BYTES = 6;

/** The CRC as it stands on the wire, as one number. A CRC byte is replaced because ETX would end the frame early. */
function wireCrc(crc: number): number {
  let wire = 0;
  for (let shift = 24; shift >= 0; shift -= 8) {
    const byte = (crc >>> shift) & 0xff;
    wire = wire * 256 + (byte === ETX ? 0x20 : byte);
  }
  return wire;
}

/**
 * Frames a payload without copying it: STX, the pieces themselves, CRC and ETX. The payload must be text without 02 and 03;
 * that isn't checked here, for it is the envelope's promise: a form field escapes every control character, JSON likewise.
 */
export function encodeStx(pieces: readonly Buffer[]): Buffer[] {
  let crc = 0;
  for (const piece of pieces) crc = crc32(piece, 0, piece.length, crc);
  const ends = Buffer.allocUnsafe(FRAMING_BYTES);
  ends[0] = STX;
  ends.writeUInt32BE(wireCrc(crc), 1);
  ends[FRAMING_BYTES - 1] = ETX;
  return [ends.subarray(0, 1), ...pieces, ends.subarray(1)];
}

/** The first byte of each answer, which is a JSON object. */
const BRACE = 0x7b;

/** Finds STX frames anywhere. Between scans the window is empty or begins with an STX; all else has been skipped. */
export class StxFramer {
  private readonly memory: Memory;
  private readonly skipped: Skipped;
  private readonly payloadBytesMax: number;
  /** No ETX in the window before this; above 1 only when the window begins with an STX. */
  private searched = 1;
  /** No later STX in the window before this; the bytes from 1 to here are payload and in the checksum. */
  private settled = 1;
  private crc = 0;
  /**
   * The common case, cheaply: a window smaller than this, and nothing but payload that came, is looked at no further. 0 unless
   * the window begins with an STX and was scanned.
   */
  private lookAtBytes = 0;

  constructor(memory: Memory, skipped: Skipped, payloadBytesMax: number) {
    this.memory = memory;
    this.skipped = skipped;
    this.payloadBytesMax = payloadBytesMax;
  }

  /** Bytes that can still belong to the frame in progress, at most. */
  get missingBytesMax(): number {
    return this.payloadBytesMax + FRAMING_BYTES - this.memory.size;
  }

  /** True if the bytes that came can't end a frame: they are only searched for an ETX. */
  waits(): boolean {
    const { memory, searched } = this;
    const { size } = memory;
    if (size >= this.lookAtBytes) return false;
    if (size - searched === 1 ? memory.at(searched) === ETX : memory.has(ETX, searched, size)) return false;
    this.searched = size;
    return true;
  }

  /** Looks at the bytes that came; true once a frame is in `found`, with the bytes skipped before it. */
  scan(found: Decoded[]): boolean {
    const { memory } = this;
    const wireBytesMax = this.payloadBytesMax + FRAMING_BYTES;
    while (this.searched > 1 || this.align()) {
      const limit = Math.min(memory.size, wireBytesMax);
      const etx = memory.indexOf(ETX, this.searched, limit);
      const waiting = etx < 0 && limit < wireBytesMax;
      // The last 4 bytes before `limit` may yet be CRC: nothing is decided about them
      const end = (etx < 0 ? limit : etx) - CRC_BYTES;
      if (waiting && end - this.settled < SUM_EVERY_BYTES) return this.wait(limit);
      if (end > this.settled && this.settle(end)) continue;
      if (waiting) return this.wait(limit);
      if (etx < 0) this.reject(found, "oversize", limit - CRC_BYTES);
      else if (etx < FRAMING_BYTES - 1) this.skip(etx + 1);
      else if (memory.uint(end, CRC_BYTES) !== wireCrc(this.crc)) this.reject(found, "checksum", etx + 1);
      else {
        this.take(etx, found);
        return true;
      }
    }
    return false;
  }

  /** Decides about all bytes that can be decided about, as is put off while they come: before the window is reported. */
  settleAll(): void {
    const { memory } = this;
    while (memory.size - CRC_BYTES > this.settled) this.settle(memory.size - CRC_BYTES);
  }

  /** The window position of the first answer; undefined if there is none, or it isn't whole and right. */
  findAnswer(): number | undefined {
    const { memory } = this;
    for (let stx = memory.indexOf(STX, 0, memory.size); stx >= 0; stx = memory.indexOf(STX, stx + 1, memory.size)) {
      if (stx + 1 === memory.size || memory.at(stx + 1) !== BRACE) continue;
      const etx = memory.indexOf(ETX, stx + FRAMING_BYTES - 1, memory.size);
      const end = etx - CRC_BYTES;
      const isRight = etx > 0 && memory.uint(end, CRC_BYTES) === wireCrc(memory.sum(crc32, stx + 1, end, 0));
      return isRight ? stx : undefined;
    }
    return undefined;
  }

  /** Forgets the frame in progress. */
  reset(): void {
    this.searched = 1;
    this.settled = 1;
    this.crc = 0;
    this.lookAtBytes = 0;
  }

  /** No ETX came before `limit`. */
  private wait(limit: number): false {
    this.searched = limit;
    this.lookAtBytes = Math.min(this.settled + SUM_EVERY_BYTES, this.payloadBytesMax + 1);
    return false;
  }

  /** Skips to the first STX; false when there is none. */
  private align(): boolean {
    const { memory } = this;
    if (memory.size === 0) return false;
    if (memory.at(0) === STX) return true;
    const stx = memory.indexOf(STX, 1, memory.size);
    this.skipped.skip(stx < 0 ? memory.size : stx);
    return stx >= 0;
  }

  /** Decides about the bytes before `end`, which can't be CRC; true if an STX among them superseded the first one: then look again. */
  private settle(end: number): boolean {
    const { memory } = this;
    const stx = memory.indexOf(STX, this.settled, end);
    if (stx > 0) {
      this.skip(stx);
      this.searched = end - stx;
      return true;
    }
    this.crc = memory.sum(crc32, this.settled, end, this.crc);
    this.settled = end;
    return false;
  }

  private skip(n: number): void {
    this.skipped.skip(n);
    this.reset();
  }

  private take(etx: number, found: Decoded[]): void {
    const { memory } = this;
    const end = etx - CRC_BYTES;
    this.skipped.report(found);
    const payload = memory.pieces(1, end);
    found.push({ kind: "frame", framing: "stx", payload, payloadBytes: end - 1, wireBytes: etx + 1 });
    memory.release(etx + 1);
    this.reset();
  }

  /** Discards the window's first `n` bytes. The CRCs are given as they stand on the wire, 03 as 20, so that they compare. */
  private reject(found: Decoded[], reason: "checksum" | "oversize", n: number): void {
    const { memory } = this;
    const end = n - 1 - CRC_BYTES;
    const checksum = reason === "checksum" ? { got: memory.hex(end, n - 1), crc32: hex32(wireCrc(this.crc)) } : undefined;
    this.skipped.reject(found, reason, n, checksum);
    this.reset();
  }
}

function hex32(value: number): string {
  return value.toString(16).padStart(8, "0");
}
