import { nowMs } from "../core/clock.ts";
import { durationText } from "../core/duration.ts";
import { type Connection, type ConnectionHandler, closeMs, OpenError, type OpenTransport } from "../device/transport.ts";
import { openMs, reopenMs } from "./limits.ts";

/** Told how attempts to open a transport end. */
export interface ReconnectEvents {
  opened(opening: Connection): void;
  /** An attempt failed or has not returned in time; it goes on. */
  failed(reason: string): void;
}

/**
 * Opens a transport for ever: one attempt at a time, with longer and longer pauses between them. An attempt that doesn't return is reported
 * and waited for, because a second one would hang as well and hold another thread.
 */
export class Reconnector {
  readonly #open: OpenTransport;
  readonly #newHandler: () => ConnectionHandler;
  readonly #events: ReconnectEvents;
  #pauseMs: number = reopenMs.first;
  #openedMs = 0;
  /** Whether the far end opened the last one. */
  #wasAccepted = false;
  #timer: NodeJS.Timeout | undefined;
  /** When the next attempt begins; Infinity if none is awaited. */
  #dueMs = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(open: OpenTransport, newHandler: () => ConnectionHandler, events: ReconnectEvents) {
    this.#open = open;
    this.#newHandler = newHandler;
    this.#events = events;
  }

  start(): void {
    void this.#attempt();
  }

  /**
   * Opens again after a loss, once the lost opening has let go of its descriptor. A connection that the far end makes is awaited without a
   * pause: it may be there by now, with a request.
   */
  again(closed: Promise<void>): void {
    // A device that is lost as soon as it opens has failed too: each opening raises its DTR, so the pauses go on growing.
    if (nowMs() - this.#openedMs >= reopenMs.longest) this.#pauseMs = reopenMs.first;
    this.#dueMs = nowMs() + closeMs;
    void closed.then(() => (this.#wasAccepted ? this.#attempt() : this.#wait()));
  }

  /** Milliseconds by which the next attempt is late to begin. An attempt that has begun is the system's affair, however long it takes. */
  overdueMs(now: number): number {
    return Math.max(0, now - this.#dueMs);
  }

  /** Opens no more; an attempt under way is closed as soon as it returns. */
  stop(): void {
    this.#stopped = true;
    this.#dueMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
  }

  async #attempt(): Promise<void> {
    if (this.#stopped) return;
    this.#dueMs = Number.POSITIVE_INFINITY;
    const opening = await this.#tryOpen();
    if (opening === undefined) {
      this.#wait();
    } else if (this.#stopped) {
      await opening.close();
    } else {
      this.#openedMs = nowMs();
      this.#wasAccepted = opening.isAccepted === true;
      this.#events.opened(opening);
    }
  }

  async #tryOpen(): Promise<Connection | undefined> {
    const overdue = setTimeout(() => this.#failed(`opening the device takes longer than ${durationText(openMs)}`), openMs);
    try {
      return await this.#open(this.#newHandler());
    } catch (error) {
      this.#failed(error instanceof OpenError ? error.message : `the device cannot be opened: ${String(error)}`);
      return undefined;
    } finally {
      clearTimeout(overdue);
    }
  }

  #failed(reason: string): void {
    if (!this.#stopped) this.#events.failed(reason);
  }

  #wait(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#attempt(), this.#pauseMs);
    this.#dueMs = nowMs() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, reopenMs.longest);
  }
}
