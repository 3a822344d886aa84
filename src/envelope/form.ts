import { isSpace } from "../core/json-text.ts";

/**
 * The fiscal form: `name=value` pairs joined by `&` (fiscal.md, Endpoints).
 *
 * Integrators escape it in two ways: some percent-encode `+ / =` of the Base64, some send them as they are. So a pair is split on its first
 * `=`, and `+` is never read as a space: a standard urlencoded reader would break both the Base64 and the sign.
 */

/** A form's three fields as they were written, still escaped: views of the text they were read from. */
export interface Form {
  readonly command: Buffer | undefined;
  readonly data: Buffer | undefined;
  readonly sign: Buffer | undefined;
  /** The first of the three fields that is given twice. */
  readonly repeated: "command" | "data" | "sign" | undefined;
}

/** The same while they are read. */
export type FormFields = { -readonly [Name in "command" | "data" | "sign"]: Form[Name] };

const ampersand = 0x26;
const equals = 0x3d;

/** Reads the fields of a form, in one pass; other fields are left out, line ends around it are ignored. */
export function parseForm(text: Buffer): Form {
  const fields: FormFields = { command: undefined, data: undefined, sign: undefined };
  let repeated: Form["repeated"];
  const { start, end } = trimmed(text);
  // The next `=` is found once and kept until it is passed: looking for it anew in each of many pairs without one would take quadratic
  // time.
  let split = nextOf(text, equals, start, end);
  for (let from = start; from < end; ) {
    const to = nextOf(text, ampersand, from, end);
    if (split < from) split = nextOf(text, equals, from, end);
    const name = fieldName(text, from, Math.min(split, to));
    if (name !== undefined) {
      if (fields[name] !== undefined) repeated ??= name;
      fields[name] = text.subarray(Math.min(split + 1, to), to);
    }
    from = to + 1;
  }
  return { ...fields, repeated };
}

/** The offset at which the byte is next, or of the end of the text. */
function nextOf(text: Buffer, byte: number, from: number, end: number): number {
  const at = text.indexOf(byte, from);
  return at === -1 || at > end ? end : at;
}

const namesMax = "command".length;

function fieldName(text: Buffer, from: number, to: number): "command" | "data" | "sign" | undefined {
  if (to - from > namesMax) return undefined;
  const name = text.toString("latin1", from, to);
  return name === "command" || name === "data" || name === "sign" ? name : undefined;
}

/** The bounds of the text without white space around it: some clients end a form with a line break. */
function trimmed(text: Buffer): { start: number; end: number } {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text[start])) start++;
  while (end > start && isSpace(text[end - 1])) end--;
  return { start, end };
}

/**
 * A field's value with its `%XX` escapes undone and nothing else: `+` stays `+`. A `%` that begins no escape stays too. Bytes are read as
 * UTF-8.
 */
export function unescapeValue(value: Buffer): string {
  if (!value.includes(0x25)) return value.toString("utf8");
  const bytes = Buffer.allocUnsafe(value.length);
  let length = 0;
  for (let i = 0; i < value.length; i++) {
    const byte = value[i] ?? 0;
    const escaped = byte === 0x25 ? hexByte(value[i + 1], value[i + 2]) : undefined;
    if (escaped !== undefined) i += 2;
    bytes[length++] = escaped ?? byte;
  }
  return bytes.toString("utf8", 0, length);
}

function hexByte(high: number | undefined, low: number | undefined): number | undefined {
  const h = hexDigit(high);
  const l = hexDigit(low);
  return h === undefined || l === undefined ? undefined : h * 16 + l;
}

function hexDigit(byte: number | undefined): number | undefined {
  if (byte === undefined) return undefined;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : undefined;
}
