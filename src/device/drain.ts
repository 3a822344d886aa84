import { nowMs } from "../core/clock.ts";

/**
 * Waits until the system has sent what a port accepted. The system call for that, tcdrain, has no timeout: while a device holds the flow up
 * it blocks one of the few threads that also write the journal, and the process can't exit before it returns. Flushing ends it with most
 * drivers, but those of USB adapters (usb-serial) have nothing to flush. So draining has a limit here, few run at a time, and none begins
 * while CTS says that the device takes nothing.
 */

/** Drains that run at a time: each holds one of the four threads that files are read and written in. */
export const drainsMax = 2;

/** Milliseconds between two looks at CTS while it holds up a drain. */
const heldUpMs = 10;

/** The used part of serialport's port. */
export interface Drainable {
  drain(): Promise<void>;
  get(): Promise<{ readonly cts: boolean }>;
}

let draining = 0;
/** Ports that wait for their turn to drain; their bytes leave meanwhile. */
const waiting: (() => void)[] = [];

/**
 * Resolves with true once all written bytes have left. Resolves with false if that isn't so by `dueMs`, or if the device is gone: then the
 * rest must be dropped, which also ends a drain under way.
 * @param dueMs On `nowMs`'s scale.
 * @param rtscts Whether the device may hold the flow up by CTS.
 */
export function drained(port: Drainable, dueMs: number, rtscts: boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => resolve(false), Math.max(0, dueMs - nowMs()));
    const end = (isEmpty: boolean) => {
      clearTimeout(limit);
      resolve(isEmpty);
    };
    drain(port, dueMs, rtscts).then(end, () => end(false));
  });
}

async function drain(port: Drainable, dueMs: number, rtscts: boolean): Promise<boolean> {
  while (rtscts && (await isHeldUp(port))) {
    if (nowMs() >= dueMs) return false;
    await new Promise((resolve) => setTimeout(resolve, heldUpMs));
  }
  // A drain that ends hands its place on.
  if (draining === drainsMax) await new Promise<void>((resolve) => waiting.push(resolve));
  else draining++;
  try {
    if (nowMs() >= dueMs) return false;
    await port.drain();
    return true;
  } finally {
    const next = waiting.shift();
    if (next === undefined) draining--;
    else next();
  }
}

/** A pty has no such signal. */
async function isHeldUp(port: Drainable): Promise<boolean> {
  try {
    return !(await port.get()).cts;
  } catch {
    return false;
  }
}
