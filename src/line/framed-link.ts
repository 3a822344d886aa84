import type { LineConfig } from "../config/config.ts";
import { silenceMs } from "../config/limits.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { bytesOf } from "../core/pieces.ts";
import type { Connection, ConnectionHandler, OpenTransport } from "../device/transport.ts";
import { msPerByte } from "../device/transport.ts";
import type { Decoded, Discard, Framing } from "../wire/decoded.ts";
import { FrameReader, type Receiving } from "./frame-reader.ts";
import { silenceMsMax, writeMsMin } from "./limits.ts";
import { Reconnector } from "./reconnect.ts";

/**
 * A transport that is opened again for ever, with frames in place of bytes: the bytes of the present opening, the silence that an opening of
 * ours begins with, and one write at a time. The link owns every clock that hangs on bytes, so its user, the line that asks or the listener
 * that answers, has none of them. The meaning of the frames is its user's affair.
 */

/** The user of a framed link. Nothing is called before `start`, nor after `stop`. */
export interface FramedLinkUser {
  /** The device opened. Bytes received before `drained` may be older than the opening. */
  opened(): void;
  /** The silence came that an opening of ours begins with: from now on the device may be written. At once, if the far end opened it. */
  drained(): void;
  /** Bytes came, or pending ones have had their time. `items` are the frames and discards they became, often none yet. */
  received(items: readonly Decoded[], receiving: Receiving): void;
  /** The kernel accepted the last byte of the write. */
  wrote(): void;
  /** The device is lost. `nothingWritten`: the kernel accepted no byte of the write under way. */
  lost(reason: string, loss: { readonly nothingWritten: boolean; readonly discards: readonly Discard[] }): void;
  /** The device could not be opened, and is tried again. */
  openFailed(reason: string): void;
}

/** Settings and parts of a framed link. */
export interface FramedLinkOptions {
  readonly framings: ReadonlySet<Framing>;
  /** Bytes of the largest payload; a larger one is discarded. */
  readonly payloadBytesMax: number;
  /** True if the other end sends its next frame by itself, without an answer to the one before. */
  readonly sendsAnew?: boolean;
}

export class FramedLink {
  readonly #config: LineConfig;
  readonly #traffic: FramedLinkOptions;
  readonly #user: FramedLinkUser;
  readonly #reconnector: Reconnector;
  readonly #msPerByte: number;
  readonly #deadline = new Deadline(() => this.#due(nowMs()));
  #connection: Connection | undefined;
  #reader: FrameReader;
  /** True until the kernel accepted the last byte of the frame being written. */
  #writing = false;
  #writeDueMs = 0;
  /** Until when the silence after an opening must last; undefined once it did. */
  #drainUntilMs: number | undefined;
  #drainGiveUpMs = 0;

  constructor(config: LineConfig, traffic: FramedLinkOptions, open: OpenTransport, user: FramedLinkUser) {
    this.#config = config;
    this.#traffic = traffic;
    this.#user = user;
    this.#msPerByte = msPerByte(config);
    this.#reader = this.#newReader();
    const handler: ConnectionHandler = {
      space: () => this.#reader.space(),
      onBytes: (n) => this.#heard(n),
      coalesceMs: () => this.#reader.restMs(),
      onWritten: () => this.#wrote(),
      onClosed: (reason) => this.#lost(reason),
    };
    this.#reconnector = new Reconnector(open, () => handler, {
      opened: (connection) => this.#opened(connection),
      failed: (reason) => this.#user.openFailed(reason),
    });
  }

  start(): void {
    this.#reconnector.start();
  }

  /** Gives the device back for good. */
  async stop(): Promise<void> {
    this.#reconnector.stop();
    this.#deadline.dispose();
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.close();
  }

  get isOpen(): boolean {
    return this.#connection !== undefined;
  }

  get device(): string | undefined {
    return this.#connection?.device;
  }

  /** Milliseconds by which something due here is late. */
  overdueMs(now: number): number {
    return Math.max(this.#deadline.overdueMs(now), this.#reconnector.overdueMs(now));
  }

  /** True if something is awaited of the device, by a clock. */
  get isTimed(): boolean {
    return this.#deadline.isSet;
  }

  /** True if the device is open and past its first silence. */
  get isDrained(): boolean {
    return this.#connection !== undefined && this.#drainUntilMs === undefined;
  }

  /** True if nothing is being written, and no byte of an unfinished frame is pending. */
  get isStill(): boolean {
    return this.isDrained && !this.#writing && this.#reader.between;
  }

  /** Writes a frame; only while none is being written. */
  write(frame: readonly Buffer[], now: number): void {
    if (this.#connection === undefined || this.#writing) throw new Error("Cannot write a frame: another is being written");
    this.#writing = true;
    this.#reader.writes(frame);
    this.#connection.write(frame);
    // Most writes are over by now and need no clock.
    if (!this.#writing) return;
    this.#writeDueMs = now + writeMsMin + 2 * bytesOf(frame) * this.#msPerByte;
    this.#schedule(now);
  }

  /** Sets the device again if another program changed it. An opening has just done so, until its first silence. */
  lookAtSettings(): void {
    if (this.isDrained) this.#connection?.lookAtSettings?.();
  }

  #newReader(): FrameReader {
    const { framings, payloadBytesMax, sendsAnew } = this.#traffic;
    return new FrameReader(this.#config, framings, payloadBytesMax, sendsAnew);
  }

  #opened(connection: Connection): void {
    const now = nowMs();
    this.#connection = connection;
    this.#reader = this.#newReader();
    const isFresh = connection.isAccepted === true;
    this.#drainUntilMs = isFresh ? undefined : now + silenceMs;
    this.#drainGiveUpMs = now + silenceMsMax;
    this.#user.opened();
    if (isFresh) this.#user.drained();
    this.#schedule(now);
  }

  #heard(n: number): void {
    const now = nowMs();
    if (this.#drainUntilMs !== undefined) this.#drainUntilMs = Math.min(now + silenceMs, this.#drainGiveUpMs);
    this.#user.received(this.#reader.heard(n, now), this.#reader.receiving);
    this.#schedule(now);
  }

  #wrote(): void {
    // An answer hidden in bytes from before this write's last byte answers something older, whenever it is found.
    const hidden = this.#reader.hidden(nowMs());
    if (hidden.length > 0) this.#user.received(hidden, this.#reader.receiving);
    this.#writing = false;
    this.#user.wrote();
  }

  #lost(reason: string): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    const nothingWritten = this.#writing && connection.wroteBytes === 0;
    this.#connection = undefined;
    this.#writing = false;
    this.#deadline.clear();
    const closed = connection.close();
    this.#user.lost(reason, { nothingWritten, discards: this.#reader.reset() });
    this.#reconnector.again(closed);
  }

  /** Handles pending bytes whose time is over. A pause from which nothing comes is not reported. */
  #overdue(now: number): void {
    const items = this.#reader.overdue(now);
    if (items.length > 0 || this.#reader.between) this.#user.received(items, this.#reader.receiving);
  }

  #schedule(now: number): void {
    if (this.#connection === undefined) return;
    let due = this.#reader.dueMs;
    if (this.#writing) due = Math.min(due, this.#writeDueMs);
    if (this.#drainUntilMs !== undefined) due = Math.min(due, this.#drainUntilMs);
    this.#deadline.set(due, now);
  }

  #due(now: number): void {
    if (this.#writing && now >= this.#writeDueMs) {
      this.#lost("the device accepts no data: check flowControl and the cable");
      return;
    }
    if (now >= this.#reader.dueMs) this.#overdue(now);
    if (this.#drainUntilMs !== undefined && now >= this.#drainUntilMs) {
      this.#user.received(this.#reader.reset(), this.#reader.receiving);
      this.#drainUntilMs = undefined;
      this.#user.drained();
    }
    this.#schedule(now);
  }
}
