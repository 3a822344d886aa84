/** Lets the event loop turn so many times: bytes that lie in the kernel by now are read meanwhile. */
export async function loopTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * Waits until all bytes that had come by now were read. After the process stood still, a timer or an answer may wake it ahead of bytes in
 * the kernel. Of two turns of the event loop one at least looks at the devices, whichever phase this is called in.
 */
export const everythingRead = () => loopTurns(2);
