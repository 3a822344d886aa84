import { readFileSync } from "node:fs";
import { type Decision, decisionText } from "../../capture/decision.ts";
import { type RecordedEvent, type Recording, RecordingError, timeOf } from "../../capture/recording.ts";
import { reason } from "../../config/secrets.ts";
import { type ArgumentsOf, defineCommand, type FlagTable, type PositionalTable } from "../../core/command.ts";
import { exitCodes, UsageError } from "../../core/exit.ts";
import { inQuotes, printable } from "../../core/shell-text.ts";
import type { ReplayStep } from "../replay/replay.ts";

/** `posline replay`: gives a recording to the line's engine again, and shows event by event what it decides. */

/** The engine decides otherwise than it did. */
const differs = 1;

export type ReplayArguments = ArgumentsOf<typeof flags, typeof positionals>;

async function runReplay(args: ReplayArguments): Promise<number> {
  const recordings = await recordingsIn(args);
  const { replay } = await import("../replay/replay.ts");
  let code: number = exitCodes.ok;
  for (const recording of recordings) {
    process.stdout.write(`line ${printable(recording.head.line)}, recorded by posline ${printable(recording.head.posline)}\n`);
    const tally = { same: 0, unknown: 0, difference: false };
    for (const step of replay(recording)) {
      process.stdout.write(stepText(step, recording, args.all === true));
      if (step.difference !== undefined) tally.difference = true;
      else if (step.decided === undefined) tally.unknown++;
      else tally.same++;
    }
    process.stdout.write(tallyText(tally, recording.entries.slice(1).filter(({ at }) => at === "gap").length));
    if (tally.difference) code = differs;
    else if (tally.same === 0 && tally.unknown > 0 && code === exitCodes.ok) code = exitCodes.unavailable;
  }
  return code;
}

/** @throws UsageError, RecordingError */
export async function recordingsIn({ file, line }: Pick<ReplayArguments, "file" | "line">): Promise<readonly Recording[]> {
  if (file === undefined) throw new UsageError("Cannot replay: name the archive of posline support, or a recording");
  const { readArchive } = await import("../../doctor/support-archive.ts");
  const { recordingFile } = await import("../../doctor/support.ts");
  const { parseRecordings } = await import("../../capture/recording.ts");
  let text: string | undefined;
  try {
    text = readArchive(readFileSync(file)).find(({ name }) => name === "" || name === recordingFile)?.text;
  } catch (error) {
    throw new RecordingError(`Cannot read ${inQuotes(file)}: ${reason(error, file)}`);
  }
  if (text === undefined) {
    throw new RecordingError(
      `Cannot replay ${inQuotes(file)}: it has no ${recordingFile}: posline did not run when it was made`,
    );
  }
  const recordings = parseRecordings(text);
  const wanted = line === undefined ? recordings : recordings.filter(({ head }) => head.line === line);
  if (wanted.length > 0) return wanted;
  const lines = [...new Set(recordings.map(({ head }) => head.line))].join(", ");
  throw new UsageError(`Cannot replay line ${inQuotes(line ?? "")}: the recording has ${printable(lines)}`);
}

function stepText({ number, event, decided, difference }: ReplayStep, { head }: Recording, all: boolean): string {
  const isQuiet = event.decided.length === 0 && difference === undefined;
  if (isQuiet && !all && !loudEvents.has(event.at)) return "";
  const rows = [`${String(number).padStart(6)}  ${timeOf(head, event.t).slice(0, -1).replace("T", " ")}  ${eventText(event)}`];
  const add = (mark: string, decisions: readonly Decision[]) => {
    for (const each of decisions) rows.push(`${" ".repeat(33)}${mark} ${decisionText(each)}`);
  };
  if (difference === undefined) add(decided === undefined ? "(not replayed)" : "->", event.decided);
  else {
    rows.push(`${" ".repeat(33)}DIFFERENT: ${difference}`);
    add("then:", event.decided);
    add("now: ", decided ?? []);
  }
  return rows.map((row) => `${printable(row)}\n`).join("");
}

/** Shown without a decision, too: without them nobody would understand the rest. */
const loudEvents: ReadonlySet<RecordedEvent["at"]> = new Set(["call", "caller gone", "lost", "stop"]);

function eventText(event: RecordedEvent): string {
  switch (event.at) {
    case "call":
      return `call ${event.call} comes: ${event.service} ${event.route}, ${event.frameBytes} bytes, request ${event.requestId}`;
    case "recorded":
      return `call ${event.call} is recorded in the journal`;
    case "record failed":
      return `call ${event.call} can't be recorded: ${event.fault.message}`;
    case "caller gone":
      return `the caller of call ${event.call} leaves`;
    case "opened":
      return "the device is open";
    case "drained":
      return "the line has been silent since the opening";
    case "open failed":
      return `the device can't be opened: ${event.reason}`;
    case "lost":
      return `the device is lost: ${event.reason}`;
    case "wrote":
      return "all bytes are written";
    case "tick":
      return "time has passed";
    case "stop":
      return `posline stops the line: ${event.why}`;
    case "received":
      return event.items.length === 0 ? `bytes come (${event.receiving.phase})` : event.items.map(itemText).join("; ");
  }
}

/** Characters of a frame's text that are shown. */
const shownMax = 120;

function itemText(item: Extract<RecordedEvent, { readonly at: "received" }>["items"][number]): string {
  if (item.kind === "discard") return `${item.wireBytes} bytes come that are no frame: ${item.reason}, ${item.head}`;
  const { text = "", payloadBytes, like, unread, isEcho } = item;
  const shown = text.length > shownMax ? `${text.slice(0, shownMax)}...` : text;
  if (isEcho === true) return `what was sent comes back, ${payloadBytes} bytes`;
  const content = like === undefined ? (unread ?? shown) : `reads as ${JSON.stringify(like)}`;
  return `a frame comes, ${payloadBytes} bytes: ${content}`;
}

interface Tally {
  readonly same: number;
  readonly unknown: number;
  readonly difference: boolean;
}

/** @param gaps Events that were larger than the recorder's memory. */
function tallyText({ same, unknown, difference }: Tally, gaps: number): string {
  const notes = [
    ...(unknown === 0 ? [] : [`${unknown} events could not be replayed, since what was before them is lost\n`]),
    ...(gaps === 0 ? [] : [`Events that are missing, since they were too large to be recorded: ${gaps}\n`]),
  ];
  const end = difference ? "; then the engine decides otherwise" : "";
  return `${notes.join("")}${same} events: the same decisions${end}\n`;
}

const positionals = {
  file: { describe: "An archive of posline support, or what GET /recording answered" },
} as const satisfies PositionalTable;

const flags = {
  line: { type: "string", example: "till", describe: "Only this line" },
  all: { type: "boolean", describe: "Show events without a decision too" },
} as const satisfies FlagTable;

export const replayCommand = defineCommand({
  name: "replay",
  describe: "Give a recording to the line's engine again: what came, what was decided, and whether it still is",
  positionals,
  flags,
  epilogue: "Exits with 0 when every decision is the same, 1 with the first that isn't, 69 when nothing can be replayed.",
  run: runReplay,
});
