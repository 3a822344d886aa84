import { runFullBatches } from "./full-batches.ts";

/** The process of the full worlds: runs them, and sends what came of it. */

const [seed = 1, forMs = 0] = process.argv.slice(2).map(Number);
process.send?.(await runFullBatches(seed, forMs));
process.disconnect();
