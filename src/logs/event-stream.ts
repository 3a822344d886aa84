import { isObject, type JsonObject } from "../core/json-object.ts";
import { parseBounded } from "../envelope/bounded-json.ts";
import { LineSplitter } from "./line-splitter.ts";

/**
 * Makes the events of a running posline (`GET /events`) into the lines that its log has of them, so that both are shown alike. Events
 * without a line in the log, such as the steps of an exchange before its end and posline's own questions, are left out.
 */

/** An event as it came. */
export interface LiveEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: JsonObject;
}

/** Turns the bytes of a stream into events, in bounded memory whatever comes. */
export class EventStreamReader {
  readonly #lines = new LineSplitter();
  #id: string | undefined;
  #event = "";
  #data: string | undefined;

  push(chunk: Buffer, each: (event: LiveEvent) => void): void {
    this.#lines.push(chunk, ({ bytes, omittedBytes }) => {
      const line = bytes.toString().replace(/\r$/, "");
      if (line === "") this.#end(each);
      else if (omittedBytes === 0) this.#field(line);
    });
  }

  #field(line: string): void {
    const [, name, value = ""] = /^([a-z]+): ?(.*)$/s.exec(line) ?? [];
    if (name === "id") this.#id = value;
    else if (name === "event") this.#event = value;
    else if (name === "data") this.#data = value;
  }

  #end(each: (event: LiveEvent) => void): void {
    const [event, data] = [this.#event, this.#data];
    this.#event = "";
    this.#data = undefined;
    if (data === undefined) return;
    const parsed = parsedObject(data);
    if (parsed !== undefined) each({ id: this.#id, event, data: parsed });
  }
}

/** Parsed within bounds: a deeper object could be read, but not written again as a line. */
function parsedObject(text: string): JsonObject | undefined {
  const parsed = parseBounded(Buffer.from(text));
  return typeof parsed === "string" ? undefined : parsed.json;
}

/** An event as its line in the log, without a line end; undefined if the log has none of it. */
export function logLineOf({ event, data }: LiveEvent): string | undefined {
  const { time, ...fields } = data;
  const line = (level: "info" | "warn", more: object, msg: string) => JSON.stringify({ level, time, ...more, msg });
  switch (event) {
    case "exchange": {
      const {
        phase,
        background,
        line: _line,
        callId: _callId,
        amount: _amount,
        currency: _currency,
        about: _about,
        ...record
      } = fields;
      if (phase !== "ended" || background === true) return undefined;
      return line(record["outcome"] === "unknown" ? "warn" : "info", record, "exchange");
    }
    case "line":
      return line(fields["state"] === "down" ? "warn" : "info", fields, "line");
    case "discard":
      return line("warn", fields, "bytes were discarded");
    case "late":
      return line("warn", fields, "a late or unexpected reply was discarded");
    case "service": {
      const { service, state, reason, cure } = fields;
      if (state === "heard") return line("info", { line: fields["line"] }, `${word(service)} answers again`);
      const cause = `${word(reason)}: ${word(cure)}`;
      return line("warn", { line: fields["line"], reason: cause }, `${word(service)} does not answer`);
    }
    case "operation": {
      const { state, callId: _callId, ...operation } = fields;
      if (state === "unknown")
        return line("warn", operation, "an operation has an unknown outcome: check it before selling again");
      return line("info", operation, "an operation of unknown outcome was settled");
    }
    case "ready":
      return fields["ready"] === true
        ? line("info", {}, "ready: the next request is sent, at once or in its turn")
        : line("warn", { error: reasonsText(fields["reasons"]) }, "not ready");
    default:
      return undefined;
  }
}

/** A text, or "?": an object may have a `toString` of its own that is no function. */
const word = (value: unknown) => (typeof value === "string" ? value : value === undefined ? "" : "?");

function reasonsText(reasons: unknown): string {
  const all = Array.isArray(reasons) ? reasons.filter(isObject) : [];
  return all
    .map(({ line, service, state, reason }) => [word(service ?? line), word(state), word(reason)].filter(Boolean).join(" "))
    .join("; ");
}
