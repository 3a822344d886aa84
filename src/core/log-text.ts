import { laterDigitsIn, maskCardNumbers } from "./card-number.ts";
import { printableJson } from "./shell-text.ts";

/**
 * The bounds of texts in the log. Some texts are a till's or an upstream's own, and may be as long as a request's body. journald takes
 * lines of up to 48 kB and splits longer ones, whose parts are not JSON any more; so each text has a bound of its own, and all of a line's
 * together stay under that one, even if each character of them takes the six bytes of an escape.
 */

/** Bytes of a line that journald takes in one piece (LineMax, its default). */
export const lineBytesMax = 48 * 1024;

/** Characters of a name, an id or a path: a pay_id is a till's own affair, but nothing that is meant to be read is longer. */
const nameCharsMax = 256;

/** Characters of a sentence, such as a fault's message. */
const sentenceCharsMax = 2_048;

/** A name, an id or a path. */
export function logged(text: string): string {
  return cut(maskCardNumbers(text), nameCharsMax);
}

/** A name, an id or a path that somebody sent, quoted within a sentence: its control characters are escaped. */
export function quotedName(text: string): string {
  return printableJson(JSON.stringify(logged(text)));
}

/** A sentence. */
export function loggedSentence(text: string): string {
  return cut(maskCardNumbers(text), sentenceCharsMax);
}

/** The first bytes of a discard, as hex. A card number of 16 digits fits in, so of all digits the first six stay. */
export function loggedHead(hex: string): string {
  const bytes = Buffer.from(hex, "hex");
  const isHidden = laterDigitsIn(bytes);
  return Buffer.from(bytes.map((byte, at) => (isHidden(at) ? 0x2a : byte))).toString("hex");
}

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
}
