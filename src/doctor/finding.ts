import type { ServiceName } from "../core/call.ts";
import { printable } from "../core/shell-text.ts";
import type { Cause } from "../device/open-errors.ts";

/**
 * What one check found. `ok`: as it should be. `note`: worth knowing. `warn`: works, and may fail one day. `bad`:
 * prevents a sale. `skipped`: could not be checked, and says why.
 */
export type Level = "ok" | "note" | "warn" | "bad" | "skipped";

/** Bytes that went over the line, as they may be shown to anybody. */
export interface RedactedBytes {
  readonly direction: "sent" | "received";
  /** Milliseconds since the service's first probe. */
  readonly atMs: number;
  readonly bytes: number;
  /** In hexadecimal, from the first byte; `**` stands for what must not be seen, `..` for the rest of what is long. */
  readonly hex: string;
  /** What they say, where they may be shown whole. */
  readonly text?: string;
}

export interface Finding {
  /** What was looked at: "device", "holder", "answer". */
  readonly check: string;
  readonly level: Level;
  /** The fact. */
  readonly what: string;
  /** Why it is so, where that isn't said by the fact. */
  readonly cause?: string;
  /** What fixes it: a command to paste, or something to do by hand; of several steps each begins with its number (`1. `). */
  readonly cure?: string;
  readonly line?: string;
  readonly service?: ServiceName;
  readonly frames?: readonly RedactedBytes[];
  /** The line's entry as it should stand in the configuration, ready to be pasted. */
  readonly setting?: string;
}

/** What a finding may have beside check, level and fact. */
export type FindingDetails = Omit<Finding, "check" | "level" | "what">;

/** A finding. Its words may be those of files, processes and devices: no control character of theirs goes any further. */
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

/** A finding in the words that log and status have for the same trouble. */
export function causeFinding(check: string, level: Level, { cause, cure }: Cause, more: FindingDetails = {}): Finding {
  return finding(check, level, cause, { ...more, cure });
}
