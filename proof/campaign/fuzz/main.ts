import { answerTargets } from "./answers.ts";
import { configTargets } from "./config.ts";
import { envelopeTargets } from "./envelope.ts";
import { journalTargets } from "./journal.ts";
import { recordingTargets } from "./recording.ts";
import { streamTargets } from "./streams.ts";
import { type FuzzResult, fuzz } from "./target.ts";
import { wireTargets } from "./wire.ts";

/** Fuzzes all readers of what comes from outside, in a process of its own, so that its memory is theirs alone; sends what came of it. */

const targets = [
  ...[...wireTargets, ...envelopeTargets, ...answerTargets, ...configTargets],
  ...[...journalTargets, ...recordingTargets, ...streamTargets],
];
const [seed = 1, forMs = 0, framesMin = 0] = process.argv.slice(2).map(Number);
const results: FuzzResult[] = [];
for (const target of targets) {
  const unitsMin = target.name.startsWith("decoder") ? framesMin : 0;
  results.push(await fuzz(target, { seed, ms: forMs / targets.length, unitsMin }));
}
process.send?.(results, () => process.exit());
