import { runBatches } from "./batches.ts";

/** A process of the campaign: does its share of the batches of a kind of worlds, and sends what came of them. */

const [module = "", ...numbers] = process.argv.slice(2);
const [seed = 1, index = 0, of = 1, forMs = 0] = numbers.map(Number);
const { kind } = await import(module);
process.send?.(await runBatches(kind, { seed, index, of, forMs }));
process.disconnect();
