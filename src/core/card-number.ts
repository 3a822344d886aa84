/**
 * A till's ids are its own affair, and some till somewhere will put a card number into one. A log is copied, mailed and kept, so a card
 * number must not be there in full.
 */

/** Few texts have so many digits in a row, and the log asks for each of its keys. */
const longRun = /\d{14}/;

/** A run of digits as long as card numbers are. */
const runs = /(?<!\d)\d{14,19}(?!\d)/g;

/**
 * How card numbers begin, with their length: Visa; Mastercard and Mir; Amex; Diners; JCB; Maestro; Discover, UnionPay and
 * Maestro; national schemes. Times of day (2024…, 17…) and counters from 1 begin like none of them.
 */
const issued =
  /^(?:4\d{15}(?:\d{3})?|5[1-5]\d{14}|2[2-6]\d{14}|27[0-2]\d{13}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35\d{14}|5[06-8]\d{14,17}|6\d{15,18}|(?:8600|9860|9792)\d{12})$/;

/**
 * The text with each card number in it cut to its first six and last four digits, as card rules allow. Only a run with an issuer's
 * beginning, its length and the right check digit is cut, so that an id can still be looked up: one in ten of those numeric ids that look
 * like a card's is cut too.
 */
export function maskCardNumbers(text: string): string {
  if (text.length < 14 || !longRun.test(text)) return text;
  return text.replace(runs, (digits) =>
    issued.test(digits) && hasCheckDigit(digits)
      ? `${digits.slice(0, 6)}${"*".repeat(digits.length - 10)}${digits.slice(-4)}`
      : digits,
  );
}

/** Digits of a card number that may be shown of its beginning: they name the issuer. */
const openDigitsMax = 6;

/**
 * Tells which bytes that became no frame must not be shown: digits after the first six, which may be a card's, whole, in groups or cut off.
 */
export function laterDigitsIn(bytes: Uint8Array): (at: number) => boolean {
  const digits = [...bytes.keys()].filter((at) => isDigit(bytes[at]));
  const later = new Set(digits.slice(openDigitsMax));
  return (at) => later.has(at);
}

const isDigit = (byte = 0) => byte >= 0x30 && byte <= 0x39;

/** The Luhn check: every second digit from the right is doubled, its digits added; the sum ends in 0. */
function hasCheckDigit(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 0x30;
    const added = i % 2 === 0 ? digit : digit * 2;
    sum += added > 9 ? added - 9 : added;
  }
  return sum % 10 === 0;
}
