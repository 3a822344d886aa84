import { journalFails } from "../admin/readiness.ts";
import type { JournalConfig } from "../config/config.ts";
import type { Log } from "../core/log.ts";
import { logged } from "../core/log-text.ts";
import type { UnknownOperation } from "../journal/record.ts";
import type { SettledOperation } from "../journal/recorder.ts";
import { type Operations, openOperations } from "../operations/operations.ts";

/**
 * Opens the journal of money, and logs the unknown operations of the process before. It never fails: a journal that can't be written
 * is logged and retried with each request, and its operations are logged once it can be read.
 * @param onOperation Called with each operation whose outcome becomes unknown, or known, from now on.
 * @param lastRecord As in `RecorderOptions`.
 */
export function openMoneyJournal(
  { bytes, onFailure }: Pick<JournalConfig, "bytes" | "onFailure">,
  folder: string,
  log: Log,
  onOperation: (operation: UnknownOperation | SettledOperation) => void = () => {},
  lastRecord?: string,
): Promise<Operations> {
  // A disk that fails in changing ways is reported once for each way until it works again.
  const reported = new Set<string>();
  return openOperations({
    folder,
    bytes,
    onFailure,
    lastRecord,
    onUnknown: onOperation,
    report: {
      failed: (error) => {
        if (reported.has(error)) return;
        reported.add(error);
        log.process("error", journalFails[onFailure], { folder, error });
      },
      recovered: (message) => {
        reported.clear();
        log.process("warn", message, { folder });
      },
      noticed: (message) => log.process("warn", message, { folder }),
      found: (recent, older) => reportFound(log, recent, older),
      onSettled: (settled) => {
        reportSettled(log, settled);
        onOperation(settled);
      },
    },
  });
}

function reportSettled(log: Log, { service, route, key, requestId, result }: SettledOperation): void {
  const which = [service, route, ...(key === undefined ? [] : [logged(key)])].join(" ");
  log.process("info", `${which} is settled: ${result}`, {
    service,
    route,
    ...(requestId === undefined ? {} : { requestId }),
    ...(key === undefined ? {} : { key }),
  });
}

/** Operations that get a line each: a terminal serves one at a time, so more are left only by a disk that failed for long. */
const linesMax = 20;

/** `1 earlier operation has an unknown outcome`. */
function unknownOperations(count: number, which: string): string {
  return count === 1 ? `1 ${which} operation has an unknown outcome` : `${count} ${which} operations have an unknown outcome`;
}

function reportFound(log: Log, recent: readonly UnknownOperation[], older: number): void {
  for (const { service, route, key, amount, requestId } of recent.slice(-linesMax)) {
    log.process(
      "warn",
      "an operation was in progress when posline stopped, and its outcome is unknown: check it before selling again",
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
    log.process("warn", `${unknownOperations(others, "more")}: sudo posline journal --unknown`, { count: others });
  }
  if (older > 0) {
    log.process("info", `${unknownOperations(older, "earlier")}: sudo posline journal --unknown`, { count: older });
  }
}
