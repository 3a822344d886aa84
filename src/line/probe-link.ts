import type { LineConfig } from "../config/config.ts";
import { silenceMs } from "../config/limits.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { bytesOf } from "../core/pieces.ts";
import type { Connection, ConnectionHandler, OpenTransport } from "../device/transport.ts";
import { msPerByte } from "../device/transport.ts";
import { type Crc16, otherReading } from "../wire/crc16.ts";
import type { Decoded, Framing } from "../wire/decoded.ts";
import { FrameReader } from "./frame-reader.ts";
import { silenceMsMax, writeMsMin } from "./limits.ts";

/** A received frame, or bytes that are not a frame, and the reading of CRC16 they were read by. */
export interface ReceivedItem {
  readonly item: Decoded;
  readonly crc16: Crc16;
  /** On `nowMs`'s scale. */
  readonly atMs: number;
}

/** How a wait ended: the awaited came, nothing came in time, the line was lost, or the line took no bytes. */
export type WaitResult = "received" | "silence" | "lost" | "stuck";

/** Bytes kept as they came, to be shown and recognised. */
const bytesKeptMax = 4_096;

/**
 * A connection to a line for probes, one after the other. All that comes is kept, read by both readings of CRC16 at once: an answer that
 * only the other reading takes for whole is the proof that is sought. The line opens once, since each opening raises DTR, which resets some
 * terminals.
 */
export class ProbeLink {
  /** Frames and discards that the bytes became, in order. */
  readonly received: ReceivedItem[] = [];
  /** The first bytes that came since `clearReceived`, as they came. */
  raw: Buffer = Buffer.alloc(0);
  /** Count of bytes that came since `clearReceived`. */
  rawBytes = 0;
  /** When the last byte came, or the line was opened. */
  lastByteMs = 0;
  /** Why the line was lost; undefined while it isn't. */
  lost: string | undefined;
  readonly #config: LineConfig;
  readonly #frameMs: number;
  readonly #readers: readonly { readonly crc16: Crc16; readonly reader: FrameReader }[];
  readonly #space = Buffer.alloc(65_536);
  readonly #deadline = new Deadline(() => this.#look(nowMs()));
  #opening: Connection | undefined;
  #writing = false;
  #wait: { dueMs: number; readonly done: () => boolean; readonly end: (done: boolean) => void } | undefined;

  /** @param frameMs How long a wait may be extended by frames that have begun. */
  constructor(config: LineConfig, framings: ReadonlySet<Framing>, frameMs: number) {
    this.#config = config;
    this.#frameMs = frameMs;
    const other = otherReading(config.crc16);
    const readings = framings.has("length") ? [config.crc16, other] : [config.crc16];
    this.#readers = readings.map((crc16) => ({ crc16, reader: new FrameReader({ ...config, crc16 }, framings) }));
  }

  /**
   * Opens the line and waits until it is silent: what is received before may be older than the connection.
   * @throws OpenError saying why it can't be opened, and what to do.
   */
  async open(open: OpenTransport): Promise<void> {
    const handler: ConnectionHandler = {
      space: () => this.#space,
      onBytes: (n) => this.#receive(n),
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
    this.lastByteMs = openedMs;
    const silent = () => nowMs() >= Math.min(this.lastByteMs + silenceMs, openedMs + silenceMsMax);
    while (this.lost === undefined && !silent()) {
      await this.#until(() => this.lost !== undefined, this.lastByteMs + silenceMs);
    }
    for (const { crc16, reader } of this.#readers) this.#collect(reader.reset(), crc16, nowMs());
  }

  /** Discards what was received: what comes now belongs to the next probe. */
  clearReceived(): void {
    this.received.length = 0;
    this.raw = Buffer.alloc(0);
    this.rawBytes = 0;
  }

  /** Waits until no byte of an unfinished frame is pending: what came broken must not take the next answer with it. */
  async waitForFrameEnd(): Promise<void> {
    const between = () => this.lost !== undefined || this.#readers.every(({ reader }) => reader.between);
    await this.#until(between, nowMs() + silenceMsMax);
  }

  /** Sends a frame, and waits for something that `fits`, or until `waitMs` after its last byte; a frame that comes may end. */
  async request(frame: readonly Buffer[], fits: (received: ReceivedItem) => boolean, waitMs: number): Promise<WaitResult> {
    await this.#until(() => this.lost !== undefined, this.lastByteMs + this.#config.pauseMs);
    if (this.#opening === undefined || this.lost !== undefined) return "lost";
    const wireMs = bytesOf(frame) * msPerByte(this.#config);
    this.#writing = true;
    this.#opening.write(frame);
    const came = () => this.lost !== undefined || this.received.some(fits);
    await this.#until(() => came() || !this.#writing, nowMs() + writeMsMin + 2 * wireMs);
    if (!came() && this.#writing) return "stuck";
    return this.wait(fits, waitMs + wireMs);
  }

  /** Goes on waiting for something that `fits`. */
  async wait(fits: (received: ReceivedItem) => boolean, waitMs: number): Promise<WaitResult> {
    const came = () => this.lost !== undefined || this.received.some(fits);
    let dueMs = nowMs() + waitMs;
    // A frame that has begun has clocks of its own, which end it by a reset. A babbling line begins frame after frame, hence `endMs`.
    const endMs = dueMs + this.#frameMs;
    while (!(await this.#until(came, dueMs))) {
      if (nowMs() >= endMs || !this.#readers.some(({ reader }) => reader.begun)) return "silence";
      dueMs = Math.min(endMs, Math.max(dueMs, this.#readersDueMs()));
    }
    return this.received.some(fits) ? "received" : "lost";
  }

  /** Waits until no byte has come for so long, but no longer than `msMax`; false when it was never silent for so long. */
  async silence(ms: number, msMax: number): Promise<boolean> {
    const endMs = nowMs() + msMax;
    const from = nowMs();
    const quietAt = () => Math.max(this.lastByteMs, from) + ms;
    while (this.lost === undefined && nowMs() < Math.min(quietAt(), endMs)) {
      await this.#until(() => this.lost !== undefined, Math.min(quietAt(), endMs));
    }
    return nowMs() >= quietAt();
  }

  async close(): Promise<void> {
    this.#deadline.dispose();
    await this.#opening?.close();
  }

  #receive(n: number): void {
    const now = nowMs();
    this.lastByteMs = now;
    const bytes = this.#space.subarray(0, n);
    this.rawBytes += n;
    if (this.raw.length < bytesKeptMax) this.raw = Buffer.concat([this.raw, bytes]).subarray(0, bytesKeptMax);
    for (const { crc16, reader } of this.#readers) {
      for (let from = 0; from < n; ) {
        const copied = bytes.copy(reader.space(), 0, from);
        from += copied;
        this.#collect(reader.heard(copied, now), crc16, now);
      }
    }
    this.#look(now);
  }

  /**
   * Collects what a reading found. Both readings see the same noise and the same STX frames, so those are taken from the configured one
   * only.
   */
  #collect(decoded: readonly Decoded[], crc16: Crc16, atMs: number): void {
    for (const item of decoded) {
      const own = crc16 === this.#config.crc16;
      if (own || (item.kind === "frame" && item.framing === "length")) this.received.push({ item, crc16, atMs });
    }
  }

  #readersDueMs(): number {
    return Math.min(...this.#readers.map(({ reader }) => reader.dueMs));
  }

  /** Ends frames whose time is over. */
  #overdue(now: number): void {
    for (const { crc16, reader } of this.#readers) {
      if (now >= reader.dueMs) this.#collect(reader.overdue(now), crc16, now);
    }
  }

  /** Waits until `done()` or until a moment; true if it is done. */
  #until(done: () => boolean, dueMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.#wait = { done, dueMs, end: resolve };
      this.#look(nowMs());
    });
  }

  #look(now: number): void {
    this.#overdue(now);
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
