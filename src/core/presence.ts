/**
 * The presence of the caller that waits for a reply. The caller may leave before the reply comes; a waiting call whose caller left is never
 * sent.
 *
 * Its listeners are a set and not an AbortSignal: every call that waits for its turn listens, and Node 20 takes 5 microseconds to make a
 * signal, as much as the engine takes for the whole exchange.
 */
export class Presence {
  #hasLeft = false;
  /** True if this caller left itself, though others may wait for the same reply. */
  #isAway = false;
  /** Other callers that wait for the same reply. */
  #others: Set<Presence> | undefined;
  #listeners: Set<() => void> | undefined;

  /** True while nobody waits for the reply. */
  get gone(): boolean {
    return this.#hasLeft;
  }

  /** Calls back, once, when the caller leaves for good; never if it has left already. */
  onLeave(listener: () => void): void {
    if (this.#hasLeft) return;
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  /** Takes a listener back. */
  offLeave(listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  /** Notes that the caller leaves for good. If others wait for the same reply, it has left once they have. */
  leave(): void {
    this.#isAway = true;
    if (this.#hasLeft || (this.#others !== undefined && this.#others.size > 0)) return;
    this.#hasLeft = true;
    for (const listener of this.#listeners ?? []) listener();
    this.#listeners = undefined;
  }

  /** Lets another caller wait for the same reply from now on. */
  join(other: Presence): void {
    if (other === this || other.gone) return;
    this.#others ??= new Set();
    this.#others.add(other);
    other.onLeave(() => {
      this.#others?.delete(other);
      if (this.#isAway) this.leave();
    });
  }

  /** Ends the caller's connection without an answer, so that it leaves; undefined if it has none of its own. */
  hangUp?(): void;
}
