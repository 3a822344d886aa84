import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseRecordings, RecordingError } from "../../src/capture/recording.ts";
import { replay } from "../../src/lab/replay/replay.ts";

const text = readFileSync(new URL("../vectors/corpus/recording.jsonl", import.meta.url), "utf8");

/** Parses and replays; @returns the events that were given to an engine. */
function replayed(recording: string): number {
  return parseRecordings(recording).reduce((sum, each) => sum + [...replay(each)].length, 0);
}

test("parseRecordings() reads the recording of the corpus, and replay() decides as it was decided", () => {
  const steps = parseRecordings(text).flatMap((each) => [...replay(each)]);
  assert.ok(steps.length > 100);
  assert.deepEqual(
    steps.filter(({ difference }) => difference !== undefined),
    [],
  );
});

test("parseRecordings() and replay() refuse what was changed by hand as a RecordingError (found by fuzzing)", () => {
  const changes: readonly (readonly [RegExp, string])[] = [
    [/"services":\[\{/, '"services":[null,{'],
    [/"readAt":\{"t":[\d.]+/, '"readAt":{"t":1e999'],
    [/"time":"2026-[^"]*"/, '"time":"soon"'],
    [/\{"t":[\d.]+,"at":"opened"/, '{"t":1e300,"at":"opened"'],
    [/"decided":\[\{/, '"decided":[null,{'],
    [/"decided":\[\{/, '"decided":[{"do":"write","service":[{"toString":1}]},{'],
    [/"contract":"bank"/, '"contract":"gone"'],
    [/"rest":null/, '"rest":{"state":7}'],
  ];
  for (const [from, to] of changes) {
    const changed = text.replace(from, to);
    assert.notEqual(changed, text, to);
    assert.throws(() => replayed(changed), RecordingError, to);
  }
});

test("replay() says of an event that the engine can't take that it fails", () => {
  const changed = text.replace(/"items":\[\]/, '"items":null');
  const [last] = parseRecordings(changed).flatMap((each) => [...replay(each)].slice(-1));
  assert.match(last?.difference ?? "", /^the engine fails: TypeError/);
});
