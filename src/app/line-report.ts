import { nowMs } from "../core/clock.ts";
import type { LineFields, Log } from "../core/log.ts";
import type { LineReport } from "../line/report.ts";
import type { Discard } from "../wire/decoded.ts";

/** Warnings of one line within a second that are written out; more are counted. A line that babbles must not fill a disk. */
const warningsPerSecond = 10;

/** Writes what a line tells of itself into the log. */
export function lineReport(line: string, log: Log): LineReport {
  let secondBegan = 0;
  let warned = 0;
  let kept = 0;
  const warn = (message: string, fields: LineFields) => {
    const now = nowMs();
    if (now - secondBegan >= 1_000) {
      if (kept > 0) log.line("warn", `${kept} more warnings of this line were left out`, { line });
      secondBegan = now;
      warned = 0;
      kept = 0;
    }
    if (warned++ < warningsPerSecond) log.line("warn", message, fields);
    else kept++;
  };
  return {
    state: (state, reason) => log.line(state === "down" ? "warn" : "info", "line", { line, state, reason }),
    late: ({ framing, wireBytes }) => warn("a late or unasked reply was discarded", { line, framing, bytes: wireBytes }),
    discard: (discard) => warn("bytes were discarded", { line, ...discardFields(discard) }),
  };
}

/** What the log says of bytes that became no frame: a wrong checksum with both readings of it. */
export function discardFields({ reason, wireBytes, head, checksum }: Discard): Omit<LineFields, "line"> {
  return {
    reason,
    bytes: wireBytes,
    head,
    ...(checksum === undefined ? {} : { crcGot: checksum.got }),
    ...(checksum?.arc === undefined ? {} : { crcArc: checksum.arc }),
    ...(checksum?.umts === undefined ? {} : { crcUmts: checksum.umts }),
    ...(checksum?.crc32 === undefined ? {} : { crc32: checksum.crc32 }),
  };
}
