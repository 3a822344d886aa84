import fc from "fast-check";
import { garbling, Life, worldOf } from "../line/worlds.ts";
import { type Part, partMs } from "./part.ts";

/** Random lives of lines. */
export const worlds: Part = {
  name: "worlds",
  run: async (options) => {
    const until = performance.now() + partMs(options);
    let lives = 0;
    for (const world of fc.sample(worldOf(garbling, true), { seed: options.seed, numRuns: 1_000 })) {
      if (performance.now() > until) break;
      new Life(world).run();
      lives++;
    }
    return [{ what: "lives", value: lives, unit: "", bound: { side: "least", value: 1 } }];
  },
};
