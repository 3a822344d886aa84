import { type LogEvent, readEvent, withoutPriority } from "./event.ts";
import { Filter, type Wanted } from "./filter.ts";
import { LineSplitter, type RawLine } from "./lines.ts";
import { coloured, plainJson, uncoloured, withoutColours } from "./paint.ts";
import { Renderer } from "./render.ts";

/** A view of a log: bytes of it in, as they come; what is to be shown of them out. */

export interface ViewOptions {
  readonly wanted: Wanted;
  /** Only so many of the last lines of what is there already; all when undefined. */
  readonly last: number | undefined;
  /** Gives posline's own lines as they are, in place of what people read. */
  readonly json: boolean;
  readonly colour: boolean;
  /** True when what is shown goes straight to a terminal, which must not be commanded by it. */
  readonly terminal: boolean;
  /** When text is thought to be written that no line with a time stands before. */
  readonly timeMs?: number | undefined;
  /** Whether a text is the source's own word, and none of the log's. */
  readonly skips?: (text: string) => boolean;
  readonly out: (bytes: Buffer) => void;
}

/** Where a source's bytes go. */
export interface Sink {
  bytes(chunk: Buffer): void;
  /** What follows begins anew: a part of a line stands for itself. */
  cut(): void;
  /** All that was there already has come; what comes now is shown as it comes. */
  settled(): void;
}

interface Shown {
  readonly event: LogEvent;
  readonly raw: Buffer;
}

export class View implements Sink {
  readonly #options: ViewOptions;
  readonly #lines = new LineSplitter();
  readonly #filter: Filter;
  readonly #renderer: Renderer;
  /** The last lines so far, while more may come that are there already. */
  #last: Shown[] | undefined;
  #pending: (string | Buffer)[] = [];
  /** True until a line came that is wanted. */
  isEmpty = true;

  constructor(options: ViewOptions) {
    this.#options = options;
    this.#filter = new Filter(options.wanted, options.timeMs);
    this.#renderer = new Renderer({
      paint: options.colour ? coloured : uncoloured,
      dates: options.terminal ? "change" : "each",
    });
    this.#last = options.last === undefined ? undefined : [];
  }

  bytes(chunk: Buffer): void {
    this.#lines.push(chunk, (line) => this.#take(line));
    this.#flush();
  }

  cut(): void {
    this.#lines.end((line) => this.#take(line));
    this.#flush();
  }

  settled(): void {
    const last = this.#last ?? [];
    this.#last = undefined;
    for (const shown of last.slice(Math.max(0, last.length - (this.#options.last ?? 0)))) this.#show(shown);
    this.#flush();
  }

  #take({ bytes, omittedBytes }: RawLine): void {
    const raw = bytes.toString().replace(/\r$/, "");
    const event = omittedBytes > 0 ? tooLong(raw, omittedBytes) : readEvent(raw);
    if (event.kind === "text" && this.#passesOver(event.text)) return;
    if (!this.#filter.wants(event, raw, () => withoutColours(this.#renderer.line(event)))) return;
    this.isEmpty = false;
    if (this.#last === undefined) this.#show({ event, raw: bytes });
    // A line of a chunk that was read would keep all of the chunk.
    else this.#hold(this.#last, { event, raw: this.#options.json ? Buffer.from(bytes) : empty });
  }

  /** Keeps as many as are wanted, and seldom moves them. */
  #hold(last: Shown[], shown: Shown): void {
    const { last: count = 0 } = this.#options;
    last.push(shown);
    if (last.length > 2 * count + 64) last.splice(0, last.length - count);
  }

  #passesOver(text: string): boolean {
    return this.#options.skips?.(text) === true || this.#options.json || text === "";
  }

  #show({ event, raw }: Shown): void {
    if (!this.#options.json) this.#pending.push(this.#renderer.next(event));
    else if (this.#options.terminal) this.#pending.push(`${plainJson(withoutPriority(raw.toString()))}\n`);
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

function tooLong(text: string, omittedBytes: number): LogEvent {
  return { kind: "text", text: `${text}… (${omittedBytes} more bytes without a line end)` };
}
