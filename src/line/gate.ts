import { Deadline, nowMs } from "../core/clock.ts";
import { faultFrom } from "../core/fault.ts";
import { type Exchange, unavailable } from "./exchange.ts";

/**
 * The place between the queue and the wire: one call whose turn has come, while that is done which must precede its first byte.
 * Nothing of it is sent yet, so it may still be refused as not sent: when its caller leaves, when it has waited too long, when
 * the line is lost or stops, or when what must precede it fails. Once that is done it stays here, before all others, until the
 * line may send it.
 */
export class Gate {
  readonly #line: string;
  readonly #whyWaiting: () => string;
  readonly #opened: () => void;
  readonly #deadline = new Deadline(() => this.#expired());
  #exchange: Exchange | undefined;
  #ready = false;

  /**
   * @param whyWaiting What holds the line up, for a call that has waited too long.
   * @param opened Called when the call within is ready to be sent, or has left the gate without the line's doing.
   */
  constructor(line: string, whyWaiting: () => string, opened: () => void) {
    this.#line = line;
    this.#whyWaiting = whyWaiting;
    this.#opened = opened;
  }

  /** A call is within: nobody else is sent. */
  get occupied(): boolean {
    return this.#exchange !== undefined;
  }

  /** The call within only waits for the line. */
  get ready(): boolean {
    return this.#ready;
  }

  /** For how many milliseconds the call within should have been gone. */
  overdueMs(now: number): number {
    return this.#deadline.overdueMs(now);
  }

  /** Lets a call in; only while none is within. It is prepared at once. */
  enter(exchange: Exchange, prepare: () => Promise<void>, now: number): void {
    this.#exchange = exchange;
    exchange.caller.onGone = () => this.#refused(exchange, (one) => one.refuse("the caller left before it was sent"));
    this.#deadline.set(exchange.waitUntilMs, now);
    void this.#prepare(exchange, prepare);
  }

  /** Takes out the call that is to be sent now; undefined when it isn't ready. */
  take(): Exchange | undefined {
    return this.#ready ? this.#leave() : undefined;
  }

  /** Refuses the call within, if there is one: nothing was sent. */
  refuse(state: string): void {
    this.#leave()?.refuse(state);
    this.#deadline.dispose();
  }

  async #prepare(exchange: Exchange, prepare: () => Promise<void>): Promise<void> {
    try {
      await prepare();
    } catch (error) {
      const fault = faultFrom(error) ?? unavailable(this.#line, `it could not be prepared (${String(error)})`, 1);
      this.#refused(exchange, (one) => one.refuseWith(fault));
      return;
    }
    // It was refused meanwhile, and another may be within by now.
    if (this.#exchange !== exchange) return;
    if (exchange.caller.gone) exchange.caller.onGone?.();
    else {
      this.#ready = true;
      this.#opened();
    }
  }

  #expired(): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    const why = this.#ready ? this.#whyWaiting() : "the call was still being recorded";
    this.#refused(exchange, (one) => one.refuse(`${why}, and the call waited ${Math.round(nowMs() - one.cameMs)} ms`));
  }

  #refused(exchange: Exchange, refuse: (exchange: Exchange) => void): void {
    if (this.#exchange !== exchange) return;
    this.#leave();
    refuse(exchange);
    this.#opened();
  }

  #leave(): Exchange | undefined {
    const exchange = this.#exchange;
    if (exchange === undefined) return undefined;
    this.#exchange = undefined;
    this.#ready = false;
    this.#deadline.clear();
    exchange.caller.onGone = undefined;
    return exchange;
  }
}
