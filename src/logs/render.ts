import { contracts, routeOf } from "../contract/contracts.ts";
import { contractNames } from "../core/call.ts";
import { localDay, localTime } from "../core/local-time.ts";
import { urlHost } from "../core/url-host.ts";
import type { ExchangeLogEvent, LineLogEvent, LogEvent, ProcessLogEvent } from "./event.ts";
import { type Colourer, type Tone, terminalSafe } from "./terminal-text.ts";

/** Shows events: one line each, its columns aligned, the time that of the box. */

export interface LogRendererOptions {
  readonly colour: Colourer;
  /** Whether the date is on each line, for text that is searched and sorted, or above the first line of a day. */
  readonly dates: "each" | "change";
}

/** Characters up to which a column grows with its texts; a longer text moves the rest of its line. */
const widthsMax = { route: 21, key: 36, outcome: 24 } as const;

type Column = keyof typeof widthsMax;

export class LogRenderer {
  readonly #colour: Colourer;
  readonly #dates: LogRendererOptions["dates"];
  #widths: Record<Column, number> = { route: 8, key: 8, outcome: 16 };
  #day = "";

  constructor({ colour, dates }: LogRendererOptions) {
    this.#colour = colour;
    this.#dates = dates;
  }

  /** An event as its line, with the day above it if that is another than the last one's. */
  next(event: LogEvent): string {
    if (event.kind === "exchange") this.#fit(event);
    const line = `${this.line(event)}\n`;
    if (event.kind === "text" || this.#dates === "each") return line;
    const day = localDay(event.timeMs);
    if (day === this.#day) return line;
    this.#day = day;
    return `${this.#colour("faint", `--- ${day}`)}\n${line}`;
  }

  /** An event as its line alone. */
  line(event: LogEvent): string {
    if (event.kind === "text") return terminalSafe(event.text);
    const time = this.#dates === "each" ? `${localDay(event.timeMs)} ${localTime(event.timeMs)}` : localTime(event.timeMs);
    const more =
      event.leftOut > 0 ? this.#colour("odd", `(${event.leftOut} similar lines before it were left out of the log)`) : "";
    return joinColumns([this.#colour("faint", time), this.#columnsOf(event), more]);
  }

  #columnsOf(event: Exclude<LogEvent, { kind: "text" }>): string {
    if (event.kind === "exchange") return this.#exchange(event);
    return event.kind === "line" ? renderLine(event, this.#colour) : renderProcess(event, this.#colour);
  }

  #exchange(event: ExchangeLogEvent): string {
    const { requestId, left, message, outcome, rest } = event;
    const { route, key, outcome: outcomeText } = cellsOf(event);
    const filled = (column: Column, text: string) => " ".repeat(Math.max(0, this.#widths[column] - text.length));
    return joinColumns([
      subjectColumn(event.service ?? "?"),
      route + filled("route", route),
      this.#colour("strong", key) + filled("key", key),
      this.#colour(toneOf(event), outcomeText) + filled("outcome", outcomeText),
      `${msOf(event.queueMs ?? 0)}+${msOf(event.lineMs ?? 0)} ms`.padStart(14),
      left ? this.#colour("odd", "the client disconnected before the answer") : "",
      terminalSafe(message ?? ""),
      this.#colour("faint", restColumn(rest.filter(([name]) => !name.endsWith("Bytes")))),
      outcome === "answered" ? "" : this.#colour("faint", `[${terminalSafe(requestId ?? "")}]`),
    ]);
  }

  #fit(event: ExchangeLogEvent): void {
    const cells = cellsOf(event);
    for (const column of ["route", "key", "outcome"] as const) {
      const { length } = cells[column];
      if (length <= widthsMax[column]) this.#widths[column] = Math.max(this.#widths[column], length);
    }
  }
}

function cellsOf(event: ExchangeLogEvent): Readonly<Record<Column, string>> {
  return { route: terminalSafe(event.route ?? "?"), key: terminalSafe(event.key ?? "-"), outcome: outcomeOf(event) };
}

function outcomeOf({ outcome, status, code, httpStatus }: ExchangeLogEvent): string {
  const numbers = (number: number | undefined) => (number === undefined || number === 0 ? "" : ` ${number}`);
  if (outcome === "answered") return terminalSafe(`answered ${status ?? ""}${numbers(code)}`.trimEnd());
  return `${outcome === "unknown" ? "UNKNOWN" : "NOT SENT"}${numbers(httpStatus)}`;
}

function toneOf({ outcome, status, service = "?", route = "?" }: ExchangeLogEvent): Tone {
  if (outcome === "answered") return status === undefined || /^success$/i.test(status) ? "good" : "odd";
  if (outcome === "not-sent") return "bad";
  return onlyReads(service, route) ? "bad" : "loud";
}

/** True if asking can't have changed anything. */
function onlyReads(service: string, route: string): boolean {
  const name = contractNames.find((each) => each === service);
  // A name of the configuration's own may have any contract.
  const effects = (name === undefined ? contractNames : [name]).flatMap(
    (each) => routeOf(contracts[each], route)?.effect ?? [],
  );
  return effects.length > 0 && effects.every((effect) => effect === "none");
}

/** Milliseconds as text, with tenths if they mean something. */
function msOf(ms: number): string {
  return ms < 100 ? String(Math.round(ms * 10) / 10) : String(Math.round(ms));
}

/** An event of a line, with a hint at its cause. */
function renderLine(event: LineLogEvent, colour: Colourer): string {
  const { line, rest } = event;
  return joinColumns([
    subjectColumn("line"),
    colour("strong", terminalSafe(line ?? "?")),
    lineText(event, colour),
    colour("faint", restColumn(rest)),
  ]);
}

function lineText(event: LineLogEvent, colour: Colourer): string {
  const { message, state, reason, framing, bytes, head, crcGot } = event;
  if (state !== undefined)
    return joinColumns([colour(stateTones.get(state) ?? "odd", terminalSafe(state).toUpperCase()), terminalSafe(reason ?? "")]);
  const text = message === "line" ? "" : terminalSafe(message);
  if (head === undefined && crcGot === undefined) {
    const what = [framing, bytes === undefined ? undefined : `${bytes} bytes`]
      .filter((part) => part !== undefined)
      .join(" frame, ");
    return joinColumns([
      // A late frame has no reason; a refused one has.
      framing === undefined || reason !== undefined ? "" : colour("odd", "LATE"),
      text,
      terminalSafe(reason ?? ""),
      terminalSafe(what),
    ]);
  }
  const facts = [
    reason && (discardTexts.get(reason) ?? reason),
    bytes === undefined ? undefined : `${bytes} bytes`,
    crcText(event),
    head && `head ${headText(head)}`,
  ];
  const present = facts.filter((fact) => fact !== undefined && fact !== "");
  const hint = hintOf(event);
  return joinColumns([
    colour("odd", "DISCARD"),
    `${text}: ${terminalSafe(present.join(", "))}`,
    hint === undefined ? "" : colour("strong", terminalSafe(hint)),
  ]);
}

/** Why bytes are not a valid frame, by the log's word for it. */
const discardTexts: ReadonlyMap<string, string> = new Map([
  ["noise", "not part of a frame"],
  ["checksum", "wrong checksum"],
  ["oversize", "length field too large"],
  ["reset", "incomplete frame"],
]);

const stateTones: ReadonlyMap<string, Tone> = new Map([
  ["down", "bad"],
  ["recovering", "odd"],
  ["idle", "good"],
  ["awaiting", "good"],
  ["open", "good"],
  ["closed", "faint"],
]);

/** The checksum that came, and the one that each reading of it gives. */
function crcText({ crcGot, crcArc, crcUmts, crc32 }: LineLogEvent): string {
  if (crcGot === undefined) return "";
  const readings = Object.entries({ arc: crcArc, umts: crcUmts, crc32 }).flatMap(([name, sum]) =>
    sum ? [`${name} gives ${sum}`] : [],
  );
  return [`checksum ${crcGot} received`, ...readings].join(", ");
}

/** The bytes one by one, and as text if they are some. */
function headText(head: string): string {
  const bytes = head.match(/[0-9a-f]{2}/gi);
  if (bytes === null || bytes.join("") !== head) return head;
  const text = bytes.map((byte) => String.fromCharCode(Number.parseInt(byte, 16))).join("");
  const spaced = bytes.join(" ");
  return /[ -~]{2}/.test(text) ? `${spaced} |${text.replace(/[^ -~]/g, ".")}|` : spaced;
}

/** A cause that the bytes give away. */
function hintOf({ reason, crcGot, crcArc, crcUmts, head = "", line }: LineLogEvent): string | undefined {
  if (reason === "checksum" && crcGot !== undefined) {
    const fits = (sum: string | undefined) => sum?.toLowerCase() === crcGot.toLowerCase();
    const other = fits(crcArc) ? "arc" : fits(crcUmts) ? "umts" : undefined;
    // A frame that fits the configured reading isn't discarded, so a reading that fits is always the other one.
    if (other !== undefined)
      return `the terminal uses the checksum CRC-16/${other.toUpperCase()}: set "crc16": "${other}" for line ${line}`;
    return "no known checksum fits: check speed, parity and cable";
  }
  // AT, +++ and the probe of QCDM modems.
  if (/^(?:4154|2b2b2b|7e0078f07e)/i.test(head)) {
    return "these are modem commands: is ModemManager probing the port? Run sudo posline doctor";
  }
  if (reason === "oversize") return "is the speed of the line right?";
  return undefined;
}

/** An event of the process. */
function renderProcess({ level, message, service, key, rest }: ProcessLogEvent, colour: Colourer): string {
  const fields = new Map(rest);
  const take = (name: string) => {
    const value = fields.get(name);
    fields.delete(name);
    return value;
  };
  const [dropped, error, host] = [take("dropped"), take("error"), take("host")];
  const text = `${dropped === undefined ? "" : `${dropped} `}${message}${error === undefined ? "" : `: ${error}`}`;
  const address = host === undefined ? "" : `${urlHost(host)}:${take("port") ?? ""}`;
  return joinColumns([
    subjectColumn(service ?? "posline"),
    headingOf(level, colour),
    terminalSafe(text),
    terminalSafe(address),
    key === undefined ? "" : colour("strong", terminalSafe(key)),
    colour("faint", restColumn([...fields])),
  ]);
}

function headingOf(level: string, colour: Colourer): string {
  if (level === "error" || level === "fatal") return colour("bad", "ERROR");
  return level === "warn" ? colour("odd", "WARNING") : "";
}

/** The first column after the time: the service, line or process. */
function subjectColumn(name: string): string {
  return terminalSafe(name).padEnd(7);
}

/** Fields that have no place of their own. */
function restColumn(rest: readonly (readonly [string, string])[]): string {
  return rest.map(([name, value]) => `${terminalSafe(name)}=${terminalSafe(value)}`).join(" ");
}

/** The parts of a line that aren't empty. */
function joinColumns(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("  ");
}
