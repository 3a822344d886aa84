/**
 * The memory of a recording: segments of fixed size, of which the oldest is written over. A record lies whole in one segment, and is
 * written field by field; one that doesn't fit is taken back.
 */

/** Eight segments of 32 KiB: an eighth of what is kept goes at once. A few hundred exchanges, hours of a till's day, fit in. */
const usualSize = { segmentBytes: 32 * 1024, segmentsMax: 8 } as const;

export interface RingSize {
  readonly segmentBytes: number;
  readonly segmentsMax: number;
}

interface Segment {
  readonly bytes: Buffer;
  readonly view: DataView;
  /** Bytes of whole records. */
  used: number;
}

function newSegment(size: number): Segment {
  const bytes = Buffer.alloc(size);
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), used: 0 };
}

/**
 * Where records are written. Its memory comes by the segment, as it is needed, and stays. The room for a record's numbers is looked for
 * once, when it begins, and that for its texts and bytes as they come: a check for each number would cost more than the number.
 */
export class RecordRing {
  readonly #segmentBytes: number;
  readonly #segmentsMax: number;
  /** The oldest first. */
  readonly #segments: Segment[];
  #current: Segment;
  /** Of the current one, since it is written to all the time. */
  #view: DataView;
  #at = 0;
  /** What is left for the texts and bytes of a record; below 0 when it doesn't fit. */
  #roomBytes = 0;

  constructor({ segmentBytes, segmentsMax }: RingSize = usualSize) {
    this.#segmentBytes = segmentBytes;
    this.#segmentsMax = segmentsMax;
    this.#current = newSegment(segmentBytes);
    this.#view = this.#current.view;
    this.#segments = [this.#current];
  }

  /**
   * Begins a record in the segment that is being filled.
   * @param numberBytes What its numbers take at most, lengths of texts and bytes included.
   * @returns false when they don't fit; then nothing may be written.
   */
  begin(numberBytes: number): boolean {
    this.#at = this.#current.used;
    this.#roomBytes = this.#segmentBytes - this.#at - numberBytes;
    return this.#roomBytes >= 0;
  }

  /** Ends a record; false when it didn't fit, and nothing of it is kept. */
  end(): boolean {
    if (this.#roomBytes < 0) return false;
    this.#current.used = this.#at;
    return true;
  }

  /** Goes on in another segment; the oldest records may be lost by that. */
  turn(): void {
    const oldest = this.#segments.length < this.#segmentsMax ? undefined : this.#segments.shift();
    this.#current = oldest ?? newSegment(this.#segmentBytes);
    this.#view = this.#current.view;
    this.#current.used = 0;
    this.#segments.push(this.#current);
  }

  /** Whether the segment that is being filled has no record yet. */
  get isFresh(): boolean {
    return this.#current.used === 0;
  }

  /** What is kept, the oldest first. */
  *records(): Generator<RecordReader> {
    for (const { bytes, used } of [...this.#segments]) {
      const reader = new RecordReader(bytes.subarray(0, used));
      while (!reader.isAtEnd) yield reader;
    }
  }

  #hasRoom(bytes: number): boolean {
    this.#roomBytes -= bytes;
    return this.#roomBytes >= 0;
  }

  u8(value: number): void {
    this.#view.setUint8(this.#at, value);
    this.#at += 1;
  }

  u16(value: number): void {
    this.#view.setUint16(this.#at, value);
    this.#at += 2;
  }

  u32(value: number): void {
    this.#view.setUint32(this.#at, value);
    this.#at += 4;
  }

  f64(value: number): void {
    this.#view.setFloat64(this.#at, value);
    this.#at += 8;
  }

  /** At most 255 characters of ASCII: one by one, which is quicker for a short text than a call into Node. */
  ascii(text: string): void {
    const length = Math.min(text.length, 255);
    const view = this.#view;
    let at = this.#at;
    view.setUint8(at++, length);
    if (this.#hasRoom(length)) for (let i = 0; i < length; i++) view.setUint8(at++, text.charCodeAt(i));
    this.#at = at;
  }

  /** A text of any length and alphabet, for what is rare. */
  text(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.u32(bytes);
    if (this.#hasRoom(bytes)) this.#at += this.#current.bytes.write(text, this.#at);
  }

  /** Pieces that follow each other, of at most 65,535 bytes. */
  pieces(pieces: readonly Buffer[], bytes: number): void {
    this.u16(bytes);
    if (!this.#hasRoom(bytes)) return;
    for (const piece of pieces) {
      this.#current.bytes.set(piece, this.#at);
      this.#at += piece.length;
    }
  }
}

/** Reads what a `RecordRing` wrote, field by field. */
export class RecordReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  u16(): number {
    this.#at += 2;
    return this.#bytes.readUInt16BE(this.#at - 2);
  }

  u32(): number {
    this.#at += 4;
    return this.#bytes.readUInt32BE(this.#at - 4);
  }

  f64(): number {
    this.#at += 8;
    return this.#bytes.readDoubleBE(this.#at - 8);
  }

  ascii(): string {
    const length = this.u8();
    this.#at += length;
    return this.#bytes.toString("latin1", this.#at - length, this.#at);
  }

  text(): string {
    const length = this.u32();
    this.#at += length;
    return this.#bytes.toString("utf8", this.#at - length, this.#at);
  }

  bytes(): Buffer {
    const length = this.u16();
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
