/**
 * The presence of the caller that waits for a reply. It may leave before the reply comes; a waiting call whose caller left is never
 * sent.
 */
export class Presence {
  #leaving: AbortController | undefined;
  #hasLeft = false;

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

  /** The caller leaves for good. */
  leave(): void {
    this.#hasLeft = true;
    this.#leaving?.abort();
  }

  /** Ends the caller's connection without an answer, so that it leaves; undefined where there is none of its own. */
  hangUp?(): void;
}
