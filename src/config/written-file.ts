import { JsonError, parseJsonOnce, withoutComments } from "../core/json-syntax.ts";
import { check, type Node } from "./check.ts";
import { ConfigError } from "./config.ts";
import { fileBytesMax } from "./limits.ts";
import { notUtf8, readAtMost, utf8Text } from "./secrets.ts";

/** A JSON file that a person writes: read whole, and checked against a schema with every problem there is. */
export interface WrittenFile {
  readonly path: string;
  /** What it holds, as a message names it. */
  readonly what: "configuration" | "world";
  /** True if it may have comments. */
  readonly comments?: true;
}

/**
 * The file's text.
 * @param problems Those found before; all are reported together.
 * @throws ConfigError if it is too large or no text; the system's error if it can't be read.
 */
export function readText({ path, what }: WrittenFile, problems: readonly string[]): string {
  const bytes = readAtMost(path, fileBytesMax + 1);
  if (bytes.length > fileBytesMax) {
    const problem = `the file is larger than ${fileBytesMax} bytes, which is the limit: name a ${what} file`;
    throw new ConfigError([...problems, problem], path, what);
  }
  const text = utf8Text(bytes);
  if (text === undefined) throw new ConfigError([...problems, notUtf8], path, what);
  return text;
}

/**
 * The text's value; keys that stand twice are added to the problems.
 * @throws ConfigError if it isn't JSON.
 */
export function parseWritten({ path, what, comments }: WrittenFile, text: string, problems: string[]): unknown {
  try {
    return parseJsonOnce(comments === true ? withoutComments(text) : text, problems);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new ConfigError([...problems, error.message], path, what);
  }
}

/**
 * The text's value without what the schema doesn't allow, which is added to the problems; undefined if nothing is left.
 * @throws ConfigError if it isn't JSON.
 */
export function readJson(file: WrittenFile, text: string, schema: Node, problems: string[]): unknown {
  return check(schema, parseWritten(file, text, problems), "", problems);
}
