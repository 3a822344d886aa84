/** A wait that a test ends. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}

/** A promise, and whether it has been kept by now. */
export class Watched<T> {
  isOver = false;
  readonly ended: Promise<T>;

  constructor(promise: Promise<T>) {
    this.ended = promise.then((value) => {
      this.isOver = true;
      return value;
    });
  }
}

export const watched = <T>(promise: Promise<T>): Watched<T> => new Watched(promise);
