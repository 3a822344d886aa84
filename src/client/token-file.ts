import { randomBytes } from "node:crypto";
import { closeSync, linkSync, lstatSync, openSync, renameSync, rmSync } from "node:fs";
import { readAtMost, reason } from "../config/secrets.ts";
import { blockFor } from "../core/clock.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { UsageError } from "../core/exit.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { replaceFile } from "../core/replace-file.ts";
import { inQuotes } from "../core/shell-text.ts";
import { areFacts } from "../settle/fact.ts";
import type { Settled } from "./settle-types.ts";
import type { Token } from "./token.ts";

/**
 * The file in which `posline call --token-file` keeps an operation: its token, where it is sent, and how it ended. What it held before is
 * not lost by it: the token of an operation that goes on is all that keeps it from being sent twice.
 */

/** A token with a body as large as a service takes, and what stands beside it. */
const fileBytesMax = 2 * 1_048_576;

/** Where an operation is sent, as the flags say it. */
type SentTo = Readonly<Partial<Record<"url" | "line", string | undefined>>> & { readonly baud?: number | undefined };

/** The file holds something else than this process wrote: another may follow the operation, and it must not be sent by both. */
export class TokenFileChanged extends UsageError {
  /** The file holds the same operation: who follows it there tells how it ends. */
  readonly isSame: boolean;

  constructor(message: string, isSame: boolean) {
    super(message);
    this.isSame = isSame;
  }
}

/** Milliseconds for which another process's write is waited for: longer than a card takes for one. */
const guardMsMax = 5_000;

/** Milliseconds between two looks. */
const guardStepMs = 10;

export class TokenFile {
  readonly #path: string;
  /** What it holds, as far as this process knows. */
  #text: string;
  #sentTo: SentTo = {};

  private constructor(path: string, text: string) {
    this.#path = path;
    this.#text = text;
  }

  /**
   * A file for an operation that begins.
   * @throws UsageError where it holds one that hasn't ended, or something else.
   */
  static forNew(path: string): TokenFile {
    const text = textOf(path);
    if (text.trim() === "") return new TokenFile(path, text);
    const held = parsed(text);
    if (!isObject(held) || typeof held["v"] !== "number") {
      throw new UsageError(`Cannot keep the token in ${inQuotes(path)}: it holds something else: name another file`);
    }
    if (typeof held["result"] === "string") return new TokenFile(path, text);
    throw new UsageError(
      `Cannot begin another operation in ${inQuotes(path)}: it holds the token of one that has not ended. Find out how that one ` +
        `ends: posline call --resume @${path}. Or name another file`,
    );
  }

  /** @throws UsageError where it can't be read, or isn't JSON. */
  static resumed(path: string): { readonly file: TokenFile; readonly held: unknown } {
    const text = textOf(path);
    if (text === "") throw new UsageError(`Cannot resume: cannot read the token's file ${inQuotes(path)}: ${nothingThere}`);
    const held = parsed(text);
    if (held === undefined)
      throw new UsageError(`Cannot resume: the token in ${inQuotes(path)} is not JSON: name the token's file`);
    return { file: new TokenFile(path, text), held };
  }

  /** Where the operation is sent from now on; it is written with the next token. */
  set sentTo({ url, line, baud }: SentTo) {
    this.#sentTo = { url, line, baud };
  }

  /**
   * Keeps a token.
   * @param result How the operation ended; undefined while that isn't known.
   * @throws TokenFileChanged when another process wrote the file meanwhile; UsageError when it can't be written.
   */
  save(token: Token, result?: Settled["result"]): void {
    const guard = this.#guard();
    try {
      this.#saveGuarded(token, result);
    } finally {
      if (guard !== undefined) rmSync(guard, { force: true });
    }
  }

  /**
   * Nobody writes between this process's look at the file and its own writing. What a killed process left is taken over: a guard that stood
   * there all the time, and not one that another who waited has made since.
   */
  #guard(): string | undefined {
    const guard = `${this.#path}.saving`;
    let seen: string | undefined;
    for (let waitedMs = 0; ; waitedMs += guardStepMs) {
      try {
        closeSync(openSync(guard, "wx", 0o600));
        return guard;
      } catch (error) {
        // Where none can be made the file can't be written either, and that says why.
        if (codeOf(error) !== "EEXIST") return undefined;
      }
      const mark = markOf(guard);
      if (mark !== seen) waitedMs = 0;
      seen = mark;
      if (waitedMs >= guardMsMax) takeAway(guard, mark);
      else blockFor(guardStepMs);
    }
  }

  #saveGuarded(token: Token, result: Settled["result"] | undefined): void {
    const held = textOf(this.#path);
    // A file that was removed is written again: it is all that an operation is resumed by.
    if (held !== this.#text && held !== "") {
      const other = parsed(held);
      const isSame = isObject(other) && other["route"] === token.route && other["body"] === token.body;
      throw new TokenFileChanged(
        `Cannot keep the token in ${this.#path}: another process wrote the file meanwhile: let one process follow the operation`,
        isSame,
      );
    }
    const ended = result === undefined || result === "unknown" ? {} : { result };
    const text = `${JSON.stringify({ ...token, sentTo: this.#sentTo, ...ended })}\n`;
    try {
      replaceFile(this.#path, text);
    } catch (error) {
      const why = codeOf(error) === "ENOENT" ? "its folder does not exist: make it, or name another file" : messageOf(error);
      throw new UsageError(`Cannot keep the token in ${this.#path}: ${why}`);
    }
    this.#text = text;
  }
}

/** What tells one guard from the next of its name; undefined where there is none. */
function markOf(guard: string): string | undefined {
  const facts = lstatSync(guard, { bigint: true, throwIfNoEntry: false });
  return facts === undefined ? undefined : `${facts.ino} ${facts.mtimeNs}`;
}

/**
 * Removes a guard, and only that one: another's, made between the look and the deed, goes back to its place.
 * @throws UsageError where that isn't allowed.
 */
function takeAway(guard: string, mark: string | undefined): void {
  const aside = `${guard}.${randomBytes(8).toString("hex")}`;
  try {
    renameSync(guard, aside);
  } catch (error) {
    // Somebody else took it away.
    if (codeOf(error) === "ENOENT") return;
    throw new UsageError(
      `Cannot keep the token: ${inQuotes(guard)} is left from another process: remove it: ${messageOf(error)}`,
    );
  }
  try {
    if (markOf(aside) !== mark) linkSync(aside, guard);
  } catch {
    // The next one's is there by now.
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * The target of an operation that is resumed from a file: the one that it was sent to, unless nothing was sent yet.
 * @throws UsageError where the flags name another: a terminal that doesn't know it would be taken for one that didn't get it.
 */
export function targetOfHeld<T extends SentTo>(held: unknown, given: T): T {
  const { sentTo, facts } = isObject(held) ? held : ({} as JsonObject);
  if (!isObject(sentTo)) return given;
  const [url, line, baud] = [text(sentTo["url"]), text(sentTo["line"]), sentTo["baud"]];
  const isNamed = given.url !== undefined || given.line !== undefined;
  const isSame = given.url === url && given.line === line;
  const wasSent = !areFacts(facts) || facts.some(({ is }) => is === "sent");
  if (isNamed && !isSame && wasSent) {
    const to = url ?? line ?? "the service's own port on this box";
    throw new UsageError(
      `Cannot resume: the operation was sent to ${to}, and another must not be asked about it: leave --url and --line out`,
    );
  }
  return isNamed ? given : { ...given, url, line, baud: given.baud ?? (typeof baud === "number" ? baud : undefined) };
}

const text = (value: unknown) => (typeof value === "string" ? value : undefined);

const nothingThere = "there is no such file, or nothing in it: correct the path";

/** What a file holds; "" where there is none. */
function textOf(path: string): string {
  try {
    return readAtMost(path, fileBytesMax).toString("utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "";
    throw new UsageError(`Cannot use the token's file ${inQuotes(path)}: ${reason(error, path)}`);
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
