import type { Events } from "../admin/events.ts";
import type { LineFields, Log } from "../core/log.ts";
import { type Cause, wordsOf } from "../device/open-errors.ts";
import type { LineReport } from "../line/line.ts";
import type { Discard, Frame } from "../wire/decoded.ts";

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
    echoes: (cause) => log.line("warn", "the line echoes", { line, reason: wordsOf(cause) }),
  };
}

/** Writes into the log that another program changed what a line's device is set to. */
export function settingsReport(line: string, log: Log): (cause: Cause) => void {
  return (cause) => log.line("warn", "the device's settings", { line, reason: wordsOf(cause) });
}

/** Writes each request on a line that asks nobody there into the log, with its cause. */
export function unaddressedReport(line: string, log: Log) {
  return ({ framing, wireBytes }: Frame, cause: string) =>
    log.line("warn", "a request was refused: it is for no service of this line", {
      line,
      reason: cause,
      framing,
      bytes: wireBytes,
    });
}

/** Publishes the events of a line to those who watch. */
export function publishedLine(line: string, events: Events): LineReport {
  return {
    state: (state, reason) => events.publish({ event: "line", fields: { line, state, reason } }),
    late: ({ framing, wireBytes }) => events.publish({ event: "late", fields: { line, framing, bytes: wireBytes } }),
    discard: (discard) => events.publish({ event: "discard", fields: { line, ...discardFields(discard) } }),
    probeAnswered: () => {},
    unheard: (service, { cause, cure }) =>
      events.publish({ event: "service", line, service, state: "unheard", reason: cause, cure }),
    heardAgain: (service) => events.publish({ event: "service", line, service, state: "heard" }),
  };
}

/** Reports to both, in this order, as far as they ask for it. */
export function tee(...both: readonly [LineReport, Partial<LineReport>]): LineReport {
  const tell = (say: (report: Partial<LineReport>) => void) => both.forEach(say);
  return {
    state: (...said) => tell((report) => report.state?.(...said)),
    discard: (...said) => tell((report) => report.discard?.(...said)),
    late: (...said) => tell((report) => report.late?.(...said)),
    probeAnswered: (...said) => tell((report) => report.probeAnswered?.(...said)),
    unheard: (...said) => tell((report) => report.unheard?.(...said)),
    heardAgain: (...said) => tell((report) => report.heardAgain?.(...said)),
    echoes: (...said) => tell((report) => report.echoes?.(...said)),
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
