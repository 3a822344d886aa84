/** Bytes that follow each other, in pieces: a read's, or ones to be written without being joined. */

/** Count of bytes in pieces. */
export function bytesOf(pieces: readonly Buffer[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** Pieces shorter than this are copied together from the seventeenth on: a Buffer takes some 200 bytes beside its own, however short it is. */
const shortBytes = 4_096;
const fewPieces = 16;
const roomBytes = 16_384;
const noRoom: Buffer = Buffer.alloc(0);

/** Gathers pieces as they come, in memory that is in proportion to their bytes. */
export class GatheredPieces {
  readonly #pieces: Buffer[] = [];
  #room = noRoom;
  #used = 0;

  add(piece: Buffer): void {
    if (piece.length >= shortBytes || this.#pieces.length < fewPieces) {
      this.#closeRoom();
      this.#pieces.push(piece);
      return;
    }
    if (piece.length > this.#room.length - this.#used) {
      this.#closeRoom();
      this.#room = Buffer.allocUnsafeSlow(roomBytes);
    }
    this.#used += piece.copy(this.#room, this.#used);
  }

  /** All pieces, in order. */
  get all(): readonly Buffer[] {
    this.#closeRoom();
    return this.#pieces;
  }

  #closeRoom(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#room.subarray(0, this.#used));
    this.#room = this.#room.subarray(this.#used);
    this.#used = 0;
  }
}
