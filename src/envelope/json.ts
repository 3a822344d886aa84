import { isObject, type JsonObject } from "../core/json-object.ts";

/** Pieces that follow each other as one; copied only if there are several. */
export function wholeOf(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces;
  return only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces);
}

/** The text of pieces that follow each other. A character may be cut between two of them. */
export function textOf(pieces: readonly Buffer[]): string {
  return wholeOf(pieces).toString("utf8");
}

/** The JSON object in a text; undefined if it is not JSON, or JSON of another kind. */
export function parseObject(text: string): JsonObject | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isObject(value) ? value : undefined;
}

/** How long a key may be in a log line, in characters: documented ids are shorter, and a log isn't a place for a body. */
const keyCharactersMax = 64;

/**
 * An operation's id from its field in a request: a string, or a number from tills that send one (seen in the field: types are loose). A
 * number beyond 2^53 has lost digits by now, and a wrong id in a log is worse than none.
 */
export function keyOf(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
  return typeof value === "string" && value !== "" ? value.slice(0, keyCharactersMax) : undefined;
}
