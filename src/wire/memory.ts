/**
 * The memory of a decoder: chunks that the kernel writes into and payloads are views of.
 *
 * It shows the framers one thing, the window: the bytes that came and aren't decided yet, numbered from 0. The window lies in a chunk, or
 * in several if a frame outgrew the chunk it began in; then the frame's payload is handed out as several pieces. No byte is ever moved.
 * Bytes handed out are never written over; dropped bytes (noise, a frame that failed) were seen by nobody, so their place is used again.
 * Bytes may be passed over as well: they are out of the window, and `rewind` brings the last of them back.
 *
 * Growth: a chunk is 64 KiB. A frame that fills it gets the next chunk only when more bytes are about to come, of just the size still
 * missing, but never larger than what has come of it so far (or 64 KiB). So a header that lies about 8 MiB costs one chunk until the bytes
 * really come, memory stays within twice what came, and a frame of n bytes has about log2(n / 64 Ki) pieces.
 */

/** Bytes of a chunk: some 180 replies of 350 bytes, and as much as Linux keeps in a pipe or tty at once. */
const CHUNK_BYTES = 64 * 1024;

/** Bytes of room below which a new frame starts in a fresh chunk: an ordinary frame is then one piece. */
const ROOM_BYTES_MIN = 4 * 1024;

/** Up to this many bytes a loop beats the native search (x86-64, Node 20: 11 to 13 ns a call). */
const SHORT_BYTES = 10;

/** Up to this many bytes a loop without any calls beats both. */
const FEW_BYTES = 32;

/**
 * A checksum is carried on once this many bytes wait for it: an ordinary frame's is made in one go, and the work that is left
 * when the last byte comes stays below half a microsecond.
 */
export const SUM_EVERY_BYTES = 512;

/** Carries a checksum on over `bytes[from, to)`. */
export type Checksum = (bytes: Uint8Array, from: number, to: number, value: number) => number;

export class Memory {
  /** Bytes in the window. */
  size = 0;

  private chunk: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  /** Position in `chunk` at which the window begins; below 0 if it begins in `older`. New bytes go to `base + size`. */
  private base = 0;
  /** Everything in `chunk` before this was handed out. */
  private floor = 0;
  /** The bytes right before the window that were passed over, and can be brought back. */
  private held = 0;
  /**
   * Held bytes, and the window's part, before `chunk`, and their length: together they stand for the positions from `-olderBytes` to -1 of
   * it.
   */
  private older: Buffer[] = [];
  private olderBytes = 0;
  /** The view that `space` handed out, until bytes came. */
  private view: Buffer | undefined;

  /** The place of the next bytes. `missingBytesMax`: no more than this many can still belong to the window's frame. */
  space(missingBytesMax: number): Buffer {
    if (this.view === undefined) {
      this.grow(missingBytesMax);
      this.view = this.chunk.subarray(this.base + this.size);
    }
    return this.view;
  }

  /** @throws RangeError if `n` bytes can't have been written: bytes were lost or made up, and going on would corrupt. */
  advance(n: number): void {
    const room = this.chunk.length - this.base - this.size;
    if (!Number.isInteger(n) || n < 0 || n > room) {
      throw new RangeError(`Cannot advance by ${n}: there was room for ${room} bytes; pass what was read into space()`);
    }
    this.view = undefined;
    this.size += n;
  }

  /** Makes room after the window, if there is none: no more than `missingBytesMax` bytes can still belong to its frame. */
  private grow(missingBytesMax: number): void {
    const end = this.base + this.size;
    if (this.size + this.held === 0) this.begin();
    else if (end === this.chunk.length) {
      const piece = this.chunk.subarray(Math.max(0, this.base - this.held), end);
      this.older.push(piece);
      this.olderBytes += piece.length;
      this.renew(Math.max(CHUNK_BYTES, Math.min(missingBytesMax, this.size)));
      this.base = -this.size;
    }
  }

  /** Goes back, with nothing pending, to where the dropped bytes began. Done here, since nobody can be writing any more. */
  private begin(): void {
    this.base = this.floor;
    // A chunk made for one large frame isn't kept alive by the small ones that follow
    if (this.chunk.length - this.base >= ROOM_BYTES_MIN && this.chunk.length <= CHUNK_BYTES) return;
    this.renew(CHUNK_BYTES);
    this.base = 0;
  }

  private renew(bytes: number): void {
    this.chunk = Buffer.allocUnsafeSlow(bytes);
    this.floor = 0;
  }

  /** Takes the first `n` bytes out of the window for good: pieces of them were handed out. */
  release(n: number): void {
    this.drop(n);
    this.floor = Math.max(this.floor, this.base);
  }

  /** Takes the first `n` bytes out of the window: nobody has seen them. */
  drop(n: number): void {
    this.pass(n, 0);
  }

  /** Takes the first `n` bytes out of the window: `rewind` brings them back with those passed right before, `heldMax` bytes at most. */
  pass(n: number, heldMax: number): void {
    this.base += n;
    this.size -= n;
    this.held = Math.min(this.held + n, heldMax);
    const kept = this.base - this.held;
    for (let piece = this.older[0]; piece !== undefined && piece.length - this.olderBytes <= kept; piece = this.older[0]) {
      this.older.shift();
      this.olderBytes -= piece.length;
    }
  }

  /** Brings passed-over bytes back into the window, and returns their count. */
  rewind(): number {
    const { held } = this;
    this.base -= held;
    this.size += held;
    this.held = 0;
    return held;
  }

  /** The byte at window position `i`. */
  at(i: number): number {
    const index = this.base + i;
    // `as number`: callers stay within the window, and this is read for every byte that comes alone
    return index >= 0 ? (this.chunk[index] as number) : this.olderAt(index);
  }

  private olderAt(index: number): number {
    let i = index + this.olderBytes;
    for (const piece of this.older) {
      if (i < piece.length) return piece[i] ?? 0;
      i -= piece.length;
    }
    return 0;
  }

  /** The unsigned number that `bytes` bytes at window position `from` make, most significant first. */
  uint(from: number, bytes: number): number {
    let value = 0;
    for (let i = from; i < from + bytes; i++) value = value * 256 + this.at(i);
    return value;
  }

  /** The first window position in [from, to) that holds `byte`, or -1. */
  indexOf(byte: number, from: number, to: number): number {
    const start = this.base + from;
    const end = this.base + to;
    for (let index = start; index < end && index < 0; index++) if (this.olderAt(index) === byte) return index - this.base;
    const found = this.indexInChunk(byte, Math.max(0, start), end);
    return found < 0 ? -1 : found - this.base;
  }

  /** True if [from, to) holds `byte`; made for the few bytes of one read. */
  has(byte: number, from: number, to: number): boolean {
    if (this.base < 0 || to - from > FEW_BYTES) return this.indexOf(byte, from, to) >= 0;
    const { chunk } = this;
    const end = this.base + to;
    for (let index = this.base + from; index < end; index++) if (chunk[index] === byte) return true;
    return false;
  }

  private indexInChunk(byte: number, from: number, to: number): number {
    const { chunk } = this;
    if (to - from <= SHORT_BYTES) {
      for (let i = from; i < to; i++) if (chunk[i] === byte) return i;
      return -1;
    }
    // The place after the last byte is nobody's: with the byte in it the native search, which has no end of its own, stops
    const end = this.base + this.size;
    if (end < chunk.length) chunk[end] = byte;
    const found = chunk.indexOf(byte, from);
    return found < to ? found : -1;
  }

  /** Carries `checksum` on from `value` over [from, to). */
  sum(checksum: Checksum, from: number, to: number, value: number): number {
    const start = this.base + from;
    if (start >= 0) return checksum(this.chunk, start, this.base + to, value);
    return this.pieces(from, to).reduce((sum, piece) => checksum(piece, 0, piece.length, sum), value);
  }

  /** [from, to) as views, in order; none when it is empty. */
  pieces(from: number, to: number): Buffer[] {
    const start = this.base + from;
    const end = this.base + to;
    if (start >= end) return [];
    if (start >= 0) return [this.chunk.subarray(start, end)];
    const pieces: Buffer[] = [];
    let index = -this.olderBytes;
    for (const piece of this.older) {
      const next = index + piece.length;
      const [first, past] = [Math.max(0, start - index), Math.min(piece.length, end - index)];
      if (first < past) pieces.push(piece.subarray(first, past));
      index = next;
    }
    if (end > 0) pieces.push(this.chunk.subarray(0, end));
    return pieces;
  }

  /** The first bytes of [from, to), at most `bytes`, as hex. */
  hex(from: number, to: number, bytes = 16): string {
    return Buffer.concat(this.pieces(from, Math.min(to, from + bytes))).toString("hex");
  }
}
