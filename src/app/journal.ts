import type { JournalConfig } from "../config/config.ts";
import type { Log } from "../core/log.ts";
import { type Journal, openJournal } from "../journal/journal.ts";

/**
 * Opens the journal of money, and says what the process before has left in it. It never fails: one that can't be written says so and
 * is tried again with each request.
 */
export async function openMoneyJournal({ bytes, onFailure }: JournalConfig, folder: string, log: Log): Promise<Journal> {
  const then =
    onFailure === "relay" ? "requests go on without a record" : "what moves money, prints or changes state is refused";
  const journal = await openJournal({
    folder,
    bytes,
    onFailure,
    report: {
      failed: (error) => log.process("error", `the journal of money can't be written: ${then}`, { folder, error }),
      recovered: (message) => log.process("warn", message, { folder }),
      noticed: (message) => log.process("warn", message, { folder }),
    },
  });
  for (const operation of journal.unknown()) {
    if (operation.cause !== "no outcome recorded") continue;
    const { service, route, key, amount, requestId } = operation;
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
  return journal;
}
