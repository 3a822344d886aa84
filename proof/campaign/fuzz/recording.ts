import assert from "node:assert/strict";
import { suspectOf, testOf } from "../../../scripts/replay-test.ts";
import { decisionText } from "../../../src/capture/decision.ts";
import { maskPayload, maskUnframed } from "../../../src/capture/mask.ts";
import { parseRecordings, type Recording, RecordingError, timeOf } from "../../../src/capture/recording.ts";
import { replay } from "../../../src/lab/replay/replay.ts";
import { corpusLines, examples } from "./corpus.ts";
import { mutated, mutatedJson, randomObject } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/** Recordings, as `posline replay` is given them: replayed, or refused by a RecordingError. And the masks that went before them. */

const lines = corpusLines("recording.jsonl");

function recordingBytes(random: Random): Buffer {
  const from = random.below(lines.length);
  const part = [lines[0] ?? "", ...lines.slice(from, from + random.size(40))];
  const share = random.pick([0, 0.002, 0.05]);
  const text = part.map((line) => (share === 0 ? line : mutatedJson(random, JSON.parse(line), share))).join("\n");
  return random.chance(0.3) ? mutated(random, Buffer.from(text), [Buffer.from(lines[from] ?? "")]) : Buffer.from(text);
}

const recordings: Target = {
  name: "recordings",
  unit: "events replayed",
  make: recordingBytes,
  check: (input) => {
    let events = 0;
    try {
      for (const recording of parseRecordings(input.toString("utf8"))) events += replayed(recording);
    } catch (error) {
      if (!(error instanceof RecordingError)) throw error;
    }
    return events;
  },
};

/** What `posline replay` does with each. */
function replayed(recording: Recording): number {
  let events = 0;
  for (const { event, decided = [] } of replay(recording)) {
    events++;
    assert.match(timeOf(recording.head, event.t), /^[+-]?\d+-\d\d-\d\dT/);
    for (const decision of [...decided, ...event.decided]) decisionText(decision);
  }
  const suspect = suspectOf(recording);
  if (recording.entries[suspect - 1] !== undefined) testOf(recording, suspect);
  return events;
}

const masks: Target = {
  name: "masks",
  unit: "payloads",
  make: (random) => {
    const text = random.chance(0.3) ? randomObject(random, 4) : mutatedJson(random, random.pick(examples).answer);
    const head = random.pick(["", "", "/sale\n", ":8887/check\n", "command=/sale&data=", "/x 4111111111111111\n"]);
    return mutated(random, Buffer.from(head + (head.includes("=") ? Buffer.from(text).toString("base64") : text)));
  },
  check: (input, random) => {
    const masked = maskPayload(random.pieces(input), ["MERCHANT-1"]);
    assert.equal(masked.length, input.length, "as many bytes as before");
    assert.doesNotMatch(masked.toString("latin1"), /4111111111111111|MERCHANT-1/);
    assert.equal(maskUnframed(input).length, input.length);
    return 1;
  },
};

export const recordingTargets: readonly Target[] = [recordings, masks];
