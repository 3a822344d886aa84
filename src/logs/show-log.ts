import type { AdminTarget } from "../config/admin-target.ts";
import { type LogCriteria, matchesAll } from "./filter.ts";
import { JournaldLog } from "./journald-log.ts";
import { LiveLog } from "./live-log.ts";
import { readLogFile, readStream } from "./log-file.ts";
import { LogView, type LogViewOptions } from "./view.ts";

/** Where a log is: in a file, on standard input, in the system journal of a unit, or with a running posline. */
export type LogPlace =
  | { readonly file: string }
  | { readonly input: NodeJS.ReadStream }
  | { readonly unit: string }
  | { readonly live: AdminTarget };

export interface ShownLog extends Omit<LogViewOptions, "criteria" | "timeMs" | "skips"> {
  readonly criteria?: LogCriteria;
  /** True to go on with what comes, until `stop` aborts. */
  readonly follow?: boolean;
  /** Takes what is said beside the log's lines. */
  readonly err: (text: string) => void;
}

/**
 * Shows what a place has of the log.
 * @returns false if it had no line that fits.
 * @throws SourceError if it can't be read.
 */
export async function showLog(place: LogPlace, shown: ShownLog, stop: AbortSignal): Promise<boolean> {
  const { criteria = {}, follow = false, last, json = false, err } = shown;
  if ("unit" in place) {
    const { sinceMs } = criteria;
    const unfiltered = matchesAll(criteria) && !json;
    const journal = new JournaldLog({ unit: place.unit, sinceMs, follow, last, unfiltered, err });
    // journalctl has looked at the times of lines that carry none themselves.
    const view = new LogView({ ...shown, criteria, timeMs: sinceMs, skips: (text) => journal.skips(text) });
    await journal.read(view, stop);
    return !view.isEmpty;
  }
  const view = new LogView({ ...shown, criteria });
  if ("live" in place) await new LiveLog({ ...place.live, err }).read(view, stop);
  else if ("input" in place) await readStream(place.input, follow, view, stop);
  else await readLogFile(place.file, follow, view, stop);
  return !view.isEmpty;
}
