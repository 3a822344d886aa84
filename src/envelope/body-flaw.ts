import { isUtf8 } from "node:buffer";
import { JsonError, parseJson } from "../core/json-syntax.ts";
import { quotedName } from "../core/log-text.ts";
import { isMultipart, parseMultipart } from "./multipart.ts";

/**
 * Says in words why a body can't be read: its sender's mistake against the contract. Looked for only once a body is refused, so that a good
 * one costs nothing.
 */

/** Facts about a request beside its body. */
export interface SentRequest {
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/**
 * Bytes of a text in which the place of an error is looked for: that takes a hundred times as long as parsing, and everybody waits. Large
 * requests have some tens of kB.
 */
const placedBytesMax = 64 * 1024;

/** Says why a text isn't a JSON object, for the end of a sentence. */
export function jsonFlaw(text: Buffer, sent: SentRequest): string {
  const other = encodingFlaw(text, sent);
  if (other !== undefined) return other;
  const head = text.toString("latin1", 0, 128);
  if (isMultipart(text)) return "is multipart/form-data: send the JSON object alone";
  if (pairs.test(head)) return "is a form: send the JSON object alone";
  if (text.length > placedBytesMax) return "is not a JSON object";
  try {
    parseJson(text.toString("utf8"));
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return (error.isCutShort ? lengthFlaw(text, sent) : undefined) ?? `is not JSON: ${error.message}`;
  }
  return "must be a JSON object";
}

const pairs = /^\s*[\w.-]+=/;

/** Says why a field of the fiscal form wasn't found in a body; undefined if only the field is missing. */
export function formFlaw(text: Buffer, field: "data" | "sign", sent: SentRequest): string | undefined {
  const hasField = new RegExp(`(?:^|[?&])(${field})=`, "i");
  if (text.length === 0 && hasField.test(sent.url ?? "")) {
    return `the body is empty, and the URL's query has ${field}: send the form as the body`;
  }
  const other = encodingFlaw(text, sent);
  if (other !== undefined) return `the body ${other}`;
  if (isMultipart(text))
    return parseMultipart(text) === undefined ? "the body is multipart/form-data that breaks off" : undefined;
  if (/^\s*[[{"]/.test(text.toString("latin1", 0, 128))) {
    return "the body is JSON: send the form data=...&sign=..., where data is the Base64 of the JSON object";
  }
  const [, written] = hasField.exec(text.toString("latin1").trimStart()) ?? [];
  return written === undefined || written === field ? undefined : `the form has ${written}: write ${field}, in small letters`;
}

/** Says why the bytes are no text, whatever it would say. */
function encodingFlaw(text: Buffer, sent: SentRequest): string | undefined {
  if (isUtf8(text))
    return beginsWith(text, byteOrderMark) ? "begins with a byte order mark: encode it as UTF-8 without one" : undefined;
  const compression = compressionIn(sent.headers["content-encoding"]);
  if (compression !== undefined) return `is compressed (Content-Encoding ${compression}): send it as it is`;
  if (beginsWith(text, gzipped)) return "is compressed by gzip: send it as it is";
  return (endsWithinCharacter(text) ? lengthFlaw(text, sent) : undefined) ?? "is not UTF-8: encode it as UTF-8";
}

/** The compression that a `Content-Encoding` names, quoted; some write a character set there. */
export function compressionIn(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined || !/gzip|deflate|compress|zstd|^br$/i.test(String(header))) return undefined;
  return quotedName(String(header));
}

const byteOrderMark = Buffer.from("\ufeff");
const gzipped = Buffer.from([0x1f, 0x8b]);

const beginsWith = (text: Buffer, bytes: Buffer) => text.subarray(0, bytes.length).equals(bytes);

/** True if only the last character is no UTF-8, as its end is missing. */
function endsWithinCharacter(text: Buffer): boolean {
  for (let missing = 1; missing <= 3; missing++) {
    const at = text.length - missing;
    // A byte from 0xc0 on begins a character of several bytes.
    if ((text[at] ?? 0) >= 0xc0) return isUtf8(text.subarray(0, at));
  }
  return false;
}

/** Hints at a length in characters, if a body ends too early and that may be why: of ASCII the two are one. */
function lengthFlaw(text: Buffer, { headers }: SentRequest): string | undefined {
  if (headers["content-length"] === undefined || text.every((byte) => byte < 0x80)) return undefined;
  return `breaks off after ${text.length} bytes, as Content-Length announces no more: it must count bytes, not characters`;
}
