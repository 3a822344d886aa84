import { backslash, isSpace, quote, stringEnd } from "../core/json-text.ts";
import { fieldNames, isLinePrefix, isPlainWord, routePaths, sentences, shownNumbers, shownTexts } from "./shown-fields.ts";

/**
 * Masks a payload for those who look at lines: tap, recording, archive. Card numbers, signs, keys of operations, amounts, names and
 * whatever isn't known to be harmless become `x` and `9`; what is left says which route, how it ended, and what the bytes look like.
 *
 * The bytes stay as many as they were, and of the same kind: JSON stays JSON and a form a form, inside Base64 too; what is broken
 * stays broken in the same way. So a line engine that is given masked frames decides as it did with the real ones.
 */

const x = 0x78;
const nine = 0x39;

/**
 * The payload of a request or a reply, masked, in memory of its own. Any bytes are taken.
 * @param secrets Texts that aren't shown wherever they stand, such as the merchant's id.
 */
export function maskPayload(pieces: readonly Buffer[], secrets: readonly string[]): Buffer {
  const out = Buffer.concat(pieces);
  const first = firstByte(out);
  if (first === 0x2f || first === 0x3a) maskText(out, secrets);
  else if (first === 0x7b || first === 0x5b || first === quote || !out.includes(0x3d)) maskJson(out, secrets);
  else maskForm(out, secrets);
  return out;
}

/** The first bytes of what became no frame: whatever may be a digit or a letter is masked, so that only their kind is left. */
export function maskUnframed(bytes: Buffer): Buffer {
  const out = Buffer.from(bytes);
  hide(out, 0, out.length);
  return out;
}

function firstByte(text: Buffer): number | undefined {
  return text.find((byte) => !isSpace(byte));
}

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39;
const isLetter = (byte: number) => (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);

/** Letters, digits and what isn't ASCII are hidden; white space, control characters and punctuation stay. */
const isHidden = (byte: number) => byte >= 0x80 || isLetter(byte) || isDigit(byte);

function hide(out: Buffer, from: number, to: number): void {
  for (let at = from; at < to; at++) if (isHidden(out[at] ?? 0)) out[at] = x;
}

// --- a request of bank or qr: `<route>` or `<route>\n<JSON>`, with `:<port>` in front for qr

function maskText(out: Buffer, secrets: readonly string[]): void {
  const lineEnd = out.indexOf(0x0a);
  const headEnd = lineEnd === -1 ? out.length : lineEnd;
  const head = out.toString("latin1", 0, headEnd).trim();
  const slash = head.indexOf("/");
  const isKnown = slash !== -1 && isLinePrefix(head.slice(0, slash)) && routePaths.has(head.slice(slash));
  if (!isKnown) hide(out, 0, headEnd);
  maskJson(out.subarray(headEnd), secrets);
}

// --- a fiscal request: pairs joined by `&`

function maskForm(out: Buffer, secrets: readonly string[]): void {
  for (let from = 0; from < out.length; ) {
    const ampersand = out.indexOf(0x26, from);
    const to = ampersand === -1 ? out.length : ampersand;
    maskPair(out.subarray(from, to), secrets);
    from = to + 1;
  }
}

function maskPair(pair: Buffer, secrets: readonly string[]): void {
  const equals = pair.indexOf(0x3d);
  const name = pair.toString("latin1", 0, equals === -1 ? 0 : equals).trim();
  const value = pair.subarray(equals + 1);
  const isNamed = name === "command" || name === "data" || name === "sign";
  if (!isNamed) hide(pair, 0, pair.length);
  else if (name === "data") maskBase64(value, secrets);
  else if (name === "sign" || !isRoute(value.toString("latin1").trim())) hideEscaped(value);
}

/** A command may lack its slash (seen in the field). */
const isRoute = (command: string) => routePaths.has(command.startsWith("/") ? command : `/${command}`);

/** A character of a form's value: in one byte, or the three of its escape. */
const written = /%[0-9A-Fa-f]{2}|./gs;

const characterOf = (text: string) => (text.length === 3 ? String.fromCharCode(Number.parseInt(text.slice(1), 16)) : text);

/** A character as another was written: escaped, if that was. */
function writtenLike(text: string, character: string): string {
  if (text.length === 1) return character;
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Hides a value; what is escaped stays an escape. */
function hideEscaped(value: Buffer): void {
  const hidden = value.toString("latin1").replace(written, (text) => {
    return isHidden(characterOf(text).charCodeAt(0)) ? writtenLike(text, "x") : text;
  });
  value.write(hidden, "latin1");
}

/** Base64, with the padding and the line breaks of MIME that may stand in it. */
const base64 = /^[A-Za-z0-9+/=\s]*$/;

/** What Base64 holds is masked within it; escapes, padding and line breaks stay where they are. */
function maskBase64(value: Buffer, secrets: readonly string[]): void {
  const plain = value.toString("latin1");
  // As most tills write it, it has its like of the same length.
  if (value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(plain)) {
    const content = Buffer.from(plain, "base64");
    maskJson(content, secrets);
    value.write(content.toString("base64"), "latin1");
    return;
  }
  const text = plain.replace(written, characterOf);
  if (!base64.test(text)) {
    hideEscaped(value);
    return;
  }
  const content = Buffer.from(text.replaceAll(/[=\s]/g, ""), "base64");
  maskJson(content, secrets);
  const encoded = content.toString("base64").replaceAll("=", "");
  let next = 0;
  const masked = plain.replace(written, (each) => {
    // A last character that is too few for a byte says nothing.
    return /[=\s]/.test(characterOf(each)) ? each : writtenLike(each, encoded[next++] ?? "A");
  });
  value.write(masked, "latin1");
}

// --- JSON, in one pass, whatever is wrong with it

/** Levels whose fields are known by name; what lies deeper is masked, and refused by any reader of ours (`depthMax`). */
const levelsMax = 64;

/** The word JSON has beside strings and numbers; they say nothing of anybody. */
const literals = new Set(["true", "false", "null"]);
/** A longer number is something else than a code. */
const codeForm = /^-?\d{1,4}$/;
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function maskJson(out: Buffer, secrets: readonly string[]): void {
  // The field whose value is being read, by level; an array's elements belong to the array's field.
  const fields: (string | undefined)[] = [];
  let level = 0;
  let field: string | undefined;
  for (let at = 0; at < out.length; ) {
    const byte = out[at] ?? 0;
    if (byte === quote) {
      const end = stringEnd(out, at + 1);
      if (isKey(out, end + 1)) field = maskKey(out, at, end);
      else maskString(out, at, end, level > levelsMax ? undefined : field, secrets);
      at = end + 1;
    } else if (isToken(byte)) {
      const end = tokenEnd(out, at);
      maskToken(out, at, end, level > levelsMax ? undefined : field);
      at = end;
    } else {
      if (byte === 0x7b || byte === 0x5b) {
        if (level < levelsMax) fields[level] = field;
        level++;
        if (byte === 0x7b) field = undefined;
      } else if (byte === 0x7d || byte === 0x5d) {
        level = Math.max(0, level - 1);
        field = level < levelsMax ? fields[level] : undefined;
      }
      at++;
    }
  }
}

function isKey(text: Buffer, behind: number): boolean {
  let at = behind;
  while (isSpace(text[at])) at++;
  return text[at] === 0x3a;
}

/** A string's value, as a parser reads it; undefined where it isn't one. */
function stringAt(text: Buffer, start: number, end: number): string | undefined {
  if (end < text.length && isPlain(text, start + 1, end)) return text.toString("utf8", start + 1, end);
  try {
    const value: unknown = JSON.parse(text.toString("utf8", start, end + 1));
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a string's text stands for itself: most do, and a parser would take most of the masking's time. */
function isPlain(text: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const byte = text[at] ?? 0;
    if (byte < 0x20 || byte === backslash) return false;
  }
  return true;
}

/** @returns the field's name, where it is one that is shown. */
function maskKey(out: Buffer, start: number, end: number): string | undefined {
  const name = stringAt(out, start, end);
  if (name !== undefined && fieldNames.has(name)) return name;
  hideString(out, start, end, name !== undefined);
  return undefined;
}

function maskString(out: Buffer, start: number, end: number, field: string | undefined, secrets: readonly string[]): void {
  const value = stringAt(out, start, end);
  if (value !== undefined && field !== undefined) {
    if (shownTexts.get(field)?.(value)) return;
    if (sentences.has(field)) {
      maskSentence(out, start + 1, end, secrets);
      return;
    }
  }
  hideString(out, start, end, value !== undefined);
}

/** What isn't a string of JSON isn't one after masking either: `\x` is an escape nowhere, and control characters stay. */
function hideString(out: Buffer, start: number, end: number, isWhole: boolean): void {
  if (isWhole) out.fill(x, start + 1, end);
  else {
    for (let at = start + 1; at < end; at++) {
      const byte = out[at] ?? 0;
      if (byte >= 0x20 && byte !== backslash) out[at] = x;
    }
  }
}

const spaces = /(?:[ ]|\\[nrt])+/g;

function maskSentence(out: Buffer, from: number, to: number, secrets: readonly string[]): void {
  let at = from;
  const text = out.toString("utf8", from, to);
  // Bytes that aren't UTF-8 would shift everything behind them.
  if (Buffer.byteLength(text) !== to - from || secrets.some((secret) => secret !== "" && text.includes(secret))) {
    out.fill(x, from, to);
    return;
  }
  const words = text.split(spaces);
  const gaps = text.match(spaces) ?? [];
  words.forEach((word, i) => {
    const bytes = Buffer.byteLength(word);
    if (!isPlainWord(word)) out.fill(x, at, at + bytes);
    at += bytes + (gaps[i]?.length ?? 0);
  });
}

/** What may be part of a number, a literal, or of something that is neither. */
const isToken = (byte: number) =>
  byte >= 0x80 || isLetter(byte) || isDigit(byte) || byte === 0x2d || byte === 0x2b || byte === 0x2e;

function tokenEnd(text: Buffer, from: number): number {
  let at = from;
  while (at < text.length && isToken(text[at] ?? 0)) at++;
  return at;
}

/** Whether nothing but a number is the field's value: where quotes are missing, groups of a card's digits stand there one by one. */
function isWholeValue(text: Buffer, start: number, end: number): boolean {
  let before = start - 1;
  while (isSpace(text[before])) before--;
  let behind = end;
  while (isSpace(text[behind])) behind++;
  return text[before] === 0x3a && (behind === text.length || [0x2c, 0x7d, 0x5d].includes(text[behind] ?? 0));
}

function maskToken(out: Buffer, start: number, end: number, field: string | undefined): void {
  const token = out.toString("latin1", start, end);
  if (literals.has(token)) return;
  if (!number.test(token)) {
    hide(out, start, end);
    return;
  }
  if (field !== undefined && shownNumbers.has(field) && codeForm.test(token) && isWholeValue(out, start, end)) return;
  for (let at = start; at < end; at++) if (isDigit(out[at] ?? 0)) out[at] = nine;
}
