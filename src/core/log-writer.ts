import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { isatty } from "node:tty";
import { blockFor } from "./clock.ts";
import { codeOf } from "./error-code.ts";

/**
 * Where log lines leave. Several leave in one write; while the reader takes none, or the disk is full, they are held up to a bound,
 * then dropped and counted. A reader that stopped must stop neither the service nor its end: so nothing here ever blocks, neither
 * this thread nor one of the pool, which the process would wait for when it ends.
 */

/** Milliseconds a line may be held back, so that many leave in one write; a reader that follows doesn't notice. */
const holdMs = 50;

/** Bytes that are written without waiting any longer. */
const writeBytes = 16_384;

/** Milliseconds between two attempts while the reader takes none. */
const retryMs = 100;

/** Milliseconds that `flush` waits for a reader before the process ends. */
const flushMsMax = 500;

/** Milliseconds between two attempts within `flush`. */
const flushStepMs = 5;

export interface LogWriterOptions {
  readonly fd: number;
  /** Bytes held while the reader takes none. */
  readonly heldBytesMax: number;
  /** Called before what is held is written: lines that are held back elsewhere come now. */
  readonly gather?: () => void;
  /** Makes the line that tells how many were dropped, once there is room again; `refusal` is the system's code. */
  readonly droppedLine: (dropped: number, refusal: string) => string;
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #descriptor: Descriptor;
  #lines: string[] = [];
  #linesBytes = 0;
  /** What a write left over. */
  #rest: Buffer = empty;
  #dropped = 0;
  #droppedEver = 0;
  /** Attempts in a row of which the reader took nothing. */
  #refusals = 0;
  /** Why it took nothing the last time, as the system's code. */
  #refusal = "";
  #timer: NodeJS.Timeout | undefined;
  #readerGone = false;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#descriptor = unblocked(options.fd);
  }

  /** Takes one line, with its line end. */
  write(line: string): void {
    if (this.#readerGone) return;
    // Text beyond ASCII takes more bytes than this counts, at most three times as many: the bound is one of memory, not exact.
    if (this.#linesBytes + this.#rest.length + line.length > this.#options.heldBytesMax) {
      this.#dropped++;
      this.#droppedEver++;
      return;
    }
    this.#lines.push(line);
    this.#linesBytes += line.length;
    if (this.#rest.length === 0 && this.#linesBytes >= writeBytes) this.#drain();
    else this.expect();
  }

  /** A line is held back elsewhere: `gather` is called as soon as one that is held here would be written. */
  expect(): void {
    if (!this.#readerGone) this.#timer ??= setTimeout(() => this.#drain(), holdMs);
  }

  /** Lines dropped since it was opened. */
  get droppedEver(): number {
    return this.#droppedEver;
  }

  /** Writes what is held, as far as the reader takes it within half a second. */
  flush(): void {
    for (let waitedMs = 0; !this.#drain() && waitedMs < flushMsMax; waitedMs += flushStepMs) blockFor(flushStepMs);
  }

  /** Lets go of the descriptor, if it has one of its own; nothing may be written any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#readerGone = true;
    if (this.#descriptor.own) closeSync(this.#descriptor.fd);
  }

  /** Writes all that is held; false while the reader takes none. */
  #drain(): boolean {
    this.#options.gather?.();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (!this.#readerGone && (this.#rest.length > 0 || this.#lines.length > 0)) {
      if (this.#rest.length === 0) this.#join();
      if (this.#attempt()) continue;
      this.#timer = setTimeout(() => this.#drain(), retryMs);
      // A slow reader is worth staying for when the process has nothing else to do; one that stopped isn't.
      if (++this.#refusals * retryMs > flushMsMax) this.#timer.unref();
      return false;
    }
    if (this.#dropped === 0 || this.#readerGone) return true;
    this.#lines.push(this.#options.droppedLine(this.#dropped, this.#refusal));
    this.#dropped = 0;
    return this.#drain();
  }

  #join(): void {
    this.#rest = Buffer.from(this.#lines.join(""));
    this.#lines = [];
    this.#linesBytes = 0;
  }

  /** One write; false when the reader takes none now. */
  #attempt(): boolean {
    try {
      this.#rest = this.#rest.subarray(writeSync(this.#descriptor.fd, this.#rest));
      this.#refusals = 0;
      return true;
    } catch (error) {
      const code = codeOf(error);
      // A reader that went away (`posline serve | head`) must not end the service.
      this.#readerGone = code === "EPIPE" || code === "EBADF";
      if (this.#readerGone) return true;
      // A full disk may have room again, and what went out may end within a line: the rest of it must come first then.
      this.#refusal = code ?? String(error);
      return false;
    }
  }
}

const empty = Buffer.alloc(0);

interface Descriptor {
  readonly fd: number;
  /** True when it was opened here. */
  readonly own: boolean;
  /** Kept, since a socket that is collected closes its descriptor. */
  readonly socket?: Socket;
}

/** The descriptor in a form that never blocks, where it is one whose reader may stop: a pipe, a socket or a terminal. */
function unblocked(fd: number): Descriptor {
  try {
    const stat = fstatSync(fd);
    // Opening a socket on it is how Node can be made to set it non-blocking; at its exit it restores what it found on 1 and 2.
    if (stat.isFIFO() || stat.isSocket()) return { fd, own: false, socket: new Socket({ fd, readable: false }).unref() };
    // A terminal is shared with the shell that started this process, so it gets an opening of its own.
    const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
    if (isatty(fd)) return { fd: openSync(`/proc/self/fd/${fd}`, flags), own: true };
  } catch {
    // What can't be had that way is written as it is.
  }
  return { fd, own: false };
}
