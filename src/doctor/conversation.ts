import type { LineConfig } from "../config/config.ts";
import { payloadMsMin, silenceMs } from "../config/limits.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { bytesOf } from "../core/pieces.ts";
import type { Connection, ConnectionHandler, OpenTransport } from "../device/transport.ts";
import { msPerByte } from "../device/transport.ts";
import { FrameReader } from "../line/frame-reader.ts";
import { silenceMsMax, writeMsMin } from "../line/limits.ts";
import type { Crc16 } from "../wire/crc16.ts";
import type { Decoded, Framing } from "../wire/decoded.ts";

/** Something that was heard: a frame, or bytes that became none, and by which reading of CRC16. */
export interface Heard {
  readonly item: Decoded;
  readonly crc16: Crc16;
  /** On `nowMs`'s scale. */
  readonly atMs: number;
}

/** How a question ended: what was waited for came, it did not, the line was lost, or the line took no bytes. */
export type Ending = "heard" | "silence" | "lost" | "stuck";

/** Bytes as they came that are kept, to be shown and to be recognised. */
const bytesKeptMax = 4_096;

/**
 * One opening of a line, on which questions are asked one after the other, with all that is heard kept, and by both readings of
 * CRC16 at once: an answer that only the other reading takes for whole is the proof that is sought. It opens once, since each
 * opening raises DTR, which resets some terminals.
 */
export class Conversation {
  /** What became of the bytes, in order. */
  readonly heard: Heard[] = [];
  /** The first bytes that came since `forget`, as they came. */
  raw: Buffer = Buffer.alloc(0);
  /** All bytes that came since `forget`. */
  rawBytes = 0;
  /** When the last byte came, or the line was opened. */
  lastMs = 0;
  /** Why the line is lost, once it is. */
  lost: string | undefined;
  readonly #config: LineConfig;
  readonly #readers: readonly { readonly crc16: Crc16; readonly reader: FrameReader }[];
  readonly #space = Buffer.alloc(65_536);
  readonly #deadline = new Deadline(() => this.#look(nowMs()));
  #opening: Connection | undefined;
  #writing = false;
  #wait: { dueMs: number; readonly done: () => boolean; readonly end: (done: boolean) => void } | undefined;

  constructor(config: LineConfig, framings: ReadonlySet<Framing>) {
    this.#config = config;
    const other: Crc16 = config.crc16 === "arc" ? "umts" : "arc";
    const readings = framings.has("length") ? [config.crc16, other] : [config.crc16];
    this.#readers = readings.map((crc16) => ({ crc16, reader: new FrameReader({ ...config, crc16 }, framings) }));
  }

  /**
   * Opens the line and waits until it is silent: what is heard before may be older than the opening.
   * @throws OpenError saying why it can't be opened, and what to do.
   */
  async open(open: OpenTransport): Promise<void> {
    const handler: ConnectionHandler = {
      space: () => this.#space,
      onBytes: (n) => this.#take(n),
      onWritten: () => {
        this.#writing = false;
        this.#look(nowMs());
      },
      onClosed: (reason) => {
        this.lost = reason;
        this.#look(nowMs());
      },
    };
    this.#opening = await open(handler);
    const openedMs = nowMs();
    this.lastMs = openedMs;
    const silent = () => nowMs() >= Math.min(this.lastMs + silenceMs, openedMs + silenceMsMax);
    while (this.lost === undefined && !silent()) {
      await this.#until(() => this.lost !== undefined, this.lastMs + silenceMs);
    }
    this.#reset(nowMs(), () => true);
  }

  /** Forgets what was heard: what comes now belongs to the next question. */
  forget(): void {
    this.heard.length = 0;
    this.raw = Buffer.alloc(0);
    this.rawBytes = 0;
  }

  /** Waits until no byte of an unfinished frame is pending: what came broken must not take the next answer with it. */
  async settle(): Promise<void> {
    const between = () => this.lost !== undefined || this.#readers.every(({ reader }) => reader.between);
    await this.#until(between, nowMs() + silenceMsMax);
  }

  /** Sends a frame, and waits for something that `fits`, or until `waitMs` after its last byte; a frame that comes may end. */
  async ask(frame: readonly Buffer[], fits: (heard: Heard) => boolean, waitMs: number): Promise<Ending> {
    if (this.#opening === undefined || this.lost !== undefined) return "lost";
    const wireMs = bytesOf(frame) * msPerByte(this.#config);
    this.#writing = true;
    this.#opening.write(frame);
    const came = () => this.lost !== undefined || this.heard.some(fits);
    await this.#until(() => came() || !this.#writing, nowMs() + writeMsMin + 2 * wireMs);
    if (!came() && this.#writing) return "stuck";
    return this.wait(fits, waitMs + wireMs);
  }

  /** Goes on waiting for something that `fits`. */
  async wait(fits: (heard: Heard) => boolean, waitMs: number): Promise<Ending> {
    const came = () => this.lost !== undefined || this.heard.some(fits);
    let dueMs = nowMs() + waitMs;
    // A frame that has begun has clocks of its own, which end it by being reset; who babbles begins one after the other.
    const endMs = dueMs + 2 * payloadMsMin;
    while (!(await this.#until(came, dueMs))) {
      if (nowMs() >= endMs || !this.#readers.some(({ reader }) => reader.begun)) return "silence";
      dueMs = Math.min(endMs, Math.max(dueMs, this.#readersDueMs()));
    }
    return this.heard.some(fits) ? "heard" : "lost";
  }

  /** Waits until no byte has come for so long, but no longer than `msMax`; false when it was never silent for so long. */
  async silence(ms: number, msMax: number): Promise<boolean> {
    const endMs = nowMs() + msMax;
    const from = nowMs();
    const quietAt = () => Math.max(this.lastMs, from) + ms;
    while (this.lost === undefined && nowMs() < Math.min(quietAt(), endMs)) {
      await this.#until(() => this.lost !== undefined, Math.min(quietAt(), endMs));
    }
    return nowMs() >= quietAt();
  }

  async close(): Promise<void> {
    this.#deadline.dispose();
    await this.#opening?.close();
  }

  #take(n: number): void {
    const now = nowMs();
    this.lastMs = now;
    const bytes = this.#space.subarray(0, n);
    this.rawBytes += n;
    if (this.raw.length < bytesKeptMax) this.raw = Buffer.concat([this.raw, bytes]).subarray(0, bytesKeptMax);
    for (const { crc16, reader } of this.#readers) {
      for (let from = 0; from < n; ) {
        const copied = bytes.copy(reader.space(), 0, from);
        from += copied;
        this.#note(reader.heard(copied, now), crc16, now);
      }
    }
    this.#look(now);
  }

  /** Both readings see the same noise and the same STX frames: once is enough. */
  #note(decoded: readonly Decoded[], crc16: Crc16, atMs: number): void {
    for (const item of decoded) {
      const own = crc16 === this.#config.crc16;
      if (own || (item.kind === "frame" && item.framing === "length")) this.heard.push({ item, crc16, atMs });
    }
  }

  #readersDueMs(): number {
    return Math.min(...this.#readers.map(({ reader }) => reader.dueMs));
  }

  /** Ends what is pending, where its time is over. */
  #reset(now: number, isOver = (reader: FrameReader) => now >= reader.dueMs): void {
    for (const { crc16, reader } of this.#readers) if (isOver(reader)) this.#note(reader.reset(), crc16, now);
  }

  /** Waits until something is so, or until a moment; true when it is so. */
  #until(done: () => boolean, dueMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.#wait = { done, dueMs, end: resolve };
      this.#look(nowMs());
    });
  }

  #look(now: number): void {
    this.#reset(now);
    const wait = this.#wait;
    if (wait === undefined) return;
    const done = wait.done();
    if (done || now >= wait.dueMs) {
      this.#wait = undefined;
      this.#deadline.clear();
      wait.end(done);
    } else {
      this.#deadline.set(Math.min(wait.dueMs, this.#readersDueMs()), now);
    }
  }
}
