import { printableKey } from "./check.ts";

/**
 * Parses JSON and says where it goes wrong. `JSON.parse` names no line, and its messages quote the text around the error, which
 * in this file may be a secret: after a failure the text is walked once more, by the grammar of RFC 8259, to find the spot.
 */

/** The text isn't JSON; line and column count from 1. The message quotes one character at most. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly line: number;
  readonly column: number;

  constructor(text: string, offset: number, problem: string) {
    const before = text.slice(0, offset).split("\n");
    const line = before.length;
    const column = (before.at(-1) ?? "").length + 1;
    super(`line ${line}, column ${column}: ${problem}`);
    this.line = line;
    this.column = column;
  }
}

/** @throws JsonError */
export function parseJson(text: string): unknown {
  const body = text.startsWith("\uFEFF") ? text.slice(1) : text;
  try {
    return JSON.parse(body);
  } catch {
    throw locate(body);
  }
}

const space = /[ \t\n\r]*/y;
const string = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const scalar = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

/** A key that an object has twice, where: `lines.till.baudRate`, and the lines of the text on which it stands. */
export interface RepeatedKey {
  readonly path: string;
  readonly lines: readonly [first: number, second: number];
}

const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|\n/g;

/** An object or list that is open: the keys that it had, with their lines, or how many items came before this one. */
interface Open {
  readonly keys: Map<string, number> | undefined;
  key: string;
  items: number;
  /** The next text is a key. */
  beforeKey: boolean;
}

/**
 * The keys that stand twice in one object; `JSON.parse` takes the last of them without a word, and whoever edits the first wonders.
 * @param text JSON, as `parseJson` took it.
 */
export function repeatedKeys(text: string): readonly RepeatedKey[] {
  const repeated: RepeatedKey[] = [];
  const open: Open[] = [];
  let line = 1;
  for (const [found] of text.matchAll(token)) {
    const inner = open.at(-1);
    if (found === "\n") line++;
    else if (found === "{") open.push({ keys: new Map(), key: "", items: 0, beforeKey: true });
    else if (found === "[") open.push({ keys: undefined, key: "", items: 0, beforeKey: false });
    else if (found === "}" || found === "]") open.pop();
    else if (inner === undefined) continue;
    else if (found === ":") inner.beforeKey = false;
    else if (found === ",") {
      inner.items++;
      inner.beforeKey = inner.keys !== undefined;
    } else if (inner.beforeKey) {
      inner.key = String(JSON.parse(found));
      const first = inner.keys?.get(inner.key);
      if (first === undefined) inner.keys?.set(inner.key, line);
      else repeated.push({ path: pathOf(open), lines: [first, line] });
    }
  }
  return repeated;
}

function pathOf(open: readonly Open[]): string {
  const steps = open.map(({ keys, key, items }) => (keys === undefined ? `[${items}]` : `.${printableKey(key)}`));
  return steps.join("").replace(/^\./, "");
}

type Closer = "}" | "]";

/** The first place at which the text leaves the grammar. */
function locate(text: string): JsonError {
  const walker = new Walker(text);
  for (;;) {
    const problem = walker.value() ?? walker.afterValue();
    if (problem !== undefined) return problem;
  }
}

/** Walks a text by the grammar; each step answers the problem that it met. */
class Walker {
  readonly #text: string;
  #at = 0;
  /** What closes the open objects and lists, innermost last: a list and no recursion, so that no nesting overflows the stack. */
  readonly #open: Closer[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** Steps over everything that opens, down to the first value with nothing in it, and over that. */
  value(): JsonError | undefined {
    for (;;) {
      this.#take(space);
      const opener = this.#text[this.#at];
      if (opener !== "{" && opener !== "[") {
        return this.#take(string) || this.#take(scalar) ? undefined : this.#instead("a value");
      }
      this.#at++;
      this.#take(space);
      const closer = opener === "{" ? "}" : "]";
      if (this.#text[this.#at] === closer) {
        this.#at++;
        return undefined;
      }
      this.#open.push(closer);
      const problem = this.#key(closer);
      if (problem !== undefined) return problem;
    }
  }

  /** Steps over what closes, and over one comma and key, up to the next value. */
  afterValue(): JsonError | undefined {
    for (;;) {
      this.#take(space);
      const closer = this.#open.at(-1);
      if (closer === undefined) return this.#instead("the end of the file");
      const next = this.#text[this.#at];
      if (next === ",") return this.#comma(closer);
      if (next !== closer) return this.#instead(`a comma or ${closer}`);
      this.#at++;
      this.#open.pop();
    }
  }

  #comma(closer: Closer): JsonError | undefined {
    const comma = this.#at++;
    this.#take(space);
    if (this.#text[this.#at] !== closer) return this.#key(closer);
    this.#at = comma;
    return this.#fail("a comma after the last entry: take it out");
  }

  /** In an object, a key and its colon; in a list, nothing. */
  #key(closer: Closer): JsonError | undefined {
    if (closer === "]") return undefined;
    if (!this.#take(string)) return this.#instead("a key in double quotes");
    this.#take(space);
    if (this.#text[this.#at] !== ":") return this.#instead("a colon");
    this.#at++;
    return undefined;
  }

  #take(token: RegExp): boolean {
    token.lastIndex = this.#at;
    if (!token.test(this.#text)) return false;
    this.#at = token.lastIndex;
    return true;
  }

  #fail(problem: string): JsonError {
    return new JsonError(this.#text, this.#at, problem);
  }

  #instead(wanted: string): JsonError {
    const rest = this.#text.slice(this.#at, this.#at + 2);
    if (rest === "//" || rest === "/*") return this.#fail("JSON has no comments: take this one out");
    if (rest.startsWith("'")) return this.#fail("JSON has no single quotes: write double ones");
    const from = this.#at;
    if (rest.startsWith('"') && !this.#take(string)) {
      return this.#fail("this text doesn't end on its line, or holds a backslash that JSON doesn't know");
    }
    this.#at = from;
    const found = rest === "" ? "the file ends" : `there is ${JSON.stringify([...rest][0])}`;
    return this.#fail(`${found} where ${wanted} belongs`);
  }
}
