import { isObject, type JsonObject } from "../core/json-object.ts";
import type { ExchangeRecord } from "../core/log-fields.ts";

/**
 * The log's lines, and how a technician reads them. This room does no I/O and has no clock: bytes in, text out.
 *
 * The kind of a line is decided once, here: an exchange, an event of a line or of the process, or text that posline didn't write as a
 * record (a crash's trace, the service manager's words in the same journal). A log is read on the bad days, from boxes whose card is dying,
 * and by people whose terminal obeys escape sequences: any bytes are shown, and none are trusted.
 */

/** A request and its ending. */
export interface ExchangeLogEvent extends Stamped, Omit<ExchangeRecord, "requestBytes" | "replyBytes"> {
  readonly kind: "exchange";
}

/** A line's change of state, bytes that it discarded, a frame that came late. */
export interface LineLogEvent extends Stamped {
  readonly kind: "line";
  readonly line: string;
  readonly message: string;
  readonly state: string | undefined;
  readonly reason: string | undefined;
  readonly framing: string | undefined;
  readonly bytes: number | undefined;
  /** The first bytes of a discard, as hex. */
  readonly head: string | undefined;
  /** The checksum that came, and the one that each reading of it gives. */
  readonly crc: { readonly got: string; readonly arc?: string; readonly umts?: string; readonly crc32?: string } | undefined;
}

/** An event of the process. */
export interface ProcessLogEvent extends Stamped {
  readonly kind: "process";
  readonly message: string;
  readonly service: string | undefined;
  readonly key: string | undefined;
}

interface Stamped {
  readonly timeMs: number;
  readonly level: string;
  /** How many of its kind before were left out of the log. */
  readonly leftOut: number;
  /** The line's other fields, by name. */
  readonly rest: readonly (readonly [name: string, value: string])[];
}

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
  const record = objectIn(text);
  const event = record === undefined ? undefined : eventOf(new Fields(record));
  return event ?? { kind: "text", text };
}

function objectIn(text: string): JsonObject | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Takes fields out of a record by name and type; the others are the rest. */
class Fields {
  readonly #remaining: Map<string, unknown>;

  constructor(record: JsonObject) {
    this.#remaining = new Map(Object.entries(record));
  }

  text(name: string): string | undefined {
    const value = this.#remaining.get(name);
    if (typeof value !== "string") return undefined;
    this.#remaining.delete(name);
    return value;
  }

  number(name: string): number | undefined {
    const value = this.#remaining.get(name);
    if (typeof value !== "number") return undefined;
    this.#remaining.delete(name);
    return value;
  }

  /** True if the field is there and true. */
  flag(name: string): boolean {
    return this.#remaining.get(name) === true && this.#remaining.delete(name);
  }

  has(name: string): boolean {
    return this.#remaining.has(name);
  }

  rest(): [string, string][] {
    return Array.from(this.#remaining, ([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  }
}

/** @returns undefined for an object that isn't a record of this log. */
function eventOf(fields: Fields): LogEvent | undefined {
  const timeMs = Date.parse(fields.text("time") ?? "");
  const level = fields.text("level");
  const message = fields.text("msg");
  if (Number.isNaN(timeMs) || level === undefined || message === undefined) return undefined;
  const stamp = { timeMs, level, leftOut: fields.number("leftOut") ?? 0 };
  if (message === "exchange" && fields.has("outcome")) return exchangeOf(fields, stamp);
  if (fields.has("line") && (fields.has("state") || fields.has("reason") || fields.has("bytes"))) {
    return lineOf(fields, message, stamp);
  }
  return {
    kind: "process",
    message,
    service: fields.text("service"),
    key: fields.text("key"),
    ...stamp,
    rest: fields.rest(),
  };
}

type Stamp = Omit<Stamped, "rest">;

function exchangeOf(fields: Fields, stamp: Stamp): ExchangeLogEvent | undefined {
  const outcome = fields.text("outcome");
  if (outcome !== "answered" && outcome !== "not-sent" && outcome !== "unknown") return undefined;
  return {
    kind: "exchange",
    outcome,
    requestId: fields.text("requestId") ?? "",
    service: fields.text("service") ?? "?",
    route: fields.text("route") ?? "?",
    key: fields.text("key"),
    httpStatus: fields.number("httpStatus"),
    status: fields.text("status"),
    code: fields.number("code"),
    queueMs: fields.number("queueMs") ?? 0,
    lineMs: fields.number("lineMs") ?? 0,
    left: fields.flag("left"),
    message: fields.text("message"),
    ...stamp,
    rest: fields.rest(),
  };
}

function lineOf(fields: Fields, message: string, stamp: Stamp): LineLogEvent {
  const got = fields.text("crcGot");
  const readings = { arc: fields.text("crcArc"), umts: fields.text("crcUmts"), crc32: fields.text("crc32") };
  const present = Object.fromEntries(Object.entries(readings).filter(([, value]) => value !== undefined));
  return {
    kind: "line",
    message,
    line: fields.text("line") ?? "?",
    state: fields.text("state"),
    reason: fields.text("reason"),
    framing: fields.text("framing"),
    bytes: fields.number("bytes"),
    head: fields.text("head"),
    crc: got === undefined ? undefined : { got, ...present },
    ...stamp,
    rest: fields.rest(),
  };
}
