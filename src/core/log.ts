import { type Logger, pino } from "pino";
import { type BudgetSize, LogBudgets } from "./log-budget.ts";
import {
  type ExchangeRecord,
  exchangeFields,
  type LineFields,
  lineFields,
  type ProcessFields,
  processFields,
} from "./log-fields.ts";
import { isJournald, priorityPrefix } from "./log-journald.ts";
import { descriptorOutput, JournaldOutput } from "./log-output.ts";
import { loggedSentence } from "./log-text.ts";
import { isGone, LogWriter } from "./log-writer.ts";
import { printableJson } from "./shell-text.ts";

/**
 * The log: NDJSON on standard output, a line an exchange, and facts about lines that a technician needs. The only importer of pino.
 *
 * Logged fields are listed one by one (log-fields). Bodies and payloads are not among them: they hold card data and secrets, and a log is
 * copied, mailed and kept.
 *
 * The log's size is bounded. Exchanges are bounded by the line itself, and always written; lines that anybody can cause at will have a
 * budget, and `leftOut` says how many of their kind before were left out. journald by default takes 10,000 lines in 30 s and then drops
 * whatever comes, the sale with an unknown outcome too: all budgets together stay below that.
 */

export type { ExchangeRecord, LineFields, ProcessFields } from "./log-fields.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** Log lines that nobody can read, since the log was opened. */
export interface LogDropped {
  /** Left out by a budget; counted once the log says so itself. */
  readonly budget: number;
  /** Dropped since the reader took none or went away, or the disk was full. */
  readonly reader: number;
}

/** Whether the log reaches its reader. */
export interface LogHealth {
  /** `ok`, or why lines don't leave, what becomes of them, and what to do. */
  readonly state: string;
  /** How many lines are missing in it by now. */
  readonly dropped: LogDropped;
}

export interface Log extends LogHealth {
  exchange(record: ExchangeRecord): void;
  line(level: "info" | "warn", message: string, fields: LineFields): void;
  process(level: "info" | "warn" | "error", message: string, fields?: ProcessFields): void;
  /** The minimum level that is written from now on. */
  setLevel(level: LogLevel): void;
  /** Writes held lines, before the process ends. */
  flush(): void;
}

/** Bytes held while the reader takes none (a stopped terminal, a frozen journal, a full disk); later ones are dropped, and counted. */
const heldBytesMax = 1024 * 1024;

/**
 * Answered exchanges that are made into lines together. In a batch each takes a quarter of the time that it takes alone, after the
 * processor has done other work; many more would hold up the call that comes next.
 */
const exchangesTogether = 8;

/** The budget of each kind: enough to see what goes on, and with all of them used up some 4 kB a second. */
const budgets = {
  /** Refused requests of a service that are wrong themselves: a wrong path, key, Host, body. */
  refused: { burst: 100, perSecond: 1 },
  /** Good requests of a service that were not sent: the line is down, the queue is full. */
  unsent: { burst: 300, perSecond: 2 },
  /** A line's warnings of one kind: a device that babbles at 115200 baud makes hundreds of them a second. */
  warnings: { burst: 60, perSecond: 1 },
  /** A line's changes of state: a cable with a loose contact. */
  states: { burst: 100, perSecond: 1 },
  /** Lines of one text about the process. */
  process: { burst: 100, perSecond: 1 },
} as const satisfies Record<string, BudgetSize>;

/** Texts about the process that have a budget of their own; of services and lines there are few. */
const textsMax = 64;

export interface LogOptions {
  /** Standard output unless said otherwise. */
  readonly fd?: number;
  /** Turns a line of NDJSON, without its line end, into the written text; NDJSON unless given. */
  readonly render?: ((line: string) => string) | undefined;
  /** Whether the descriptor leads to journald, which wants a line's priority in front; found out unless given. */
  readonly journald?: boolean;
  /** The stream's name in journald, if posline connects to it anew. */
  readonly identifier?: string;
  /** journald's socket; the tests have one of their own. */
  readonly journaldSocket?: string;
}

/** The socket on which journald takes streams of lines. */
const journaldStreams = "/run/systemd/journal/stdout";

/** Opens the log on a file descriptor. Held lines go out with `flush`, which must come before the process ends. */
export function openLog(level: LogLevel, options: LogOptions = {}): Log {
  const { fd = 1, render, identifier = "posline", journaldSocket = journaldStreams } = options;
  const journald = options.journald ?? isJournald(fd, process.env["JOURNAL_STREAM"]);
  let held: HeldExchange[] = [];
  const prefixed = render === undefined && journald;
  const warning = (msg: string, fields: { readonly dropped?: number } = {}) => {
    const line = JSON.stringify({ level: "warn", time: isoOf(Date.now()), ...fields, msg });
    return render === undefined ? `${prefixed ? priorityPrefix(40) : ""}${line}\n` : render(line);
  };
  const writer = new LogWriter({
    output: descriptorOutput(fd),
    replace: !journald
      ? undefined
      : () =>
          new JournaldOutput({
            ...{ path: journaldSocket, identifier },
            firstLine: () => warning("journald went away, and is there again: lines just before this one may be missing"),
            returned: (bytes) => writer.takeBack(bytes),
          }),
    heldBytesMax,
    gather: () => writeHeld(),
    droppedLine: (dropped, refusal) => warning(droppedText(refusal), { dropped }),
  });
  const sink = {
    /** Pino sets it before each line of a sink that is marked so. */
    lastLevel: 0,
    ...(prefixed && { [Symbol.for("pino.metadata")]: true }),
    write: (line: string) => {
      // No terminal that shows the log later is to obey the words of a till or a device.
      const safe = printableJson(line);
      const prefix = prefixed ? priorityPrefix(sink.lastLevel) : "";
      writer.write(render === undefined ? `${prefix}${safe}` : render(safe.trimEnd()));
    },
  };
  const logger: Logger = pino(
    {
      level,
      base: null,
      // Each line says when its event happened, which may be seconds ago.
      timestamp: false,
      formatters: { level: (label) => ({ level: label }) },
    },
    sink,
  );
  let leftOutEver = 0;
  const writeHeld = () => {
    const those = held;
    held = [];
    let failure: unknown;
    for (const { record, endedMs } of those) {
      try {
        logger.info({ time: isoOf(endedMs), ...exchangeFields(record) }, "exchange");
      } catch (error) {
        // Kept for later, since it is a bug, of which no other line and no call must be the worse.
        failure ??= error;
      }
    }
    if (failure === undefined) return;
    logger.error({ time: isoOf(Date.now()), error: loggedSentence(String(failure)) }, "an exchange could not be logged");
  };
  const put = ({ level: at, fields, message, timeMs }: Line, leftOut: number) => {
    leftOutEver += leftOut;
    writeHeld();
    logger[at]({ time: isoOf(timeMs), ...fields, ...(leftOut > 0 && { leftOut }) }, message);
  };
  const kinds = new LogBudgets(put);
  const texts = new LogBudgets(put, textsMax);
  return {
    exchange(record) {
      // An exchange on the line is never left out, and is a warning if its outcome is unknown.
      if (record.outcome === "unknown") put(lineOf("warn", "exchange", exchangeFields(record)), 0);
      if (record.outcome === "unknown" || !logger.isLevelEnabled("info")) return;
      if (record.outcome === "answered") {
        held.push({ record, endedMs: Date.now() });
        if (held.length < exchangesTogether) writer.expect();
        else writeHeld();
        return;
      }
      const kind = wasGood(record) ? "unsent" : "refused";
      kinds.add(`${kind} ${record.service}`, budgets[kind], lineOf("info", "exchange", exchangeFields(record)));
    },
    line(at, message, fields) {
      if (!logger.isLevelEnabled(at)) return;
      const kind = fields.state === undefined && at === "warn" ? "warnings" : "states";
      const line = lineOf(at, loggedSentence(message), lineFields(fields));
      kinds.add(`${kind} ${fields.line} ${message}`, budgets[kind], line);
    },
    process(at, message, fields = {}) {
      if (!logger.isLevelEnabled(at)) return;
      texts.add(message, budgets.process, lineOf(at, loggedSentence(message), processFields(fields)));
    },
    get state() {
      return stateOf(writer.blockage, journald);
    },
    get dropped() {
      writeHeld();
      return { budget: leftOutEver, reader: writer.droppedEver };
    },
    setLevel(now) {
      writeHeld();
      logger.level = now;
    },
    flush() {
      kinds.end();
      texts.end();
      writer.flush();
    },
  };
}

function droppedText(refusal: string): string {
  if (refusal === "EAGAIN") return "log lines were dropped: the reader took none";
  if (isGone(refusal)) return `log lines were dropped: the reader went away (${refusal})`;
  return `log lines were dropped: they could not be written (${refusal})`;
}

/** @param blockage Why lines don't leave, as the system's code. */
function stateOf(blockage: string | undefined, journald: boolean): string {
  if (blockage === undefined) return "ok";
  const held = `lines are held up to ${heldBytesMax / 1024 / 1024} MiB, then dropped`;
  if (journald) return `journald takes no lines (${blockage}): ${held}: systemctl status systemd-journald`;
  if (blockage === "EAGAIN") return `the log's reader takes no lines: ${held}: let it go on, or restart posline`;
  if (isGone(blockage)) return `the log's reader went away (${blockage}): lines are dropped: restart posline with a reader`;
  return `the log can't be written (${blockage}): ${held}: make room on its disk`;
}

/** An answered exchange that isn't a line yet, with its time of day in milliseconds. */
interface HeldExchange {
  readonly record: ExchangeRecord;
  readonly endedMs: number;
}

/** A line of the log before it is written. */
interface Line {
  readonly level: "info" | "warn" | "error";
  readonly fields: object;
  readonly message: string;
  /** When the line's event happened: a budget may write it seconds later. */
  readonly timeMs: number;
}

const lineOf = (level: Line["level"], message: string, fields: object): Line => ({
  ...{ level, message, fields },
  timeMs: Date.now(),
});

/** True if a request that wasn't sent was well-formed: it names an operation, or only had no line. */
function wasGood({ key, httpStatus }: ExchangeRecord): boolean {
  return key !== undefined || httpStatus === undefined || httpStatus === 503;
}

let secondAt = 0;
let second = "";

/** A time of day, to the millisecond; the text before the milliseconds is made once a second, since each line has it. */
function isoOf(ms: number): string {
  const at = Math.floor(ms / 1000);
  if (at !== secondAt) {
    secondAt = at;
    second = new Date(at * 1000).toISOString().slice(0, -4);
  }
  return `${second}${String(ms - at * 1000).padStart(3, "0")}Z`;
}
