/**
 * Bytes of one line that are kept. journald splits lines at 48 kB and posline writes none that long, so a longer one is no line of a log (a
 * binary file), and the rest of it is only counted.
 */
export const lineKeptBytesMax = 64 * 1024;

/** A sector of zeros. A power cut leaves them in a file in place of the bytes written last, often many, and later bytes follow. */
const hole = Buffer.alloc(512);

/** A line, without its line end. */
export interface RawLine {
  readonly bytes: Buffer;
  /** Count of its bytes that were left out. */
  readonly omittedBytes: number;
}

/**
 * Turns bytes as they come into lines, in bounded memory whatever comes. Zeros that a line begins with are no part of it, and a hole ends
 * it.
 */
export class LineSplitter {
  #pieces: Buffer[] = [];
  #keptBytes = 0;
  #omittedBytes = 0;

  /** Takes the next bytes, which aren't kept beyond the call except for a part of a line. */
  push(chunk: Buffer, each: (line: RawLine) => void): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#take(chunk.subarray(start, end), each);
      this.end(each, true);
      start = end + 1;
    }
    // A copy, since the reader may write the next bytes over these.
    if (start < chunk.length) this.#take(Buffer.from(chunk.subarray(start)), each);
  }

  /** Ends the pending line: its source ended, or began anew. */
  end(each: (line: RawLine) => void, empty = false): void {
    if (!empty && this.#keptBytes === 0) return;
    const [only] = this.#pieces;
    const bytes = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces);
    const omittedBytes = this.#omittedBytes;
    this.#pieces = [];
    this.#keptBytes = 0;
    this.#omittedBytes = 0;
    each({ bytes, omittedBytes });
  }

  #take(bytes: Buffer, each: (line: RawLine) => void): void {
    for (let from = 0; ; ) {
      if (this.#keptBytes === 0) while (bytes[from] === 0) from++;
      const to = bytes.indexOf(hole, from);
      this.#keep(bytes.subarray(from, to === -1 ? bytes.length : to));
      if (to === -1) return;
      this.end(each);
      from = to + hole.length;
    }
  }

  #keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, lineKeptBytesMax - this.#keptBytes);
    this.#omittedBytes += bytes.length - kept.length;
    if (kept.length === 0) return;
    this.#pieces.push(kept);
    this.#keptBytes += kept.length;
  }
}
