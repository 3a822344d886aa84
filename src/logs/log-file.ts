import { createReadStream } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { codeOf, messageOf } from "../core/error-code.ts";
import { exitCodes } from "../core/exit.ts";
import type { LogSink } from "./view.ts";

/** A log in a file, read to its end, or followed: across rotation (another file has the name) and truncation (it got shorter). */

/** Bytes read at once. */
const chunkBytes = 64 * 1024;

/** Milliseconds between two looks at a file that is followed: notifications don't work on every file system. */
const lookMs = 250;

/** A log that can't be read, and what to do. */
export class SourceError extends Error {
  readonly exitCode: number = exitCodes.unavailable;
}

/** Reads what was appended, each time it is asked to. */
export class FileTail {
  readonly #path: string;
  readonly #space = Buffer.alloc(chunkBytes);
  #file: FileHandle | undefined;
  #offset = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws SourceError when it can't be had. */
  async open(): Promise<void> {
    try {
      this.#file = await open(this.#path);
    } catch (error) {
      throw unreadable(this.#path, error);
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  /** Reads all that is there by now, of a file that took this one's place too. */
  async read(sink: LogSink): Promise<void> {
    for (;;) {
      const file = this.#file;
      if (file === undefined) return;
      // Before it is read: what is written between the two is read next time, and nothing of it is lost.
      const replaced = await this.#isReplaced(file);
      await this.#readOn(file, sink);
      if (!replaced) return;
      sink.endLine();
      const next = await open(this.#path).catch(() => undefined);
      // Between its going and its coming there may be none.
      if (next === undefined) return;
      await file.close();
      this.#file = next;
      this.#offset = 0;
    }
  }

  async #readOn(file: FileHandle, sink: LogSink): Promise<void> {
    if ((await file.stat()).size < this.#offset) {
      sink.endLine();
      this.#offset = 0;
    }
    for (;;) {
      const { bytesRead } = await file.read(this.#space, 0, chunkBytes, this.#offset);
      if (bytesRead === 0) return;
      this.#offset += bytesRead;
      sink.push(this.#space.subarray(0, bytesRead));
    }
  }

  async #isReplaced(file: FileHandle): Promise<boolean> {
    const named = await stat(this.#path, { bigint: true }).catch(() => undefined);
    if (named === undefined) return false;
    const { dev, ino } = await file.stat({ bigint: true });
    return named.dev !== dev || named.ino !== ino;
  }
}

/**
 * Shows a file, and with `follow` what is appended to it until `stop` aborts.
 * @throws SourceError
 */
export async function readLogFile(path: string, follow: boolean, sink: LogSink, stop: AbortSignal): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if (found.isDirectory()) throw new SourceError(`Cannot read ${path}: it is a folder: name a file in it`);
  if (!found.isFile()) return readStream(createReadStream(path), follow, sink, stop);
  const tail = new FileTail(path);
  await tail.open();
  try {
    await tail.read(sink);
    sink.caughtUp();
    while (follow && !stop.aborted) {
      await pause(lookMs, undefined, { signal: stop }).catch(() => {});
      await tail.read(sink);
    }
    if (!stop.aborted) sink.endLine();
  } finally {
    await tail.close();
  }
}

/** Shows what comes, to its end. A stream doesn't say what was there already, so one that is followed is shown as it comes. */
export async function readStream(
  stream: NodeJS.ReadableStream & { destroy(): void },
  follow: boolean,
  sink: LogSink,
  stop: AbortSignal,
): Promise<void> {
  const end = () => stream.destroy();
  stop.addEventListener("abort", end);
  if (follow) sink.caughtUp();
  try {
    for await (const chunk of stream) sink.push(Buffer.from(chunk));
  } catch (error) {
    if (!stop.aborted) throw unreadable("standard input", error);
  } finally {
    stop.removeEventListener("abort", end);
  }
  sink.endLine();
  sink.caughtUp();
}

function unreadable(path: string, error: unknown): SourceError {
  const code = codeOf(error);
  if (code === "ENOENT") return new SourceError(`Cannot read ${path}: there is no such file: name the one the log goes to`);
  if (code === "EACCES" || code === "EPERM") {
    return new SourceError(`Cannot read ${path}: no permission: sudo posline logs ${path}`);
  }
  return new SourceError(`Cannot read ${path}: ${messageOf(error)}`);
}
