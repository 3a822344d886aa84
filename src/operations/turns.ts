/**
 * One question at a time on a line. What posline asks by itself waits behind every caller; were two such questions in the queue, a
 * caller that comes between them would wait for both.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Does something when all that came before has been done, whatever became of that. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done.catch(() => {});
    return done;
  }
}
