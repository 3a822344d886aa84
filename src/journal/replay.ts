import { type SequenceRange, tornMax } from "./reader.ts";
import { type JournalOperation, joinOperations, type SentRecord, type StoredRecord } from "./record.ts";
import type { FoundRecords } from "./recorder.ts";
import { batchMax } from "./slot.ts";

/** What the records of earlier processes say together, and what is missing between them. */

export interface Replay {
  /** In the order of their sending. */
  readonly operations: readonly JournalOperation[];
  /** What was on the line when the process before ended, but for what is proven to have failed. */
  readonly cutOff: readonly SentRecord[];
  /** Records are missing before this number; 0 where none is, `Infinity` where they may be of any time. */
  readonly missingBefore: number;
  /** When the last of them was missing, as milliseconds since 1970; `-Infinity` where none is. */
  readonly missingMs: number;
  /** Older ones were overwritten: when the oldest that is left was written. */
  readonly overwrittenMs: number;
  /** The ring has gone round, so that it overwrites its own. */
  readonly isRound: boolean;
}

export function replay(found: FoundRecords): Replay {
  const { records, sequences, slots, missing, isLacking } = found;
  const operations = joinOperations(records);
  const gaps = gapsIn(records, missing);
  const [oldest] = records;
  return {
    operations,
    cutOff: cutOff(operations, records),
    missingBefore: isLacking ? Number.POSITIVE_INFINITY : Math.max(0, ...gaps.map(({ before }) => before)),
    missingMs: isLacking ? Date.now() : Math.max(...gaps.map(({ timeMs }) => timeMs)),
    overwrittenMs: oldest !== undefined && wasOverwritten(found) ? oldest.record.timeMs : Number.NEGATIVE_INFINITY,
    isRound: (sequences.at(-1) ?? 0) >= slots,
  };
}

/**
 * What was sent and has no outcome, where nothing was carried out since a later start: what comes by itself comes before that. By the
 * records' order, since the box's clock may have been set. That it ended otherwise than by failing lifts nothing.
 */
function cutOff(operations: readonly JournalOperation[], records: readonly StoredRecord[]): readonly SentRecord[] {
  const starts = records.filter(({ record }) => record.kind === "start").map(({ sequence }) => sequence);
  const done = operations.findLast(({ ending }) => ending !== undefined && ending.outcome !== "not-sent")?.sequence ?? 0;
  const since = starts.findLast((start) => start < done) ?? 0;
  return operations
    .filter(({ sequence, ending, settled }) => ending === undefined && settled?.result !== "failed" && sequence > since)
    .map(({ sent }) => sent);
}

/**
 * Whether others stood there before the oldest one, also where the file has been made larger since: the first number of all is 1. Where its
 * place is spoilt it is missing; and a file that was begun in place of one that was taken away has a later one, and says what it lacks.
 */
function wasOverwritten({ records, sequences: [first = 0], missing }: FoundRecords): boolean {
  return first > 1 && missing[0]?.from !== 1 && !records.some(({ record }) => record.kind === "lacking");
}

/** Records that are missing. */
interface Gap {
  /** The number of the record that follows. */
  readonly before: number;
  /** When that was written, as milliseconds since 1970. */
  readonly timeMs: number;
}

/**
 * Where records are missing. What a power cut tore is none of these: it was in the last batch of its process, and nobody was
 * told anything by it; more than a few are a spoilt page. A request is sent only when its record's batch is on the disk. So
 * where a record tells how a request ended, and that request's own record stands in the gap or behind it, the gap's batch was on the disk.
 */
function gapsIn(records: readonly StoredRecord[], missing: readonly SequenceRange[]): readonly Gap[] {
  const gaps: Gap[] = records.flatMap(({ sequence: before, record: { kind, timeMs } }) =>
    kind === "lacking" ? [{ before, timeMs }] : [],
  );
  let at = records.length - 1;
  // The next start behind what is looked at; behind all it is this process's own.
  let start = (records.at(-1)?.sequence ?? 0) + 1;
  // The last sending of which a record between tells how it ended.
  let lastTold = 0;
  for (const { from, to } of missing.toReversed()) {
    for (let each = records[at]; each !== undefined && each.sequence > to; each = records[--at]) {
      const { sequence, record } = each;
      if (record.kind === "start") [start, lastTold] = [sequence, 0];
      else if ("sent" in record && typeof record.sent === "number") lastTold = Math.max(lastTold, record.sent);
    }
    const isTorn = to - from < tornMax && start <= from + batchMax && lastTold < from;
    const next = records[at + 1];
    if (!isTorn && next !== undefined) gaps.push({ before: next.sequence, timeMs: next.record.timeMs });
  }
  return gaps;
}
