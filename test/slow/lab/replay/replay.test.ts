import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LineRecorder, type RecordingSize } from "../../../../src/capture/recorder.ts";
import { parseRecordings, type Recording, recordingText } from "../../../../src/capture/recording.ts";
import { replay } from "../../../../src/lab/replay/replay.ts";
import { garbling, Life, recordedStep, type World, worldOf } from "../../../line/worlds.ts";

/**
 * Tests src/lab/replay/replay.ts, src/capture/recorder.ts.
 *
 * * The incidents are random lives of lines, as the safety of a line is tried on: hangs, losses, garbled frames, unplugs, restarts,
 * slow disks, callers that leave. Each is recorded, masked, written as text, read and replayed.
 */

const numRuns = Number(process.env["REPLAY_RUNS"] ?? 250);
const seed = 20_261_122;

/** The recordings of all lines of a life, as they come out of a file. */
function recordingsOf(world: World, size?: RecordingSize): readonly Recording[] {
  const recorders: LineRecorder[] = [];
  new Life(world, (line) => {
    const recorder = new LineRecorder(line, size);
    recorders.push(recorder);
    return (event, effects, now, engine) => recorder.observe(event, effects, now, engine);
  }).run();
  return recorders.flatMap((recorder) => parseRecordings(recordingText(recorder.recording([]))));
}

/** Replays a recording; @returns how many events were given to an engine whose state was known. */
function replayed(recording: Recording): number {
  let known = 0;
  for (const { number, event, decided, difference } of replay(recording)) {
    assert.equal(difference, undefined, `${number} ${JSON.stringify(event)}: now ${JSON.stringify(decided)}`);
    if (decided === undefined) continue;
    assert.deepEqual(decided, event.decided);
    known++;
  }
  return known;
}

const eventsOf = ({ entries }: Recording) => entries.filter(({ at }) => at !== "rest" && at !== "gap").length;

const worlds = fc.oneof(
  worldOf(garbling, true),
  worldOf([...garbling, "error"], false),
  worldOf(garbling, true, { steps: recordedStep }),
);

test("replay() of a random incident makes the same decisions, frames and reports, event by event", () => {
  let events = 0;
  fc.assert(
    fc.property(worlds, (world) => {
      for (const recording of recordingsOf(world)) {
        assert.equal(replayed(recording), eventsOf(recording), "from the first event");
        events += eventsOf(recording);
      }
    }),
    { numRuns, seed, includeErrorInReport: true },
  );
  assert.ok(events > numRuns * 50, `${events} events`);
});

test("replay() begins where the engine was at rest, once the recorder's memory has lost the beginning", () => {
  let lost = 0;
  fc.assert(
    fc.property(worlds, (world) => {
      const whole = recordingsOf(world);
      for (const [index, recording] of recordingsOf(world, { segmentChars: 6_144, segmentsMax: 4 }).entries()) {
        const known = replayed(recording);
        const all = eventsOf(whole[index] ?? recording);
        if (known === all) continue;
        lost++;
        assert.ok(eventsOf(recording) < all, "what is lost is not there");
      }
    }),
    { numRuns, seed, includeErrorInReport: true },
  );
  assert.ok(lost > numRuns / 4, `${lost} recordings had lost their beginning`);
});
