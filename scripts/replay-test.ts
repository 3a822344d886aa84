import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type RecordedEntry, type Recording, timeOf } from "../src/capture/recording.ts";
import { codeOf, messageOf } from "../src/core/error-code.ts";
import { recordingsIn } from "../src/lab/cli/replay.ts";
import { replay } from "../src/lab/replay/replay.ts";

/**
 * An incident as a test of posline: the recording up to one event, which the engine is given again. At that event the test expects
 * something that no engine decides, so it fails there until somebody writes down what should have been decided, and then until the
 * engine decides it. What came after isn't in it: it followed from the wrong decision.
 *
 *     node --import tsx scripts/replay-test.ts ARCHIVE TEST [--line till] [--at 120]
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
    'import { replay } from "../../src/lab/replay/replay.ts";',
    "",
    "/**",
    " * Tests src/line/engine.ts, by an incident: made by scripts/replay-test.ts, bytes are masked.",
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

/** @throws Error saying why there is no test. */
async function writeTest(args: readonly string[]): Promise<string> {
  const options = { line: { type: "string" }, at: { type: "string" } } as const;
  const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options });
  const [file, made] = positionals;
  if (made === undefined) throw new Error("Cannot write a test: name the archive of posline support, and the test's file");
  const recordings = await recordingsIn({ file, line: values.line });
  // The last one of a line that was configured anew.
  const recording = recordings.at(-1);
  const lines = new Set(recordings.map(({ head }) => head.line));
  if (recording === undefined || lines.size > 1) {
    throw new Error(`Cannot write a test: the recording has several lines (${[...lines].join(", ")}): choose one with --line`);
  }
  const suspect = values.at === undefined ? suspectOf(recording) : Number(values.at);
  const entry = recording.entries[suspect - 1];
  if (entry === undefined || entry.at === "rest" || entry.at === "gap") {
    throw new Error(
      `Cannot write a test: there is no event ${suspect} in the recording: posline replay --all shows the numbers`,
    );
  }
  if (startBefore(recording.entries, suspect) === -1) {
    throw new Error(
      `Cannot write a test: event ${suspect} can't be replayed, since what was before it is lost: choose a later --at`,
    );
  }
  try {
    writeFileSync(made, testOf(recording, suspect), { flag: "wx" });
  } catch (error) {
    const why = codeOf(error) === "EEXIST" ? "there is such a file already: name another one" : messageOf(error);
    throw new Error(`Cannot write the test ${made}: ${why}`);
  }
  return `Written: ${made}, which fails at event ${suspect}: write there what should have been decided; its place is test/capture/`;
}

if (process.argv[1] === import.meta.filename) {
  try {
    console.log(await writeTest(process.argv.slice(2)));
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}
