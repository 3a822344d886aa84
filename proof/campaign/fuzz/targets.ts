import { answerTargets } from "./answers.ts";
import { configTargets } from "./config.ts";
import { envelopeTargets } from "./envelope.ts";
import { journalTargets } from "./journal.ts";
import { recordingTargets } from "./recording.ts";
import { streamTargets } from "./streams.ts";
import type { Target } from "./target.ts";
import { wireTargets } from "./wire.ts";

/** All readers of what comes from outside. */
export const targets: readonly Target[] = [
  ...wireTargets,
  ...envelopeTargets,
  ...answerTargets,
  ...configTargets,
  ...journalTargets,
  ...recordingTargets,
  ...streamTargets,
];
