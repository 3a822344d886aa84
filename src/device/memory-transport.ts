import { Deadline, nowMs } from "../core/clock.ts";
import { type Connection, type ConnectionHandler, OpenError, type OpenTransport } from "./transport.ts";

/**
 * A line without a device: two ends in memory, and bytes that take the time they would take on a wire. One end hears what the other writes,
 * in pieces, through the same decoders as from a device.
 */

/** Milliseconds between two deliveries while bytes are on their way: roughly as a USB adapter's buffer does. */
const deliverEveryMs = 2;

/** The two ends of a line in memory. */
export interface MemoryTransport {
  readonly near: OpenTransport;
  readonly far: OpenTransport;
  /** Pulls the cable: both ends lose it with the bytes on their way, and neither can be opened for so many milliseconds. */
  unplug(ms: number): void;
}

/** @param msPerByte Milliseconds a byte takes; 0 delivers at once. */
export function memoryTransport(msPerByte: number): MemoryTransport {
  const near = new MemoryEnd(msPerByte);
  const far = new MemoryEnd(msPerByte);
  near.peer = far;
  far.peer = near;
  let untilMs = 0;
  const openerOf = (end: MemoryEnd): OpenTransport => {
    return async (handler) => {
      const leftMs = Math.ceil(untilMs - nowMs());
      // The text has no time in it, so that it stays the same: the log says a line's reason once.
      if (leftMs > 0) throw new OpenError("the line in memory is unplugged: it comes back by itself");
      return end.open(handler);
    };
  };
  const unplug = (ms: number) => {
    untilMs = Math.max(untilMs, nowMs() + ms);
    near.lose("the line in memory was unplugged");
    far.lose("the line in memory was unplugged");
  };
  return { near: openerOf(near), far: openerOf(far), unplug };
}

/** An end of the line: its bytes travel to its peer. */
class MemoryEnd {
  peer: MemoryEnd | undefined;
  readonly #msPerByte: number;
  #handler: ConnectionHandler | undefined;
  /** Bytes on their way to the peer, in order. */
  #inFlight: Buffer[] = [];
  #sentMs = 0;
  readonly #deadline = new Deadline(() => this.#deliver());

  constructor(msPerByte: number) {
    this.#msPerByte = msPerByte;
  }

  open(handler: ConnectionHandler): Connection {
    this.#handler = handler;
    return new MemoryConnection(this, handler);
  }

  lose(reason: string): void {
    const handler = this.#handler;
    this.close();
    handler?.onClosed(reason);
  }

  close(): void {
    this.#handler = undefined;
    this.#inFlight = [];
    this.#deadline.dispose();
  }

  send(pieces: readonly Buffer[]): void {
    const now = nowMs();
    if (this.#inFlight.length === 0) this.#sentMs = now;
    // The sender may reuse its memory once its write is reported.
    for (const piece of pieces) this.#inFlight.push(Buffer.from(piece));
    this.#deadline.set(now + this.#pauseMs(), now);
  }

  #pauseMs(): number {
    let bytes = 0;
    for (const piece of this.#inFlight) bytes += piece.length;
    return Math.min(deliverEveryMs, bytes * this.#msPerByte);
  }

  /** Hands over the bytes that have arrived by now; bytes sent to an end that nobody has open are lost, as on a wire. */
  #deliver(): void {
    const now = nowMs();
    let due = this.#msPerByte === 0 ? Number.POSITIVE_INFINITY : Math.floor((now - this.#sentMs) / this.#msPerByte);
    if (this.#msPerByte !== 0) this.#sentMs += due * this.#msPerByte;
    const arrived: Buffer[] = [];
    for (let first = this.#inFlight[0]; first !== undefined && due > 0; first = this.#inFlight[0]) {
      const part = first.subarray(0, Math.min(due, first.length));
      if (part.length === first.length) this.#inFlight.shift();
      else this.#inFlight[0] = first.subarray(part.length);
      due -= part.length;
      arrived.push(part);
    }
    this.peer?.receive(arrived);
    if (this.#inFlight.length > 0) this.#deadline.set(now + this.#pauseMs(), now);
  }

  /** Receives as a device is read: all bytes that are there come in one piece, however they were written, as far as there is space. */
  receive(arrived: readonly Buffer[]): void {
    let filled = 0;
    let space = this.#handler?.space();
    for (const bytes of arrived) {
      for (let from = 0; from < bytes.length && space !== undefined; ) {
        const copied = bytes.copy(space, filled, from);
        from += copied;
        filled += copied;
        if (filled < space.length) continue;
        this.#handler?.onBytes(filled);
        filled = 0;
        space = this.#handler?.space();
      }
    }
    if (filled > 0) this.#handler?.onBytes(filled);
  }
}

class MemoryConnection implements Connection {
  readonly #end: MemoryEnd;
  readonly #handler: ConnectionHandler;
  wroteBytes = 0;

  constructor(end: MemoryEnd, handler: ConnectionHandler) {
    this.#end = end;
    this.#handler = handler;
  }

  write(pieces: readonly Buffer[]): void {
    this.wroteBytes = 0;
    for (const piece of pieces) this.wroteBytes += piece.length;
    this.#end.send(pieces);
    this.#handler.onWritten();
  }

  async close(): Promise<void> {
    this.#end.close();
  }
}
