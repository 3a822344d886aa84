import type { LineConfig } from "../config/config.ts";
import { type Cause, wordsOf } from "./open-errors.ts";

/**
 * The transport of a line: a serial device, a TCP connection, or memory. A connection is one use of it, from open to loss; bytes meant for one connection can
 * never go out on the next.
 */

/**
 * The listener of a connection. Called from the event loop, never before `open` has resolved and its caller has run, and never after
 * `onClosed` or a call of `close`.
 */
export interface ConnectionHandler {
  /** The place of the next bytes. */
  space(): Buffer;
  /** `n` bytes were put at the start of `space()`. */
  onBytes(n: number): void;
  /** Milliseconds for which no byte that comes can end the frame that is coming; 0 if each may. A transport may let bytes lie so long. */
  coalesceMs?(): number;
  /** The kernel accepted the last byte of the write. */
  onWritten(): void;
  /** The connection is lost and of no more use; nothing further is called. */
  onClosed(reason: string): void;
}

/** A single use of a transport. */
export interface Connection {
  /** Writes pieces in order, and calls `onWritten()` once the kernel accepted the last byte, at once if it can. One write at a time. */
  write(pieces: readonly Buffer[]): void;
  /** Bytes of the write under way that the kernel accepted so far. */
  readonly wroteBytes: number;
  /** The device that the path led to, as a real path (`/dev/ttyUSB0`): the path may lead to another one next time. */
  readonly device?: string;
  /** True if the far end opened it: no byte of it is older than the opening, and the next one can be awaited at once. */
  readonly isAccepted?: boolean;
  /** Sets the device again if its settings are not those of the opening; returns at once. Absent if nothing is set. */
  lookAtSettings?(): void;
  /**
   * Gives the transport back. Accepted bytes of whole writes leave first, for as long as twice their time on the wire at most; the rest is
   * dropped. A write under way, or a loss, drops all of it at once. Beside that it settles within a second; it never rejects.
   */
  close(): Promise<void>;
}

/** Milliseconds a closing may take, beside the drain before it, before it is left to itself. */
export const closeMs = 1_000;

/**
 * Opens a transport. Connections follow each other: it is called again once the one before was closed.
 * @throws OpenError saying why, and what to do.
 */
export type OpenTransport = (handler: ConnectionHandler) => Promise<Connection>;

/** Hands bytes that arrived to a handler, as far as it goes on: a connection that is closed meanwhile has none. */
export function give(arrived: Buffer, handlerNow: () => ConnectionHandler | undefined): void {
  for (let from = 0; from < arrived.length; ) {
    const handler = handlerNow();
    if (handler === undefined) return;
    const copied = arrived.copy(handler.space(), 0, from);
    from += copied;
    handler.onBytes(copied);
  }
}

/** Why a transport could not be opened. */
export class OpenError extends Error {
  override readonly name = "OpenError";
  /** The cause and how to fix it, if known. */
  readonly why: Cause | undefined;

  constructor(why: string | Cause) {
    super(typeof why === "string" ? why : wordsOf(why));
    this.why = typeof why === "string" ? undefined : why;
  }
}

/** Milliseconds that a byte takes on the wire, with its start, parity and stop bits. */
export function msPerByte(config: Pick<LineConfig, "baudRate" | "dataBits" | "parity" | "stopBits">): number {
  const bits = 1 + config.dataBits + (config.parity === "none" ? 0 : 1) + config.stopBits;
  return (bits * 1000) / config.baudRate;
}
