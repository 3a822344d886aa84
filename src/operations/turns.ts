/**
 * Turns for posline's own questions: one at a time on a line. They wait for every caller; if two were in the queue, a caller that comes
 * between them would wait for both.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Does the work once all earlier work has been done, successfully or not. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done.catch(() => {});
    return done;
  }
}
