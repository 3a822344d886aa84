import type { ServiceName } from "../core/call.ts";
import { printable } from "../core/shell-text.ts";
import type { Cause } from "../device/open-errors.ts";

/**
 * How bad a finding is. `ok`: as it should be. `note`: worth knowing. `warn`: works, and may fail one day. `bad`: prevents a sale.
 * `skipped`: could not be checked, and says why.
 */
export type Level = "ok" | "note" | "warn" | "bad" | "skipped";

/** Bytes that went over the line, as they may be shown to anybody. */
export interface RedactedBytes {
  readonly direction: "sent" | "received";
  /** Milliseconds since the service's first probe. */
  readonly atMs: number;
  readonly bytes: number;
  /** The bytes in hexadecimal, from the first one; `**` stands for what must not be seen, `..` for the rest of what is long. */
  readonly hex: string;
  /** The bytes as text, if they may be shown whole. */
  readonly text?: string;
}

export interface Finding {
  /** The subject of the check: "device", "holder", "answer". */
  readonly check: string;
  readonly level: Level;
  /** The fact, in one line. */
  readonly what: string;
  /** The reason, if the fact doesn't say it. */
  readonly cause?: string;
  /** The fix: a command to paste, or something to do by hand; of several steps each begins with its number (`1. `). */
  readonly cure?: string;
  readonly line?: string;
  readonly service?: ServiceName;
  readonly frames?: readonly RedactedBytes[];
  /** The line's entry as it should stand in the configuration, ready to be pasted. */
  readonly setting?: string;
}

/** The parts of a finding beside check, level and fact. */
export type FindingDetails = Omit<Finding, "check" | "level" | "what">;

/** Makes a finding. Its words may be those of files, processes and devices, so control characters are taken out. */
export function finding(check: string, level: Level, what: string, more: FindingDetails = {}): Finding {
  return {
    check,
    level,
    what: printable(what),
    ...more,
    ...(more.cause === undefined ? {} : { cause: printable(more.cause) }),
    ...(more.cure === undefined ? {} : { cure: printable(more.cure) }),
  };
}

/** Makes a finding of a cause, in the words that log and status have for the same trouble. */
export function causeFinding(check: string, level: Level, { cause, cure }: Cause, more: FindingDetails = {}): Finding {
  return finding(check, level, cause, { ...more, cure });
}
