import { blockFor } from "./clock.ts";
import { codeOf } from "./error-code.ts";
import { type LogOutput, lineEnd, linesIn } from "./log-output.ts";

/**
 * Writes log lines out. Several leave in one write; while the reader takes none, or the disk is full, they are held up to a bound, then
 * dropped and counted. If the reader went away for good, they are dropped and counted at once. A reader that stopped must stop neither the
 * service nor its end: so nothing here ever blocks, neither this thread nor one of the pool, which the process would wait for when it ends.
 */

/** Milliseconds a line may be held back, so that many leave in one write; a reader that follows doesn't notice. */
const holdMs = 50;

/** Bytes that are written without waiting any longer. */
const writeBytes = 16_384;

/** Milliseconds between two attempts while the reader takes none. */
const retryMs = 100;

/** Milliseconds that `flush` waits for a reader before the process ends; one that takes none for longer has stopped. */
const flushMsMax = 500;

/** Milliseconds between two attempts within `flush`. */
const flushStepMs = 5;

export interface LogWriterOptions {
  readonly output: LogOutput;
  /** Makes the output that takes the place of one whose reader went away, if there can be one. */
  readonly replace?: (() => LogOutput) | undefined;
  /** Bytes held while the reader takes none. */
  readonly heldBytesMax: number;
  /** Called before held lines are written: lines that are held back elsewhere come now. */
  readonly gather?: () => void;
  /** Makes the line that tells how many were dropped, once there is room again; `refusal` is the system's code. */
  readonly droppedLine: (dropped: number, refusal: string) => string;
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  #output: LogOutput;
  #lines: string[] = [];
  #linesBytes = 0;
  /** Lines that were joined to leave together, and how many bytes of them have left. */
  #chunk: Buffer = empty;
  #left = 0;
  #dropped = 0;
  #droppedEver = 0;
  /** Count of attempts in a row of which the reader took nothing. */
  #refusals = 0;
  /** Why lines wait now, or were dropped the last time, as the system's code. */
  #refusal = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#output = options.output;
  }

  /** Takes one line, with its line end. */
  write(line: string): void {
    // Text beyond ASCII takes more bytes than this counts, at most three times as many: the bound is one of memory, not exact.
    if (this.#linesBytes + this.#chunk.length - this.#left + line.length > this.#options.heldBytesMax) {
      this.#drop(1);
      return;
    }
    this.#lines.push(line);
    this.#linesBytes += line.length;
    if (this.#chunk.length === this.#left && this.#linesBytes >= writeBytes) this.#drain();
    else this.expect();
  }

  /** Notes that a line is held back elsewhere: `gather` is called as soon as one that is held here would be written. */
  expect(): void {
    this.#timer ??= setTimeout(() => this.#drain(), holdMs);
  }

  /** Takes back bytes that did not reach their reader: they leave once more, before all else. */
  takeBack(bytes: Buffer): void {
    this.#chunk = Buffer.concat([bytes, this.#chunk.subarray(this.#left)]);
    this.#left = 0;
    this.expect();
  }

  /** Count of lines dropped since the opening. */
  get droppedEver(): number {
    return this.#droppedEver;
  }

  /** Why lines don't leave, as the system's code; undefined while they do, and while the reader is only slow. */
  get blockage(): string | undefined {
    const isSlow = this.#refusal === slow && !this.#hasStopped;
    return this.#refusals === 0 || isSlow ? undefined : this.#refusal;
  }

  /** Writes held lines, as far as the reader takes them within half a second. */
  flush(): void {
    for (let waitedMs = 0; !this.#drain() && waitedMs < flushMsMax; waitedMs += flushStepMs) blockFor(flushStepMs);
  }

  #drop(lines: number): void {
    this.#dropped += lines;
    this.#droppedEver += lines;
  }

  get #hasStopped(): boolean {
    return this.#refusals * retryMs > flushMsMax;
  }

  /** Writes all held lines; false while the reader takes none. */
  #drain(): boolean {
    this.#options.gather?.();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#left < this.#chunk.length || this.#lines.length > 0) {
      if (this.#left === this.#chunk.length) this.#join();
      if (this.#attempt()) continue;
      // Lines aren't held for a reader that is gone for good; the next line tries again, since a pipe with a name may get another one.
      if (this.#left === this.#chunk.length) return true;
      this.#timer = setTimeout(() => this.#drain(), retryMs);
      // A slow reader is worth staying for when the process has nothing else to do; a stopped one isn't.
      if (this.#hasStopped) this.#timer.unref();
      return false;
    }
    if (this.#dropped === 0 || this.#refusals > 0) return true;
    this.#lines.push(this.#options.droppedLine(this.#dropped, this.#refusal));
    this.#dropped = 0;
    return this.#drain();
  }

  #join(): void {
    this.#chunk = Buffer.from(this.#lines.join(""));
    this.#left = 0;
    this.#lines = [];
    this.#linesBytes = 0;
  }

  /** Writes once; false if the reader takes none now. */
  #attempt(): boolean {
    try {
      this.#left += this.#output.write(this.#chunk.subarray(this.#left));
      this.#refusals = 0;
      return true;
    } catch (error) {
      this.#refusals++;
      this.#refusal = codeOf(error) ?? String(error);
      // A reader that went away (`posline serve | head`) must not end the service. A full disk may have room again, and the bytes that went
      // out may end within a line: the rest of it must come first then.
      if (isGone(this.#refusal)) this.#readerGone();
      return false;
    }
  }

  #readerGone(): void {
    const { replace } = this.#options;
    // Another reader begins with a whole line.
    if (this.#left > 0) this.#left = this.#chunk.lastIndexOf(lineEnd, this.#left - 1) + 1;
    if (replace !== undefined) {
      this.#output = replace();
      return;
    }
    this.#drop(linesIn(this.#chunk.subarray(this.#left)) + this.#lines.length);
    this.#left = this.#chunk.length;
    this.#lines = [];
    this.#linesBytes = 0;
  }
}

const empty = Buffer.alloc(0);

/** The system's code of a reader that is there and takes none now. */
const slow = "EAGAIN";

/** The system's codes of a reader that went away. */
const gone: ReadonlySet<string> = new Set(["EPIPE", "ECONNRESET", "EBADF"]);

/** Whether the system's code says that the reader went away. */
export const isGone = (refusal: string): boolean => gone.has(refusal);
