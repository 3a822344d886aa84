import { type RecordedEntry, type Recording, timeOf } from "./recording.ts";
import { replay } from "./replay.ts";

/**
 * An incident as a test of posline: the recording up to one event, which the engine is given again. At that event the test expects
 * something that no engine decides, so it fails there until somebody writes down what should have been decided, and then until the
 * engine decides it. What came after isn't in it: it followed from the wrong decision.
 */

/**
 * Which event went wrong, as far as can be told from the recording: the first that an engine decides otherwise today; else the last after
 * which the outcome of a call was unknown; else the last one. One that can't be replayed is none of them.
 */
export function suspectOf(recording: Recording): number {
  let suspect = 0;
  let last = 0;
  for (const { number, event, decided, difference } of replay(recording)) {
    if (difference !== undefined) return number;
    if (decided === undefined) continue;
    if (event.decided.some((each) => each.do === "fail" && each.outcome === "unknown")) suspect = number;
    last = number;
  }
  return suspect === 0 ? last : suspect;
}

/**
 * The test's source, for a file in `test/capture/`.
 * @param at The number of the event that went wrong.
 */
export function testOf(recording: Recording, at: number): string {
  const { head, entries } = recording;
  const from = startBefore(entries, at);
  const before = entries.slice(from, at - 1);
  const wrong = entries[at - 1];
  if (wrong === undefined || wrong.at === "rest" || wrong.at === "gap")
    throw new Error(`there is no event ${at} in the recording`);
  const row = (value: unknown) => `  ${JSON.stringify(value)},`;
  const marked = { ...wrong, decided: [{ do: "CHANGE THIS to what should have been decided" }] };
  return `${[
    'import assert from "node:assert/strict";',
    'import { test } from "node:test";',
    'import { parseRecordings } from "../../src/capture/recording.ts";',
    'import { replay } from "../../src/capture/replay.ts";',
    "",
    "/**",
    " * Tests src/line/engine.ts, by an incident: made by posline replay --as-test, bytes are masked.",
    " *",
    " * It fails at the last event. Write there what should have been decided; then fix the engine until the test passes.",
    " */",
    "",
    "const recording = [",
    row(head),
    ...before.map(row),
    `  // It was: ${JSON.stringify(wrong.decided)}`,
    row(marked),
    "];",
    "",
    `test(${JSON.stringify(`LineEngine decides as it should on line ${head.line} at ${timeOf(head, wrong.t)}`)}, () => {`,
    '  const [read] = parseRecordings(recording.map((each) => JSON.stringify(each)).join("\\n"));',
    "  assert.ok(read !== undefined);",
    "  for (const { event, decided } of replay(read)) assert.deepEqual(decided, event.decided, event.at);",
    "});",
  ].join("\n")}\n`;
}

/** Where a replay can begin that comes to the event; -1 where what was before it is lost. */
export function startBefore(entries: readonly RecordedEntry[], at: number): number {
  const before = entries.slice(0, Math.max(0, at - 1));
  const start = before.findLastIndex((entry) => entry.at === "rest");
  return before.slice(start + 1).some((entry) => entry.at === "gap") ? -1 : start;
}
