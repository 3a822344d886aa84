import { type Logger, pino } from "pino";
import type { Outcome } from "./fault.ts";

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
  readonly httpStatus: number;
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
  readonly dropped?: number;
}

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

export interface Log {
  exchange(record: ExchangeRecord): void;
  line(level: "info" | "warn", message: string, fields: LineFields): void;
  process(level: "info" | "warn" | "error", message: string, fields?: ProcessFields): void;
  /** Writes what is held back, before the process ends. */
  flush(): void;
}

/** Milliseconds a line may be held back, so that many leave in one write; a reader that follows doesn't notice. */
const holdMs = 50;

/** Bytes that are written without waiting any longer. */
const writeBytes = 4_096;

/** Bytes held while the reader takes none (a stopped terminal, a frozen journal); what comes then is dropped, and counted. */
const heldBytesMax = 1024 * 1024;

const round = (ms: number) => Math.round(ms * 100) / 100;

/** Opens the log on a file descriptor. */
export function openLog(level: LogLevel, fd = 1): Log {
  const destination = pino.destination({ dest: fd, sync: false, minLength: writeBytes, maxLength: heldBytesMax });
  let dropped = 0;
  destination.on("drop", () => dropped++);
  // A reader that went away (`posline serve | head`) must not end the service.
  destination.on("error", () => {});
  const logger: Logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${isoNow()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  let timer: NodeJS.Timeout | undefined;
  const flushSoon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (dropped > 0) {
        const fields = { dropped };
        dropped = 0;
        logger.warn(fields, "log lines were dropped: the reader took none");
      }
      destination.flush();
    }, holdMs);
  };
  return {
    exchange({ queueMs, lineMs, left, ...record }) {
      logger.info({ ...record, queueMs: round(queueMs), lineMs: round(lineMs), ...(left ? { left } : {}) }, "exchange");
      flushSoon();
    },
    line(at, message, fields) {
      logger[at](fields, message);
      flushSoon();
    },
    process(at, message, fields = {}) {
      logger[at](fields, message);
      flushSoon();
    },
    flush() {
      clearTimeout(timer);
      try {
        destination.flushSync();
      } catch {
        // Nobody reads any more.
      }
    },
  };
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
