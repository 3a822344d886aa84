import type { JournalConfig } from "../config/config.ts";
import type { Log } from "../core/log.ts";
import { type Journal, openJournal } from "../journal/journal.ts";
import type { UnknownOperation } from "../journal/record.ts";

/**
 * Opens the journal of money, and says what the process before has left in it. It never fails: one that can't be written says so and
 * is tried again with each request, and what stood in it is said once it can be read.
 */
export function openMoneyJournal({ bytes, onFailure }: JournalConfig, folder: string, log: Log): Promise<Journal> {
  const then =
    onFailure === "relay" ? "requests go on without a record" : "what moves money, prints or changes state is refused";
  // A disk that fails now this way, now that, is told of once each way until it works again.
  const told = new Set<string>();
  return openJournal({
    folder,
    bytes,
    onFailure,
    report: {
      failed: (error) => {
        if (told.has(error)) return;
        told.add(error);
        log.process("error", `the journal of money can't be written: ${then}`, { folder, error });
      },
      recovered: (message) => {
        told.clear();
        log.process("warn", message, { folder });
      },
      noticed: (message) => log.process("warn", message, { folder }),
      found: (recent, older) => tellFound(log, recent, older),
    },
  });
}

/** Operations that are told of one by one: a terminal serves one at a time, so more are left by a disk that was away for long. */
const linesMax = 20;

function tellFound(log: Log, recent: readonly UnknownOperation[], older: number): void {
  for (const { service, route, key, amount, requestId } of recent.slice(-linesMax)) {
    log.process(
      "warn",
      "an operation was sent before posline ended, and its outcome is unknown: check it before selling again",
      {
        service,
        route,
        requestId,
        ...(key === undefined ? {} : { key }),
        ...(amount === undefined ? {} : { amount }),
      },
    );
  }
  const others = recent.length - linesMax;
  if (others > 0) {
    log.process("warn", "and others were sent before those, whose outcome is unknown too: posline journal --unknown", {
      count: others,
    });
  }
  if (older > 0) {
    log.process("info", `and ${older} older operations have an unknown outcome: posline journal --unknown`, { count: older });
  }
}
