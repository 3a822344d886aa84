/** Lets the event loop turn so many times: what lies in the kernel by now is read meanwhile. */
export async function loopTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * Waits until what had come by now was read. Where the process stood still, a timer or an answer may wake it ahead of what lies in the
 * kernel. Of two turns of the event loop one at least looks at the devices, whichever phase this is called in.
 */
export const everythingRead = () => loopTurns(2);
