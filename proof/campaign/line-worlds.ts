import fc from "fast-check";
import type { Kind } from "./batches.ts";
import { emptyTally, LineLife, type LineTally, longWorldOf, type World, worldOf } from "./line-life.ts";
import { detectable } from "./line-terminal.ts";

/** Worlds of lines: within what can be detected, beyond it, and some that last for days. */

const within = fc.oneof(worldOf(detectable, false), worldOf([...detectable, "error"], false));
const long = longWorldOf();
const beyond = worldOf([...detectable, "error", "twice"], true);

/** Every so many batches, one is of worlds beyond what can be detected. */
const beyondEvery = 8;

/** Every so many, one is of worlds that last for days: each takes as long as ten others. */
const longEvery = 32;

export const kind: Kind<World, LineTally> = {
  emptyTally,
  batch: (number) => {
    const isBeyond = number % beyondEvery === beyondEvery - 1;
    const isLong = number % longEvery === longEvery - 2;
    return { worlds: isBeyond ? beyond : isLong ? long : within, lives: 20 };
  },
  live: (world, tally, notes) => new LineLife(world, tally, notes).run(),
};
