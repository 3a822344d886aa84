/** Lets the event loop turn so many times: bytes that lie in the kernel by now are read meanwhile. */
export async function loopTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * Waits until all bytes that had come by now were read. After the process stood still, a timer or an answer may wake it ahead of bytes in
 * the kernel. Of two turns of the event loop one at least looks at the devices, whichever phase this is called in.
 */
export const everythingRead = () => loopTurns(2);

/**
 * Waits until each HTTP client has left whose connection had ended by now, also where its request and the end lie in the kernel together, as
 * after the process stood still: Node takes three turns from one to the other.
 */
export const leavingsRead = () => loopTurns(5);
