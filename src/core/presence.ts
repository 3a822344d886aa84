/**
 * The presence of the caller that waits for a reply. It may leave before the reply comes; a waiting call whose caller left is never
 * sent.
 */
export class Presence {
  #leaving: AbortController | undefined;
  #hasLeft = false;
  /** It left itself, though others may wait for the same reply. */
  #isAway = false;
  /** Others that wait for the same reply. */
  #others: Set<Presence> | undefined;

  /** True while nobody waits for the reply. */
  get gone(): boolean {
    return this.#hasLeft;
  }

  /** Aborted when the caller leaves for good. Made when it is first asked for: most calls end before anybody needs it. */
  get signal(): AbortSignal {
    if (this.#leaving === undefined) {
      this.#leaving = new AbortController();
      if (this.#hasLeft) this.#leaving.abort();
    }
    return this.#leaving.signal;
  }

  /** The caller leaves for good. Where others wait for the same reply, it has left once they have. */
  leave(): void {
    this.#isAway = true;
    if (this.#others !== undefined && this.#others.size > 0) return;
    this.#hasLeft = true;
    this.#leaving?.abort();
  }

  /** Another one waits for the same reply from now on. */
  join(other: Presence): void {
    if (other === this || other.gone) return;
    this.#others ??= new Set();
    this.#others.add(other);
    const leave = () => {
      this.#others?.delete(other);
      if (this.#isAway) this.leave();
    };
    other.signal.addEventListener("abort", leave, { once: true });
  }

  /** Ends the caller's connection without an answer, so that it leaves; undefined where there is none of its own. */
  hangUp?(): void;
}
