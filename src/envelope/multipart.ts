import type { Form, FormFields } from "./form.ts";

/**
 * The fiscal form as multipart/form-data (RFC 7578), which form libraries of many languages write in place of `name=value` pairs. Its
 * values are unescaped, so they are escaped here: from then on it is a form like any other.
 */

const lineEnd = "\r\n";

/** Bytes of a line with a boundary: two hyphens, and 70 characters at most (RFC 2046, 5.1.1). */
const boundaryLineMax = 72;

/** True if a text begins as multipart does: no pair and no JSON begins with two hyphens. */
export function isMultipart(text: Buffer): boolean {
  return text[0] === hyphen && text[1] === hyphen;
}

const hyphen = 0x2d;

/** Reads the fields of a form; undefined if the text breaks off, or is something else. Its first line has the boundary. */
export function parseMultipart(text: Buffer): Form | undefined {
  const firstEnd = text.indexOf(lineEnd);
  if (!isMultipart(text) || firstEnd === -1 || firstEnd > boundaryLineMax) return undefined;
  const boundary = text.subarray(0, firstEnd);
  const delimiter = Buffer.concat([Buffer.from(lineEnd), boundary]);
  const fields: FormFields = { command: undefined, data: undefined, sign: undefined };
  let repeated: Form["repeated"];
  for (let from = boundary.length; ; ) {
    if (text[from] === hyphen && text[from + 1] === hyphen) return { ...fields, repeated };
    const headEnd = text.indexOf(blankLine, from);
    const to = headEnd === -1 ? -1 : text.indexOf(delimiter, headEnd + lineEnd.length);
    if (to === -1) return undefined;
    const name = disposition.exec(text.toString("latin1", from, headEnd))?.[1];
    if (name === "command" || name === "data" || name === "sign") {
      if (fields[name] !== undefined) repeated ??= name;
      fields[name] = escaped(text.subarray(Math.min(headEnd + blankLine.length, to), to));
    }
    from = to + delimiter.length;
  }
}

const blankLine = `${lineEnd}${lineEnd}`;

/** A part's name, with or without quotes; a file's name is another parameter. */
const disposition = /^content-disposition:[^\r\n]*;[ \t]*name="?([a-z]+)"?[ \t]*(?:;|$)/im;

/** A value as a form of pairs has it: forbidden bytes are escaped, one by one. */
function escaped(value: Buffer): Buffer {
  const text = value.toString("latin1");
  const hex = (character: string) => `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return Buffer.from(text.replaceAll(/[^\x21-\x7e]|[%&]/g, hex), "latin1");
}
