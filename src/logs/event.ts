import type { JsonObject } from "../core/json-object.ts";
import { parseObject } from "../envelope/json.ts";

/**
 * The log's lines, and how a technician reads them. This room does no I/O and has no clock: bytes in, text out.
 *
 * The kind of a line is decided once, here: an exchange, an event of a line or of the process, or text that posline didn't write as a
 * record (a crash's trace, the service manager's words in the same journal). A log is read on the bad days, from boxes whose card is dying,
 * and by people whose terminal obeys escape sequences: any bytes are shown, and none are trusted.
 */

/** Fields that have a place of their own in what is shown, by the kind of the line: texts, and numbers. */
const forms = {
  /** A request and its ending. */
  exchange: {
    texts: ["outcome", "requestId", "service", "route", "key", "status", "message"],
    numbers: ["httpStatus", "code", "queueMs", "lineMs"],
  },
  /** A line's change of state, bytes that it discarded, a frame that came late. */
  line: {
    texts: ["line", "state", "reason", "framing", "head", "crcGot", "crcArc", "crcUmts", "crc32"],
    numbers: ["bytes"],
  },
  /** An event of the process. */
  process: { texts: ["service", "key"], numbers: [] },
} as const;

type Kind = keyof typeof forms;

type FieldsOf<K extends Kind> = { readonly [Name in (typeof forms)[K]["texts"][number]]?: string } & {
  readonly [Name in (typeof forms)[K]["numbers"][number]]?: number;
};

interface Stamped {
  readonly timeMs: number;
  readonly level: string;
  /** How many of its kind before were left out of the log. */
  readonly leftOut: number;
  /** The line's other fields, by name. */
  readonly rest: readonly (readonly [name: string, value: string])[];
}

/** `left`: the caller had gone before the answer. */
export type ExchangeLogEvent = { readonly kind: "exchange"; readonly left: boolean } & Stamped & FieldsOf<"exchange">;
export type LineLogEvent = { readonly kind: "line"; readonly message: string } & Stamped & FieldsOf<"line">;
export type ProcessLogEvent = { readonly kind: "process"; readonly message: string } & Stamped & FieldsOf<"process">;

/** Text that posline didn't write as a record. */
export interface TextLogEvent {
  readonly kind: "text";
  readonly text: string;
}

export type LogEvent = ExchangeLogEvent | LineLogEvent | ProcessLogEvent | TextLogEvent;

/** The line without the priority that journald takes off, but a file keeps. */
export function withoutPriority(line: string): string {
  return /^<[0-7]>/.test(line) ? line.slice(3) : line;
}

/** Reads one line of the log, without its line end. */
export function readEvent(line: string): LogEvent {
  const text = withoutPriority(line);
  const record = text.startsWith("{") ? parseObject(text) : undefined;
  return (record === undefined ? undefined : eventOf(record)) ?? { kind: "text", text };
}

const outcomes: readonly unknown[] = ["answered", "not-sent", "unknown"];

/** @returns undefined for an object that isn't a record of this log. */
function eventOf(record: JsonObject): LogEvent | undefined {
  const { time, level, msg, leftOut, ...fields } = record;
  const timeMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(timeMs) || typeof level !== "string" || typeof msg !== "string") return undefined;
  const stamp = { timeMs, level, leftOut: typeof leftOut === "number" ? leftOut : 0 };
  if (msg === "exchange" && "outcome" in fields) {
    const { left, ...others } = fields;
    if (!outcomes.includes(fields["outcome"])) return undefined;
    return { kind: "exchange", left: left === true, ...stamp, ...sorted("exchange", others) };
  }
  const isLine = "line" in fields && ("state" in fields || "reason" in fields || "bytes" in fields);
  if (isLine) return { kind: "line", message: msg, ...stamp, ...sorted("line", fields) };
  return { kind: "process", message: msg, ...stamp, ...sorted("process", fields) };
}

/** A record's fields that have a place of their own, and the others. */
function sorted<K extends Kind>(kind: K, fields: JsonObject): FieldsOf<K> & Pick<Stamped, "rest"> {
  const { texts, numbers }: { readonly texts: readonly string[]; readonly numbers: readonly string[] } = forms[kind];
  const isPlaced = ([name, value]: readonly [string, unknown]) =>
    (typeof value === "string" && texts.includes(name)) || (typeof value === "number" && numbers.includes(name));
  const all = Object.entries(fields);
  const others = all.filter((each) => !isPlaced(each));
  const rest = others.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const);
  // What has a place has the type that its form says.
  return { ...(Object.fromEntries(all.filter(isPlaced)) as FieldsOf<K>), rest };
}
