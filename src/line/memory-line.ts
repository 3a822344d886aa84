import { Deadline, nowMs } from "../core/clock.ts";
import type { Ear, Open, Opening } from "./conduit.ts";

/**
 * A line without a device: two ends in memory, and bytes that take the time they would take on a wire. What one end writes, the
 * other hears, in pieces, through the same decoders as from a device.
 */

/** Milliseconds between two deliveries while bytes are on their way: what a USB adapter's buffer does, roughly. */
const deliverEveryMs = 2;

/** The two ends of a line in memory. */
export interface MemoryLine {
  readonly near: Open;
  readonly far: Open;
}

/** @param msPerByte Milliseconds a byte takes; 0 delivers at once. */
export function memoryLine(msPerByte: number): MemoryLine {
  const near = new End(msPerByte);
  const far = new End(msPerByte);
  near.peer = far;
  far.peer = near;
  return { near: async (ear) => near.open(ear), far: async (ear) => far.open(ear) };
}

/** One end: what it writes travels to its peer. */
class End {
  peer: End | undefined;
  readonly #msPerByte: number;
  #ear: Ear | undefined;
  /** What is on its way to the peer, in order. */
  #flying: Buffer[] = [];
  #sentMs = 0;
  readonly #deadline = new Deadline(() => this.#deliver());

  constructor(msPerByte: number) {
    this.#msPerByte = msPerByte;
  }

  open(ear: Ear): Opening {
    this.#ear = ear;
    return new MemoryOpening(this, ear);
  }

  close(): void {
    this.#ear = undefined;
    this.#flying = [];
    this.#deadline.dispose();
  }

  send(pieces: readonly Buffer[]): void {
    const now = nowMs();
    if (this.#flying.length === 0) this.#sentMs = now;
    // The sender may reuse its memory once it is told that it wrote.
    for (const piece of pieces) this.#flying.push(Buffer.from(piece));
    this.#deadline.set(now + this.#pauseMs(), now);
  }

  #pauseMs(): number {
    let bytes = 0;
    for (const piece of this.#flying) bytes += piece.length;
    return Math.min(deliverEveryMs, bytes * this.#msPerByte);
  }

  /** Hands over what has arrived by now; bytes sent to an end that nobody has open are lost, as on a wire. */
  #deliver(): void {
    const now = nowMs();
    let due = this.#msPerByte === 0 ? Number.POSITIVE_INFINITY : Math.floor((now - this.#sentMs) / this.#msPerByte);
    if (this.#msPerByte !== 0) this.#sentMs += due * this.#msPerByte;
    while (due > 0) {
      const first = this.#flying[0];
      if (first === undefined) break;
      const part = first.subarray(0, Math.min(due, first.length));
      if (part.length === first.length) this.#flying.shift();
      else this.#flying[0] = first.subarray(part.length);
      due -= part.length;
      this.peer?.hear(part);
    }
    if (this.#flying.length > 0) this.#deadline.set(now + this.#pauseMs(), now);
  }

  hear(bytes: Buffer): void {
    for (let from = 0; from < bytes.length && this.#ear !== undefined; ) {
      const space = this.#ear.space();
      const copied = bytes.copy(space, 0, from);
      from += copied;
      this.#ear.heard(copied);
    }
  }
}

class MemoryOpening implements Opening {
  readonly #end: End;
  readonly #ear: Ear;
  wroteBytes = 0;

  constructor(end: End, ear: Ear) {
    this.#end = end;
    this.#ear = ear;
  }

  write(pieces: readonly Buffer[]): void {
    this.wroteBytes = 0;
    for (const piece of pieces) this.wroteBytes += piece.length;
    this.#end.send(pieces);
    this.#ear.wrote();
  }

  async close(): Promise<void> {
    this.#end.close();
  }
}
