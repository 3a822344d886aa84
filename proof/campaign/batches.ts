import fc from "fast-check";
import { type Found, foundIn, type Notes } from "./found.ts";

/** Lives by the thousand: one batch of worlds after the other, each of its own seed, until the time is over. */

/** A kind of worlds. */
export interface Kind<World, Tally> {
  emptyTally(): Tally;
  /** What a batch is drawn from. */
  batch(number: number): { readonly worlds: fc.Arbitrary<World>; readonly lives: number; readonly unbiased?: boolean };
  /** Lets one live. @throws Error when a promise is broken. */
  live(world: World, tally: Tally, notes?: Notes): void | Promise<void>;
  /** When all have lived. */
  end?(): void;
}

export interface Batches<Tally> {
  readonly tally: Tally;
  /** The smallest world of each batch that broke a promise. */
  readonly broken: readonly Found[];
}

export interface BatchOptions {
  readonly seed: number;
  /** Which of so many processes this is: they share the batches out. */
  readonly index: number;
  readonly of: number;
  readonly forMs: number;
}

/** Batches that broke something are enough to look at then. */
const brokenMax = 3;

/** Milliseconds for which a world that broke a promise is made smaller: one that lasts for days takes a second each time. */
const shrinkMsMax = 60_000;

/** Worlds may put a clock of their own in its place. */
const clock = performance.now.bind(performance);

/**
 * Lets worlds live, and once one broke a promise, only for so long: then each passes, so that the smallest one until then is the result.
 * fast-check's own limit counts from a batch's beginning: on a slow machine it would leave out worlds that nothing is wrong with.
 */
export function shrunkFor<Each>(ms: number, live: (world: Each) => void | Promise<void>): (world: Each) => Promise<void> {
  let untilMs = Number.POSITIVE_INFINITY;
  return async (world) => {
    if (clock() >= untilMs) return;
    try {
      await live(world);
    } catch (error) {
      untilMs = Math.min(untilMs, clock() + ms);
      throw error;
    }
  };
}

export async function runBatches<World, Tally>(
  kind: Kind<World, Tally>,
  { seed, index, of, forMs }: BatchOptions,
): Promise<Batches<Tally>> {
  const untilMs = clock() + forMs;
  const tally = kind.emptyTally();
  const broken: Found[] = [];
  for (let number = index; clock() < untilMs && broken.length < brokenMax; number += of) {
    const { worlds, lives, unbiased = false } = kind.batch(number);
    const property = fc.asyncProperty(
      worlds,
      shrunkFor(shrinkMsMax, (world) => kind.live(world, tally)),
    );
    const options = { seed: seed * 100_003 + number, numRuns: lives, unbiased };
    const { counterexample, errorInstance } = await fc.check(property, options);
    if (counterexample !== null) broken.push(await foundIn(kind, counterexample[0], errorInstance));
  }
  kind.end?.();
  return { tally, broken };
}
