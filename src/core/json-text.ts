/** JSON as bytes, for code that must look into a text before it is parsed, or in place of that. */

export const quote = 0x22;
export const backslash = 0x5c;

/** True if a byte is white space between values (RFC 8259, 2). */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/**
 * The end of a string: the offset of its closing quote, or of the end of the text if it has none.
 * @param from The offset after its opening quote.
 */
export function stringEnd(text: Buffer, from: number): number {
  let at = from;
  while (at < text.length && text[at] !== quote) at += text[at] === backslash ? 2 : 1;
  return Math.min(at, text.length);
}
