import type { LineConfig } from "../config/config.ts";
import type { Exchange } from "./exchange.ts";
import { Gate } from "./gate.ts";
import { CallQueue } from "./queue.ts";

/**
 * The exchanges that wait for their turn on a line. Each leaves in one of three ways: its turn comes, it is refused with the
 * reason, or its caller leaves. One whose turn has come and that is still being prepared waits in the gate, and nobody goes
 * before it.
 */
export class Turns {
  readonly #queue: CallQueue<Exchange>;
  readonly #gate: Gate;
  readonly #queueWaitMs: number;

  /**
   * @param whyWaiting What holds the line up, for a call that has waited too long.
   * @param ready Called when the turn of one has come that had to be prepared, or of the next because that one was refused.
   */
  constructor(line: string, { queueCallsMax, queueWaitMs }: LineConfig, whyWaiting: () => string, ready: () => void) {
    this.#queueWaitMs = queueWaitMs;
    this.#queue = new CallQueue(queueCallsMax, (exchange) =>
      exchange.refuse(`${whyWaiting()}, and the call waited ${queueWaitMs} ms`),
    );
    this.#gate = new Gate(line, whyWaiting, ready);
  }

  /** How many wait; the one that is being prepared isn't among them. */
  get size(): number {
    return this.#queue.size;
  }

  get isFull(): boolean {
    return this.#queue.isFull;
  }

  /** Nobody is before a call that comes now. */
  get isFree(): boolean {
    return this.#queue.size === 0 && !this.#gate.occupied;
  }

  /** A call waits for nothing but the line. */
  get wanting(): boolean {
    return this.#gate.occupied ? this.#gate.ready : this.#queue.size > 0;
  }

  /** For how many milliseconds a call that has waited too long is still here. */
  overdueMs(now: number): number {
    return Math.max(this.#queue.overdueMs(now), this.#gate.overdueMs(now));
  }

  /** Waits behind those that came before; only while it isn't full. */
  take(exchange: Exchange): void {
    this.#queue.add(exchange, () => exchange.refuse(left));
  }

  /** Waits before all others, for a second sending. */
  takeAgain(exchange: Exchange, now: number): void {
    exchange.waitUntilMs = now + this.#queueWaitMs;
    this.#queue.putFirst(exchange, () => exchange.refuse(left));
  }

  /** Takes one whose turn it is at once, and that must be prepared first; only while nobody is before it. */
  prepare(exchange: Exchange, beforeSend: () => Promise<void>, now: number): void {
    this.#gate.enter(exchange, beforeSend, now);
  }

  /** Takes out the one that is to be sent now. One that must be prepared first is prepared, and undefined is given meanwhile. */
  next(now: number): Exchange | undefined {
    if (this.#gate.occupied) return this.#gate.take();
    const next = this.#queue.next();
    const beforeSend = next?.beforeSend;
    if (next === undefined || beforeSend === undefined) return next;
    this.#gate.enter(next, beforeSend, now);
    return undefined;
  }

  refuseAll(state: string): void {
    this.#gate.refuse(state);
    for (const exchange of this.#queue.drain()) exchange.refuse(state);
  }
}

const left = "the caller left before its turn";
