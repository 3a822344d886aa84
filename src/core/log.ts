import { type Logger, pino } from "pino";
import { maskCardNumbers } from "./card-number.ts";
import type { Outcome } from "./fault.ts";
import { LogWriter } from "./log-writer.ts";

/**
 * The log: NDJSON on standard output, a line an exchange, and what a technician needs to know of lines. The only importer of
 * pino.
 *
 * What may be logged is listed here, field by field. Bodies and payloads are not among it: they hold card data and secrets, and a
 * log is copied, mailed and kept.
 */

/** One request and what became of it. */
export interface ExchangeRecord {
  readonly requestId: string;
  readonly service: string;
  readonly route: string;
  /** pay_id or documentExtID. */
  readonly key: string | undefined;
  readonly outcome: Outcome;
  /** undefined for an answer that went over a line. */
  readonly httpStatus: number | undefined;
  /** `status` and `code` of the answer, the terminal's or posline's. */
  readonly status: string | undefined;
  readonly code: number | undefined;
  readonly queueMs: number;
  readonly lineMs: number;
  readonly requestBytes: number;
  readonly replyBytes: number;
  /** True when the caller left before the answer. */
  readonly left: boolean;
  /** Why it failed, when it did: posline's own words. */
  readonly message: string | undefined;
}

/** What is said of a line beside its exchanges. */
export interface LineFields {
  readonly line: string;
  readonly state?: string;
  readonly reason?: string;
  readonly bytes?: number;
  readonly framing?: string;
  /** The first bytes of a discard, at most 16, as hex. */
  readonly head?: string;
  readonly crcGot?: string;
  readonly crcArc?: string;
  readonly crcUmts?: string;
  readonly crc32?: string;
}

/** What is said of the process. */
export interface ProcessFields {
  readonly service?: string;
  readonly host?: string;
  readonly port?: number;
  readonly version?: string;
  readonly line?: string;
  readonly path?: string;
  readonly error?: string;
}

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

export interface Log {
  exchange(record: ExchangeRecord): void;
  line(level: "info" | "warn", message: string, fields: LineFields): void;
  process(level: "info" | "warn" | "error", message: string, fields?: ProcessFields): void;
  /** Writes what is held back, before the process ends. */
  flush(): void;
}

/** Bytes held while the reader takes none (a stopped terminal, a frozen journal); what comes then is dropped, and counted. */
const heldBytesMax = 1024 * 1024;

const round = (ms: number) => Math.round(ms * 100) / 100;

/**
 * Opens the log on a file descriptor.
 *
 * Each record is written out field by field here, never as it was passed: an object that brings more than its type says, by a
 * mistake elsewhere, still leaves the rest behind.
 */
export function openLog(level: LogLevel, fd = 1): Log {
  const writer = new LogWriter({
    fd,
    heldBytesMax,
    droppedLine: (dropped) =>
      `{"level":"warn","time":"${isoNow()}","dropped":${dropped},"msg":"log lines were dropped: the reader took none"}\n`,
  });
  const logger: Logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${isoNow()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    writer,
  );
  const exchanges = logger.isLevelEnabled("info");
  return {
    exchange(record) {
      if (exchanges) logger.info(exchangeFields(record), "exchange");
    },
    line(at, message, fields) {
      logger[at](lineFields(fields), message);
    },
    process(at, message, fields = {}) {
      logger[at](processFields(fields), message);
    },
    flush() {
      writer.flush();
    },
  };
}

/** A status is a word; a terminal that puts anything else there isn't quoted. */
const statusForm = /^[A-Za-z_-]{1,16}$/;

function exchangeFields(record: ExchangeRecord) {
  const { key, status, code } = record;
  return {
    requestId: maskCardNumbers(record.requestId),
    service: record.service,
    route: record.route,
    key: key === undefined ? undefined : maskCardNumbers(key),
    outcome: record.outcome,
    httpStatus: record.httpStatus,
    status: status === undefined || statusForm.test(status) ? status : "?",
    // Codes are int32 (fiscal.md, Response model); a longer number is no code and might be anything.
    code: code !== undefined && (code | 0) === code ? code : undefined,
    queueMs: round(record.queueMs),
    lineMs: round(record.lineMs),
    requestBytes: record.requestBytes,
    replyBytes: record.replyBytes,
    left: record.left ? true : undefined,
    message: record.message,
  };
}

function lineFields(fields: LineFields) {
  const { line, state, reason, bytes, framing, head, crcGot, crcArc, crcUmts, crc32 } = fields;
  return { line, state, reason, bytes, framing, head, crcGot, crcArc, crcUmts, crc32 };
}

function processFields(fields: ProcessFields) {
  const { service, host, port, version, line, path, error } = fields;
  return { service, host, port, version, line, path, error };
}

let isoAtMs = 0;
let iso = "";

/** The time of day, to the millisecond; made once a millisecond. */
function isoNow(): string {
  const now = Date.now();
  if (now !== isoAtMs) {
    isoAtMs = now;
    iso = new Date(now).toISOString();
  }
  return iso;
}
