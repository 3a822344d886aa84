import { type JSONVisitor, printParseErrorCode, visit } from "jsonc-parser";

/**
 * Parses JSON and says where it goes wrong. `JSON.parse` decides what is JSON, but it names no line, and its messages quote the text around
 * the error, which may be a secret or a card's number. So jsonc-parser finds the place of an error, and repeated keys.
 */

/** A place in a text; lines and columns count from 0, as jsonc-parser has them. */
interface Place {
  readonly line: number;
  readonly column: number;
}

/** The text isn't JSON; line and column count from 1. The message quotes one character at most. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly line: number;
  readonly column: number;
  /** True if the text ends too early: with more of it, it could be JSON. */
  readonly isCutShort: boolean;

  constructor(place: Place, problem: string, isCutShort = false) {
    const [line, column] = [place.line + 1, place.column + 1];
    super(`line ${line}, column ${column}: ${problem}`);
    this.line = line;
    this.column = column;
    this.isCutShort = isCutShort;
  }
}

/** @throws JsonError */
export function parseJson(text: string): unknown {
  const body = text.startsWith("\uFEFF") ? text.slice(1) : text;
  try {
    return JSON.parse(body);
  } catch {
    throw errorIn(body);
  }
}

/**
 * JSON with comments as JSON alone: each comment is blanked, so that the rest keeps its lines and columns.
 * @throws JsonError if it is nested too deeply.
 */
export function withoutComments(text: string): string {
  const pieces: string[] = [];
  let end = 0;
  walk(text, {
    onComment: (offset, length) => {
      pieces.push(text.slice(end, offset), text.slice(offset, offset + length).replaceAll(/[^\r\n]/g, " "));
      end = offset + length;
    },
  });
  return [...pieces, text.slice(end)].join("");
}

/** A key that an object has twice: its path, `lines.till.baudRate`, and the lines of the text that it is on. */
export interface RepeatedKey {
  readonly path: string;
  readonly lines: readonly [first: number, second: number];
}

/**
 * The keys that an object has twice; `JSON.parse` takes the last of them silently, and an edit of the first has no effect.
 * @param text JSON, as `parseJson` took it.
 * @throws JsonError if it is nested too deeply.
 */
export function repeatedKeys(text: string): readonly RepeatedKey[] {
  const repeated: RepeatedKey[] = [];
  /** The line of each key, for each open object; a list has none. */
  const open: Map<string, number>[] = [];
  walk(text, {
    onBegin: () => open.push(new Map()),
    onEnd: () => open.pop(),
    onObjectProperty: (key, _offset, _length, line, _column, parents) => {
      const lines = open.at(-1);
      const first = lines?.get(key);
      if (first === undefined) lines?.set(key, line + 1);
      else repeated.push({ path: pathOf([...parents(), key]), lines: [first, line + 1] });
    },
  });
  return repeated;
}

function pathOf(segments: readonly (string | number)[]): string {
  const steps = segments.map((segment) => (typeof segment === "number" ? `[${segment}]` : `.${printableKey(segment)}`));
  return steps.join("").replace(/^\./, "");
}

/** A key as a message may show it: on one line, and bounded. */
export function printableKey(key: string): string {
  const plain = /^[\w/$-]+$/.test(key) ? key : JSON.stringify(key);
  return plain.length > 80 ? `${plain.slice(0, 77)}...` : plain;
}

/**
 * Parses JSON, and adds each key that an object has twice to the problems.
 * @throws JsonError
 */
export function parseJsonOnce(text: string, problems: string[]): unknown {
  const parsed = parseJson(text);
  for (const { path, lines } of repeatedKeys(text)) {
    problems.push(`${path}: set twice, on line ${lines[0]} and on line ${lines[1]}: keep only one`);
  }
  return parsed;
}

/** The first place at which the text isn't JSON. */
function errorIn(text: string): JsonError {
  let comma = { offset: 0, line: 0, column: 0 };
  try {
    walk(text, {
      onSeparator: (character, offset, _length, line, column) => {
        if (character === ",") comma = { offset, line, column };
      },
      onError: (code, offset, length, line, column) => {
        const isLast = /^,\s*[}\]]$/.test(text.slice(comma.offset, offset + 1));
        if (isLast) throw new JsonError(comma, "a comma after the last entry: take it out");
        const problem = problemOf(printParseErrorCode(code), text, offset);
        throw new JsonError({ line, column }, problem, offset + length >= text.length && isBeginning(text.slice(offset)));
      },
    });
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
  return new JsonError({ line: 0, column: 0 }, "the text is not JSON");
}

/** True if the last piece of a text is the beginning of a value, or empty. */
function isBeginning(piece: string): boolean {
  return piece.startsWith(`"`) || ["true", "false", "null"].some((word) => word.startsWith(piece)) || /^-?(\d|$)/.test(piece);
}

function problemOf(code: ReturnType<typeof printParseErrorCode>, text: string, offset: number): string {
  const [character] = text.slice(offset, offset + 2);
  const found = character === undefined ? "the text ends" : `there is ${shownCharacter(character)}`;
  switch (code) {
    case "InvalidCommentToken":
    case "UnexpectedEndOfComment":
      return "JSON has no comments: take this one out";
    case "UnexpectedEndOfString":
      return "this text has no closing double quote on its line";
    case "InvalidEscapeCharacter":
    case "InvalidUnicode":
      return "this text holds a backslash that JSON does not know: write \\\\ for one backslash";
    case "InvalidCharacter":
      return "this text holds a tab or another control character: write \\t for a tab";
    case "InvalidSymbol":
      if (character === "'") return "JSON has no single quotes: use double ones";
      return `${found}, which is not JSON: keys and texts need double quotes, and true, false and null small letters`;
    case "InvalidNumberFormat":
    case "UnexpectedEndOfNumber":
      return "this number is not complete";
    case "PropertyNameExpected":
      return `${found} where a key in double quotes belongs`;
    case "ColonExpected":
      return `${found} where a colon belongs`;
    case "CommaExpected":
      if (/[0-9]{2}/.test(text.slice(offset - 1, offset + 1))) return "a number must not begin with 0: take the 0 out";
      return `${found} where a comma ${{ "}": "or ] ", "]": "or } " }[character ?? ""] ?? ""}belongs`;
    case "CloseBraceExpected":
      return `${found} where a comma or } belongs`;
    case "CloseBracketExpected":
      return `${found} where a comma or ] belongs`;
    case "EndOfFileExpected":
      return `${found} where the end of the text belongs`;
    default:
      return `${found} where a value belongs`;
  }
}

/** A character as a message may show it; a space that isn't one, as web pages have them, shows only by its number. */
function shownCharacter(character: string): string {
  if (character === '"') return "a double quote";
  if (!/[\p{Z}\p{C}]/u.test(character)) return JSON.stringify(character);
  return `the character U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Objects and lists within each other; jsonc-parser recurses, and a hundred thousand would overflow the stack. */
const nestingMax = 64;

interface Walk extends Pick<JSONVisitor, "onObjectProperty" | "onSeparator" | "onComment" | "onError"> {
  readonly onBegin?: () => void;
  readonly onEnd?: () => void;
}

/** @throws JsonError if it is nested too deeply. */
function walk(text: string, { onBegin, onEnd, ...visitor }: Walk): void {
  let depth = 0;
  const begin = (_offset: number, _length: number, line: number, column: number) => {
    if (++depth > nestingMax) {
      throw new JsonError({ line, column }, `objects and lists are nested more than ${nestingMax} deep`);
    }
    onBegin?.();
  };
  const end = () => {
    depth--;
    onEnd?.();
  };
  visit(
    text,
    { ...visitor, onObjectBegin: begin, onArrayBegin: begin, onObjectEnd: end, onArrayEnd: end },
    { disallowComments: visitor.onComment === undefined, allowTrailingComma: false },
  );
}
