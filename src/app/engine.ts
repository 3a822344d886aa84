import { setFlagsFromString } from "node:v8";

/**
 * How V8 is set for a process that does little and must do it soon: flags that may be set while it runs. The same on Node's
 * command line would cost 15 ms at each start, since Node's own compiled code is for the flags that it was built with.
 */

/** V8's space for new objects has at most this many times its size at the start: 16 MiB, from 1. */
const growth = 16;

/** Compiles plainly at first use: at thirty exchanges a second nothing runs often enough to be compiled otherwise for minutes. */
export function setEngine(): void {
  setFlagsFromString("--always-sparkplug");
}

let isExpected = false;

/**
 * Lets the space for new objects grow at once to the size that it would have in the end: left alone it doubles now and then while
 * there is load, for hours, which looks like a leak on five hundred boxes. Called with the first exchange: a box that only waits
 * doesn't need it.
 */
export function expectLoad(): void {
  if (isExpected) return;
  isExpected = true;
  setFlagsFromString(`--semi-space-growth-factor=${growth}`);
}
