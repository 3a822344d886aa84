import { runLineBatches } from "./line-batches.ts";

/** A process of the campaign: does its share of the batches, and sends what came of them. */

const [seed = 1, index = 0, of = 1, forMs = 0] = process.argv.slice(2).map(Number);
process.send?.(runLineBatches({ seed, index, of, untilMs: performance.now() + forMs }));
process.disconnect();
