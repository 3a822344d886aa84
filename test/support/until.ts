/** Waits in real time until something is so. */
export async function until(done: () => boolean | Promise<boolean>, what: string, msMax = 10_000): Promise<void> {
  const due = performance.now() + msMax;
  while (!(await done())) {
    if (performance.now() > due) throw new Error(`Waited ${msMax} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
