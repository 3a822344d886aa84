import type { LineConfig } from "../config/config.ts";
import { type Cause, wordsOf } from "./open-errors.ts";

/**
 * What a line runs over: a serial device, or memory. One connection is one use of it, from open to loss; what was to be written to
 * one connection can never go out on the next.
 */

/**
 * Who listens to a connection. Called from the event loop, never before `open` has resolved and its caller has run, and never
 * after `onClosed` or a call of `close`.
 */
export interface ConnectionHandler {
  /** Where the next bytes go. */
  space(): Buffer;
  /** `n` bytes were put at the start of `space()`. */
  onBytes(n: number): void;
  /**
   * Milliseconds for which nothing that comes can end the frame that is coming; 0 when each byte may. A transport may let bytes
   * lie so long.
   */
  coalesceMs?(): number;
  /** The last byte of what was written was accepted by the kernel. */
  onWritten(): void;
  /** The connection is lost and of no more use; nothing further is called. */
  onClosed(reason: string): void;
}

/** One use of a transport. */
export interface Connection {
  /**
   * Writes pieces in order, and calls `onWritten()` when the kernel accepted the last byte, at once where it can. One write at a time.
   */
  write(pieces: readonly Buffer[]): void;
  /** Bytes of the write under way that the kernel accepted so far. */
  readonly wroteBytes: number;
  /** The device that it came to, as a real path (`/dev/ttyUSB0`): what was configured may lead to another one next time. */
  readonly device?: string;
  /** Looks whether the device is set as it was at the opening, and sets it again if not; returns at once. Absent where nothing is set. */
  lookAtSettings?(): void;
  /**
   * Gives the transport back. What the kernel accepted of whole writes leaves first, for as long as twice its time on the wire at most; what
   * is left then is dropped. A write under way, or a loss, drops all of it at once. Beside that it settles within a second; it never
   * rejects.
   */
  close(): Promise<void>;
}

/** Milliseconds a closing may take, beside the drain before it, until it is left to itself. */
export const closeMs = 1_000;

/**
 * Opens a transport. Connections follow each other: it is called again when the one before was closed.
 * @throws OpenError saying why, and what to do.
 */
export type OpenTransport = (handler: ConnectionHandler) => Promise<Connection>;

/** Why a transport could not be opened. */
export class OpenError extends Error {
  override readonly name = "OpenError";
  /** What stands in the way and how to fix it, where that is known. */
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
