import { type LogEvent, readEvent, withoutPriority } from "./event.ts";
import { type LogCriteria, LogFilter } from "./filter.ts";
import { LineSplitter, type RawLine } from "./line-splitter.ts";
import { LogRenderer } from "./render.ts";
import { coloured, terminalSafeJson, uncoloured, withoutColours } from "./terminal-text.ts";

/** A view of a log: takes bytes as they come, and gives the text to show. */

export interface LogViewOptions {
  readonly criteria: LogCriteria;
  /** Count of the last lines to show of those that are there already; all if undefined. */
  readonly last?: number | undefined;
  /** True to give posline's own lines as they are, in place of the form for people. */
  readonly json?: boolean;
  readonly colour?: boolean;
  /** True if the text goes straight to a terminal, to which it must not send commands. */
  readonly terminal?: boolean;
  /** The time assumed for text that no line with a time precedes. */
  readonly timeMs?: number | undefined;
  /** True if a text is the source's own, and not a line of the log. */
  readonly skips?: (text: string) => boolean;
  readonly out: (bytes: Buffer) => void;
}

/** Takes the bytes of a source. */
export interface LogSink {
  push(chunk: Buffer): void;
  /** The source ended or was replaced: a pending part of a line is a line of its own. */
  endLine(): void;
  /** All lines that were there already have come; later ones are shown as they come. */
  caughtUp(): void;
}

interface HeldLine {
  readonly event: LogEvent;
  readonly raw: Buffer;
}

export class LogView implements LogSink {
  readonly #options: LogViewOptions;
  readonly #lines = new LineSplitter();
  readonly #filter: LogFilter;
  readonly #renderer: LogRenderer;
  /** The last lines so far, while more may come that are there already. */
  #last: HeldLine[] | undefined;
  #pending: (string | Buffer)[] = [];
  /** True until a wanted line came. */
  isEmpty = true;

  constructor(options: LogViewOptions) {
    this.#options = options;
    this.#filter = new LogFilter(options.criteria, options.timeMs);
    this.#renderer = new LogRenderer({
      colour: options.colour === true ? coloured : uncoloured,
      dates: options.terminal === true ? "change" : "each",
    });
    this.#last = options.last === undefined ? undefined : [];
  }

  push(chunk: Buffer): void {
    this.#lines.push(chunk, (line) => this.#take(line));
    this.#flush();
  }

  endLine(): void {
    this.#lines.end((line) => this.#take(line));
    this.#flush();
  }

  caughtUp(): void {
    const last = this.#last ?? [];
    this.#last = undefined;
    for (const line of last.slice(Math.max(0, last.length - (this.#options.last ?? 0)))) this.#show(line);
    this.#flush();
  }

  #take({ bytes, omittedBytes }: RawLine): void {
    const raw = bytes.toString().replace(/\r$/, "");
    const event = omittedBytes > 0 ? tooLong(raw, omittedBytes) : readEvent(raw);
    const glued = event.kind === "text" ? bytes.lastIndexOf(recordStart) : 0;
    if (glued > 0 && readEvent(bytes.toString("utf8", glued)).kind !== "text") {
      this.#take({ bytes: bytes.subarray(0, glued), omittedBytes: 0 });
      this.#take({ bytes: bytes.subarray(glued), omittedBytes });
      return;
    }
    if (event.kind === "text" && this.#isOmitted(event.text)) return;
    if (!this.#filter.matches(event, raw, () => withoutColours(this.#renderer.line(event)))) return;
    this.isEmpty = false;
    if (this.#last === undefined) this.#show({ event, raw: bytes });
    // Copied, since a line of a chunk that was read would keep all of the chunk.
    else this.#hold(this.#last, { event, raw: this.#options.json ? Buffer.from(bytes) : empty });
  }

  /** Keeps as many as are wanted, and seldom moves them. */
  #hold(last: HeldLine[], line: HeldLine): void {
    const { last: count = 0 } = this.#options;
    last.push(line);
    if (last.length > 2 * count + 64) last.splice(0, last.length - count);
  }

  #isOmitted(text: string): boolean {
    return this.#options.skips?.(text) === true || this.#options.json === true || text === "";
  }

  #show({ event, raw }: HeldLine): void {
    if (!this.#options.json) this.#pending.push(this.#renderer.next(event));
    else if (this.#options.terminal) this.#pending.push(`${terminalSafeJson(withoutPriority(raw.toString()))}\n`);
    else this.#pending.push(raw[0] === 0x3c ? raw.subarray(3) : raw, "\n");
  }

  #flush(): void {
    if (this.#pending.length === 0) return;
    const pieces = this.#pending;
    this.#pending = [];
    this.#options.out(Buffer.concat(pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece))));
  }
}

const empty = Buffer.alloc(0);

/**
 * The beginning of posline's records, which can't be within one, where it would be escaped. A power cut, or a process that is killed,
 * leaves half a line, and the next record follows it without a line end.
 */
const recordStart = '{"level":"';

function tooLong(text: string, omittedBytes: number): LogEvent {
  return { kind: "text", text: `${text}… (${omittedBytes} more bytes without a line end)` };
}
