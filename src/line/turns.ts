import type { LineConfig } from "../config/config.ts";
import type { Exchange } from "./exchange.ts";
import { CallQueue } from "./queue.ts";

/**
 * The exchanges that wait for their turn on a line. Each leaves in one of three ways: its turn comes, it is refused with the
 * reason, or its caller leaves.
 */
export class Turns {
  readonly #queue: CallQueue<Exchange>;
  readonly #queueWaitMs: number;

  /** @param whyWaiting What holds the line up, for a call that has waited too long. */
  constructor({ queueCallsMax, queueWaitMs }: LineConfig, whyWaiting: () => string) {
    this.#queueWaitMs = queueWaitMs;
    this.#queue = new CallQueue(queueCallsMax, (exchange) =>
      exchange.refuse(`${whyWaiting()}, and the call waited ${queueWaitMs} ms`),
    );
  }

  get size(): number {
    return this.#queue.size;
  }

  get isFull(): boolean {
    return this.#queue.isFull;
  }

  /** Waits behind those that came before; only while it isn't full. */
  take(exchange: Exchange, now: number): void {
    exchange.waitUntilMs = now + this.#queueWaitMs;
    this.#queue.add(exchange, () => exchange.refuse(left));
  }

  /** Waits before all others, for a second sending. */
  takeAgain(exchange: Exchange, now: number): void {
    exchange.waitUntilMs = now + this.#queueWaitMs;
    this.#queue.putFirst(exchange, () => exchange.refuse(left));
  }

  next(): Exchange | undefined {
    return this.#queue.next();
  }

  refuseAll(state: string): void {
    for (const exchange of this.#queue.drain()) exchange.refuse(state);
  }
}

const left = "the caller left before its turn";
