import { contracts, routeOf } from "../contract/contracts.ts";
import { serviceNames } from "../core/call.ts";
import { joined, restOf, subject } from "./columns.ts";
import type { ExchangeEvent, LogEvent } from "./event.ts";
import { type Paint, plain, type Tone } from "./paint.ts";
import { renderLine } from "./render-line.ts";
import { renderProcess } from "./render-process.ts";

/** How events are shown: one line each, its columns aligned, the time that of the box. */

export interface RenderOptions {
  readonly paint: Paint;
  /** Whether the date stands on each line, for text that is searched and sorted, or above the first line of a day. */
  readonly dates: "each" | "change";
}

/** Characters up to which a column grows with what stands in it; what is longer moves the rest of its line. */
const widthsMax = { route: 21, key: 36, outcome: 24 } as const;

type Column = keyof typeof widthsMax;

export class Renderer {
  readonly #paint: Paint;
  readonly #dates: RenderOptions["dates"];
  #widths: Record<Column, number> = { route: 8, key: 8, outcome: 16 };
  #day = "";

  constructor({ paint, dates }: RenderOptions) {
    this.#paint = paint;
    this.#dates = dates;
  }

  /** An event as its line, with the day above it when that is another than the last one's. */
  next(event: LogEvent): string {
    if (event.kind === "exchange") this.#fit(event);
    const line = `${this.line(event)}\n`;
    if (event.kind === "text" || this.#dates === "each") return line;
    const day = dayOf(event.timeMs);
    if (day === this.#day) return line;
    this.#day = day;
    return `${this.#paint("faint", `--- ${day}`)}\n${line}`;
  }

  /** An event as its line alone. */
  line(event: LogEvent): string {
    if (event.kind === "text") return plain(event.text);
    const time = this.#dates === "each" ? `${dayOf(event.timeMs)} ${timeOf(event.timeMs)}` : timeOf(event.timeMs);
    const more = event.leftOut > 0 ? this.#paint("odd", `(${event.leftOut} more like it before were left out of the log)`) : "";
    return joined([this.#paint("faint", time), this.#told(event), more]);
  }

  #told(event: Exclude<LogEvent, { kind: "text" }>): string {
    if (event.kind === "exchange") return this.#exchange(event);
    return event.kind === "line" ? renderLine(event, this.#paint) : renderProcess(event, this.#paint);
  }

  #exchange(event: ExchangeEvent): string {
    const { requestId, left, message, outcome, rest } = event;
    const { route, key, outcome: told } = cellsOf(event);
    const filled = (column: Column, text: string) => " ".repeat(Math.max(0, this.#widths[column] - text.length));
    return joined([
      subject(event.service),
      route + filled("route", route),
      this.#paint("strong", key) + filled("key", key),
      this.#paint(toneOf(event), told) + filled("outcome", told),
      `${msOf(event.queueMs)}+${msOf(event.lineMs)} ms`.padStart(14),
      left ? this.#paint("odd", "the caller left before the answer") : "",
      plain(message ?? ""),
      this.#paint("faint", restOf(rest.filter(([name]) => !name.endsWith("Bytes")))),
      outcome === "answered" ? "" : this.#paint("faint", `[${plain(requestId)}]`),
    ]);
  }

  #fit(event: ExchangeEvent): void {
    const cells = cellsOf(event);
    for (const column of ["route", "key", "outcome"] as const) {
      const { length } = cells[column];
      if (length <= widthsMax[column]) this.#widths[column] = Math.max(this.#widths[column], length);
    }
  }
}

function cellsOf(event: ExchangeEvent): Readonly<Record<Column, string>> {
  return { route: plain(event.route), key: plain(event.key ?? "-"), outcome: outcomeOf(event) };
}

function outcomeOf({ outcome, status, code, httpStatus }: ExchangeEvent): string {
  const numbers = (number: number | undefined) => (number === undefined || number === 0 ? "" : ` ${number}`);
  if (outcome === "answered") return plain(`answered ${status ?? ""}${numbers(code)}`.trimEnd());
  return `${outcome === "unknown" ? "UNKNOWN" : "NOT SENT"}${numbers(httpStatus)}`;
}

function toneOf({ outcome, status, service, route }: ExchangeEvent): Tone {
  if (outcome === "answered") return status === undefined || /^success$/i.test(status) ? "good" : "odd";
  if (outcome === "not-sent") return "bad";
  return onlyReads(service, route) ? "bad" : "loud";
}

/** Whether nothing can have been changed by asking. */
function onlyReads(service: string, route: string): boolean {
  const name = serviceNames.find((each) => each === service);
  return name !== undefined && routeOf(contracts[name], route)?.effect === "none";
}

const two = (n: number) => String(n).padStart(2, "0");

function dayOf(ms: number): string {
  const at = new Date(ms);
  return `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

function timeOf(ms: number): string {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** Tenths where they mean something. */
function msOf(ms: number): string {
  return ms < 100 ? String(Math.round(ms * 10) / 10) : String(Math.round(ms));
}
