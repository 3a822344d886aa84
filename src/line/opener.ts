import { type Ear, type Open, OpenError, type Opening } from "./conduit.ts";
import { openMs, reopenMs } from "./limits.ts";

/** What becomes of the attempts. */
export interface OpenerEvents {
  opened(opening: Opening): void;
  /** An attempt failed or has not returned in time; it goes on. */
  failed(reason: string): void;
}

/**
 * Opens a conduit for ever: one attempt at a time, with longer and longer pauses between them. An attempt that doesn't return
 * is reported and waited for, because a second one would hang as well and hold another thread.
 */
export class Opener {
  readonly #open: Open;
  readonly #newEar: () => Ear;
  readonly #events: OpenerEvents;
  #pauseMs: number = reopenMs.first;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(open: Open, newEar: () => Ear, events: OpenerEvents) {
    this.#open = open;
    this.#newEar = newEar;
    this.#events = events;
  }

  start(): void {
    void this.#attempt();
  }

  /** Opens again after a loss, once the lost opening let go of its descriptor. */
  again(closed: Promise<void>): void {
    void closed.then(() => this.#wait());
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #attempt(): Promise<void> {
    if (this.#stopped) return;
    const overdue = setTimeout(() => this.#events.failed(`opening it has not returned for ${openMs} ms`), openMs);
    try {
      const opening = await this.#open(this.#newEar());
      if (this.#stopped) {
        await opening.close();
        return;
      }
      this.#pauseMs = reopenMs.first;
      this.#events.opened(opening);
    } catch (error) {
      this.#events.failed(error instanceof OpenError ? error.message : `it cannot be opened: ${String(error)}`);
      this.#wait();
    } finally {
      clearTimeout(overdue);
    }
  }

  #wait(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#attempt(), this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, reopenMs.longest);
  }
}
