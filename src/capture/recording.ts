import type { LineConfig } from "../config/config.ts";
import { lineDefaults } from "../config/limits.ts";
import type { ContractName, ServiceName } from "../core/call.ts";
import type { FaultKind, FaultReason } from "../core/fault.ts";
import { isObject, type JsonObject, objectIn } from "../core/json-object.ts";
import { parseObject } from "../envelope/json.ts";
import type { EngineRest } from "../line/events.ts";
import type { Receiving } from "../line/frame-reader.ts";
import type { Question } from "../recovery/standing.ts";
import type { Discard, Framing } from "../wire/decoded.ts";
import type { Decision } from "./decision.ts";

/**
 * A recording as text: JSON lines, a heading and one line for each event of a line's engine, with what the engine decided. Bytes in it
 * are masked. Several lines' recordings follow each other in one text.
 */

/** The version of a recording's form, raised with each setting that a line gets, too. A recording of another version is refused. */
export const recordingForm = 1;

/** What the engine was made of. Of a probe only its length counts, and that it is there: a sign may be in it. */
export interface RecordingHead {
  readonly recording: typeof recordingForm;
  readonly posline: string;
  readonly line: string;
  readonly config: LineConfig;
  readonly services: readonly {
    readonly service: ServiceName;
    readonly contract: ContractName;
    readonly replyBytesMax: number;
    readonly probeBytes: number | null;
    readonly secondBytes: number | null;
  }[];
  /** When it was read, by both clocks: what `t` counts from is no date. */
  readonly readAt: { readonly t: number; readonly time: string };
}

/**
 * A frame as it is kept. `text` is its payload, masked; `base64` where that isn't UTF-8. Where its bytes aren't kept, since it is
 * long or because masking would change how it reads, the rest says what the engine reads in it.
 */
export interface RecordedFrame {
  readonly kind: "frame";
  readonly framing: Framing;
  readonly payloadBytes: number;
  readonly wireBytes: number;
  readonly text?: string;
  readonly base64?: string;
  /** A JSON object that reads as the frame's does. */
  readonly like?: JsonObject;
  /** Why it isn't read at all. */
  readonly unread?: string;
  /** The frame is what was sent last, come back. */
  readonly isEcho?: true;
}

export type RecordedItem = RecordedFrame | Discard;

/** A call as the engine sees it. */
export interface RecordedCall {
  readonly at: "call";
  readonly call: number;
  readonly requestId: string;
  readonly service: ServiceName;
  readonly route: string;
  readonly framing: Framing;
  readonly frameBytes: number;
  readonly cameMs: number;
  readonly waitUntilMs: number;
  readonly replyTimeoutMs: number;
  readonly urgent: boolean;
  readonly background: boolean;
  readonly repeatable: boolean;
  /** Absent where its reply looks like no answer to a question of posline's own. */
  readonly shapedAs?: Question;
  readonly toRecord: boolean;
  readonly adviceWhenUnknown: string;
}

/** An event without its moment. */
export type RecordedInput =
  | RecordedCall
  | { readonly at: "opened"; readonly owing?: readonly ServiceName[] | undefined; readonly seed?: number | undefined }
  | { readonly at: "drained" | "wrote" | "tick" }
  | { readonly at: "open failed"; readonly reason: string }
  | { readonly at: "lost"; readonly reason: string; readonly nothingWritten: boolean; readonly discards: readonly Discard[] }
  | { readonly at: "received"; readonly items: readonly RecordedItem[]; readonly receiving: Receiving }
  | { readonly at: "recorded" | "caller gone"; readonly call: number }
  | {
      readonly at: "record failed";
      readonly call: number;
      readonly fault: { readonly kind: FaultKind; readonly message: string; readonly reason: FaultReason };
    }
  | { readonly at: "stop"; readonly graceMs: number; readonly why: string };

/** An event with its moment, on `nowMs`'s scale, and what was decided. */
export type RecordedEvent = RecordedInput & {
  readonly t: number;
  /** Calls that ended with this event, and whose callers had left by then: before its end that decides nothing. */
  readonly left?: readonly number[];
  readonly decided: readonly Decision[];
};

/** Where a replay can begin: the engine's state, or null for a line that begins. */
export interface RecordedRest {
  readonly at: "rest";
  readonly rest: EngineRest | null;
}

/** Something is missing here: an event was larger than the recorder's memory, or what was before is lost. */
export interface RecordedGap {
  readonly at: "gap";
}

export type RecordedEntry = RecordedEvent | RecordedRest | RecordedGap;

export interface Recording {
  readonly head: RecordingHead;
  readonly entries: readonly RecordedEntry[];
}

/** When something happened, by the wall clock, as ISO 8601. */
export function timeOf({ readAt }: RecordingHead, t: number): string {
  return new Date(Date.parse(readAt.time) - (readAt.t - t)).toISOString();
}

export function recordingText({ head, entries }: Recording): string {
  return [head, ...entries].map((each) => `${JSON.stringify(each)}\n`).join("");
}

/** A text isn't a recording, or one of another version. */
export class RecordingError extends Error {
  readonly exitCode = 69;
}

const ats: ReadonlySet<unknown> = new Set<RecordedEntry["at"]>([
  ...(["call", "opened", "drained", "wrote", "tick", "open failed", "lost", "received", "recorded"] as const),
  ...(["caller gone", "record failed", "stop", "rest", "gap"] as const),
]);

/**
 * The recordings in a text.
 * @throws RecordingError naming the line that isn't one of a recording's.
 */
export function parseRecordings(text: string): readonly Recording[] {
  const recordings: { readonly head: RecordingHead; readonly entries: RecordedEntry[] }[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line === "") continue;
    const value = parseObject(line);
    if (value === undefined) throw notOne(index + 1, "it is not a JSON object");
    const current = recordings.at(-1);
    if ("recording" in value) recordings.push({ head: headIn(value, index + 1), entries: [] });
    else if (current === undefined) throw notOne(index + 1, "a heading belongs there");
    else current.entries.push(entryIn(value, index + 1));
  }
  if (recordings.length === 0) throw new RecordingError("Cannot read the recording: it is empty");
  return recordings;
}

function headIn(value: JsonObject, number: number): RecordingHead {
  const { recording, line, config, services } = value;
  if (recording !== recordingForm) {
    throw notOne(
      number,
      `it has form ${JSON.stringify(recording)}, and this posline reads ${recordingForm}: use the posline that wrote it`,
    );
  }
  const readAt = objectIn(value["readAt"]);
  const isOfLine = isObject(config) && Object.keys(lineDefaults).every((setting) => setting in config);
  const isComplete = typeof line === "string" && isOfLine && Array.isArray(services) && services.every(isObject);
  const isDated = isMoment(readAt["t"]) && typeof readAt["time"] === "string" && /^2\d{3}-/.test(readAt["time"]);
  if (!isComplete || !isDated || Number.isNaN(Date.parse(String(readAt["time"]))))
    throw notOne(number, "its heading is incomplete");
  const whole: object = value;
  // `recordingText` of the same form wrote it; what was changed by hand fails in the replay, which says so.
  return whole as RecordingHead;
}

function entryIn(value: JsonObject, number: number): RecordedEntry {
  const { at, t, decided } = value;
  const isEvent = at !== "rest" && at !== "gap";
  if (!ats.has(at) || (isEvent && (!isMoment(t) || !Array.isArray(decided) || !decided.every(isFlat))))
    throw notOne(number, "it is not an event");
  // `recordingText` of the same form wrote this entry, too.
  return value as unknown as RecordedEntry;
}

/** An object of texts, numbers and truths alone, as each decision is. */
const isFlat = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every((each) => each === null || typeof each !== "object");

/** Milliseconds on `nowMs`'s scale: less than 300 years. */
const isMoment = (value: unknown): value is number => typeof value === "number" && Math.abs(value) < 1e13;

function notOne(number: number, why: string): RecordingError {
  return new RecordingError(`Cannot read the recording: line ${number}: ${why}`);
}
