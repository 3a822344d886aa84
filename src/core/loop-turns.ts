/** Lets the event loop turn so many times: what lies in the kernel by now is read meanwhile. */
export async function loopTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
