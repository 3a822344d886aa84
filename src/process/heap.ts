import { setFlagsFromString } from "node:v8";

/**
 * V8's space for new objects grows by this factor: to 4 MiB, from 1. With 16 MiB it is collected so seldom that the buffers of sockets, which
 * lie outside of it, reach V8's limit first, and whole collections of 40 ms follow.
 */
const growth = 4;

let areFlagsSet = false;

/**
 * Sets V8 up for calls that come and go. Called with each exchange: a box that only waits doesn't need it. These flags are among the few
 * that may be set while V8 runs.
 *
 * The space for new objects grows at once to the size that it would have in the end. Left alone it doubles now and then while there
 * is load, for hours, which looks like a leak on five hundred boxes: measured over the second 100,000 exchanges, up to 7 MiB.
 *
 * And new objects are made there, always. Where hundreds of calls wait, V8 finds that most objects of a call outlive its collections of
 * new ones, and begins to make them in the space for old ones, which is collected seldom: each of them keeps alive until then what
 * it refers to, so that nearly all of each call is copied into that space, after it ended.
 *
 * A single thread collects new objects: there is little to copy, and to wake up others takes longer than they save.
 */
export function setHeapFlagsOnce(): void {
  if (areFlagsSet) return;
  areFlagsSet = true;
  setFlagsFromString(`--semi-space-growth-factor=${growth}`);
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--no-parallel-scavenge");
}
