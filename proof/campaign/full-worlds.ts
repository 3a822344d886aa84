import { VirtualNet } from "../../test/support/virtual-net.ts";
import { VirtualTime } from "../../test/support/virtual-time.ts";
import type { Kind } from "./batches.ts";
import { emptyFullTally, FullLife, type FullTally, type FullWorld, fullWorld } from "./full-life.ts";

/** Worlds of whole boxes, in a process of their own, whose clock is replaced. */

const place = { time: new VirtualTime(), net: new VirtualNet() };

export const kind: Kind<FullWorld, FullTally> = {
  emptyTally: emptyFullTally,
  // The first runs of a check are drawn small, one value in two: so each second batch isn't, and has long lives.
  batch: (number) => ({ worlds: fullWorld, lives: 4, unbiased: number % 2 === 1 }),
  live: (world, tally, notes) => new FullLife(world, place, tally, notes).run(),
  end: () => {
    place.net.restore();
    place.time.restore();
  },
};
