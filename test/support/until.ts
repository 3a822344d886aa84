/**
 * Milliseconds after which a wait is given up: as long as a busy machine may need, and less than the 30 s of a silence, or a line that was
 * proven clean by one would pass for one that was proven by answers.
 */
export const patienceMs = 25_000;

/** Waits in real time until something is so. */
export async function until(done: () => boolean | Promise<boolean>, what: string, msMax: number = patienceMs): Promise<void> {
  const due = performance.now() + msMax;
  while (!(await done())) {
    if (performance.now() > due) throw new Error(`Waited ${msMax} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
