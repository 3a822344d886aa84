/** Bytes that follow each other, in pieces: what a read brought, or what is to be written without being joined. */

/** Bytes in pieces. */
export function bytesOf(pieces: readonly Buffer[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}
