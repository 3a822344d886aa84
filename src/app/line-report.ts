import type { LineFields, Log } from "../core/log.ts";
import { wordsOf } from "../device/open-errors.ts";
import type { LineReport } from "../line/line.ts";
import type { Discard } from "../wire/decoded.ts";

/** Writes the events of a line into the log, which bounds their number. */
export function lineReport(line: string, log: Log): LineReport {
  return {
    state: (state, reason) => log.line(state === "down" ? "warn" : "info", "line", { line, state, reason }),
    late: ({ framing, wireBytes }) =>
      log.line("warn", "a late or unexpected reply was discarded", { line, framing, bytes: wireBytes }),
    discard: (discard) => log.line("warn", "bytes were discarded", { line, ...discardFields(discard) }),
    // The change of state that follows is logged; the status shows the capabilities.
    probeAnswered: () => {},
    unheard: (service, cause) => log.line("warn", `${service} does not answer`, { line, reason: wordsOf(cause) }),
    heardAgain: (service) => log.line("info", `${service} answers again`, { line }),
  };
}

/** Reports to both, in this order. */
export function tee(one: LineReport, other: Omit<LineReport, "unheard" | "heardAgain">): LineReport {
  return {
    ...one,
    state: (state, reason) => {
      one.state(state, reason);
      other.state(state, reason);
    },
    discard: (discard) => {
      one.discard(discard);
      other.discard(discard);
    },
    late: (frame) => {
      one.late(frame);
      other.late(frame);
    },
    probeAnswered: (service, answer) => {
      one.probeAnswered(service, answer);
      other.probeAnswered(service, answer);
    },
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
