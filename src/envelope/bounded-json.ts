import type { JsonObject } from "../core/json-object.ts";
import { backslash, isSpace, quote, stringEnd } from "../core/json-text.ts";
import { parseObject } from "./json.ts";

/**
 * Parses a message's JSON object within bounds.
 *
 * `JSON.parse` makes an object of every value: 8 MiB of empty lists take 120 MB of heap, and while that grows no other line is served. So
 * possible values are counted before a text is parsed.
 */

/** How deep objects and lists may nest. The deepest documented message has five levels, and another parser may recurse. */
export const depthMax = 64;

/**
 * How many objects, lists and further entries there may be. With the most memory that each can take (a key that no other object has), they
 * fit into a heap of 64 MB; the largest documented messages have some hundreds.
 */
export const entriesMax = 65_536;

/** Why a text wasn't parsed, for the end of a sentence "it is". */
export type Unparsed = typeof notAnObject | typeof tooDeep | typeof tooMany;

export const notAnObject = "not a JSON object";

const tooDeep = `nested deeper than ${depthMax} levels` as const;
const tooMany = `made of more than ${entriesMax} entries` as const;

/** An object, and the first of the watched names that is twice at its top. */
export interface Parsed {
  readonly json: JsonObject;
  readonly twice: string | undefined;
}

const comma = 0x2c;
const colon = 0x3a;
const squareOpen = 0x5b;
const squareClose = 0x5d;
const curlyOpen = 0x7b;
const curlyClose = 0x7d;

/**
 * Parses a message, or says why it can't.
 * @param watched Names (ASCII) of which none may be at the object's top twice; `JSON.parse` takes the last without a word.
 */
export function parseBounded(text: Buffer, watched: readonly string[] = []): Parsed | Unparsed {
  let depth = 0;
  let entries = 0;
  let twice: string | undefined;
  const seen: string[] = [];
  for (let at = 0; at < text.length; at++) {
    const byte = text[at];
    if (byte === quote) {
      const from = at + 1;
      at = stringEnd(text, from);
      const name = depth === 1 && watched.length > 0 ? keyOf(text, from, at, watched) : undefined;
      if (name === undefined) continue;
      if (seen.includes(name)) twice ??= name;
      seen.push(name);
    } else if (byte === comma) {
      if (++entries > entriesMax) return tooMany;
    } else if (byte === curlyOpen || byte === squareOpen) {
      if (++depth > depthMax) return tooDeep;
      if (++entries > entriesMax) return tooMany;
    } else if (byte === curlyClose || byte === squareClose) depth--;
  }
  const json = parseObject(text.toString("utf8"));
  return json === undefined ? notAnObject : { json, twice };
}

/** The watched name that `text[from, to)` is, if it is the key of a member. */
function keyOf(text: Buffer, from: number, to: number, watched: readonly string[]): string | undefined {
  let behind = to + 1;
  while (isSpace(text[behind])) behind++;
  if (text[behind] !== colon) return undefined;
  for (const name of watched) if (name.length === to - from && isAt(name, text, from)) return name;
  for (let at = from; at < to; at++) {
    if (text[at] === backslash) return watched.find((name) => name === unescaped(text.toString("utf8", from - 1, to + 1)));
  }
  return undefined;
}

function isAt(name: string, text: Buffer, from: number): boolean {
  for (let i = 0; i < name.length; i++) if (text[from + i] !== name.charCodeAt(i)) return false;
  return true;
}

/** A string's value: `pay\u005fid` is `pay_id` to a parser. Other values are left to the parser of the whole. */
function unescaped(string: string): unknown {
  try {
    return JSON.parse(string);
  } catch {
    return undefined;
  }
}
