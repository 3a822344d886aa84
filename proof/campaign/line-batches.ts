import fc from "fast-check";
import { emptyTally, LineLife, type LineTally, longWorldOf, type World, worldOf } from "./line-life.ts";
import { detectable } from "./line-terminal.ts";

/** Lives of lines by the thousand: one batch after the other, each of its own seed. */

export interface LineBatches {
  readonly tally: LineTally;
  /** Worlds beyond what can be detected, apart. */
  readonly beyond: LineTally;
  /** The smallest world of each batch that broke a promise. */
  readonly broken: readonly World[];
  /** Exchanges by seconds since the beginning. */
}

export interface BatchOptions {
  readonly seed: number;
  /** Which of so many processes this is: they share the batches out. */
  readonly index: number;
  readonly of: number;
  readonly untilMs: number;
}

const livesInBatch = 20;

/** A batch that broke something is enough to look at. */
const brokenMax = 3;

const within = fc.oneof(worldOf(detectable, false), worldOf([...detectable, "error"], false));
const long = longWorldOf();
const beyondAll = worldOf([...detectable, "error", "twice"], true);

/** Every so many batches, one is of worlds beyond what can be detected. */
const beyondEvery = 8;

/** Every so many, one is of worlds that last for days: each takes as long as ten others. */
const longEvery = 32;

/** Milliseconds for which a world that broke a promise is made smaller: one that lasts for days takes a second each time. */
const shrinkMsMax = 60_000;

/**
 * Lets worlds live, and once one broke a promise, only for so long: then each passes, so that the smallest one until then is the result.
 * fast-check's own limit counts from a batch's beginning: on a slow machine it would leave out worlds that nothing is wrong with.
 */
export function shrunkFor<Each>(ms: number, live: (world: Each) => void): (world: Each) => void {
  let untilMs = Number.POSITIVE_INFINITY;
  return (world) => {
    if (performance.now() >= untilMs) return;
    try {
      live(world);
    } catch (error) {
      untilMs = Math.min(untilMs, performance.now() + ms);
      throw error;
    }
  };
}

export function runLineBatches({ seed, index, of, untilMs }: BatchOptions): LineBatches {
  const tally = emptyTally();
  const beyond = emptyTally();
  const broken: World[] = [];
  for (let batch = index; performance.now() < untilMs && broken.length < brokenMax; batch += of) {
    const isBeyond = batch % beyondEvery === beyondEvery - 1;
    const isLong = batch % longEvery === longEvery - 2;
    const property = fc.property(
      isBeyond ? beyondAll : isLong ? long : within,
      shrunkFor(shrinkMsMax, (world) => new LineLife(world, isBeyond ? beyond : tally).run()),
    );
    const { counterexample } = fc.check(property, { seed: seed * 100_003 + batch, numRuns: livesInBatch });
    if (counterexample !== null) broken.push(counterexample[0]);
  }
  return { tally, beyond, broken };
}
