import type {
  BegunRecord,
  LackingRecord,
  OutcomeRecord,
  ProbeRecord,
  SentRecord,
  SettledRecord,
  StartRecord,
} from "./record.ts";

/** Records on their way to the disk: what is queued, in which order, what is dropped, and when a failed disk is retried. */

/**
 * A record before it has a number. An outcome refers to its sending, whose number is known once that is written; what is learned of it
 * later may also refer to one that an earlier process wrote, by its number.
 */
export type UnnumberedRecord =
  | SentRecord
  | StartRecord
  | ProbeRecord
  | LackingRecord
  | (Omit<OutcomeRecord, "sent"> & { readonly sent: PendingRecord })
  | (Omit<BegunRecord, "sent"> & { readonly sent: PendingRecord | number })
  | (Omit<SettledRecord, "sent"> & { readonly sent: PendingRecord | number });

/** A record that was given to be written, as its caller sees it. */
export interface PendingRecord {
  /** True once it is on the disk; false when that isn't possible in time. Never rejects. */
  readonly recorded: Promise<boolean>;
  /** The record is on the disk, in time or later. */
  readonly isWritten: boolean;
}

export class QueuedRecord implements PendingRecord {
  readonly record: UnnumberedRecord;
  readonly recorded: Promise<boolean>;
  /** The end of its caller's wait. */
  readonly dueMs: number;
  /** Its caller doesn't wait any more. */
  released = false;
  /** Its number in the order of all, once it was first written; it may be on the disk from then on. */
  sequence: number | undefined;
  isWritten = false;
  #release: (recorded: boolean) => void = () => {};

  constructor(record: UnnumberedRecord, dueMs: number) {
    this.record = record;
    this.dueMs = dueMs;
    this.recorded = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  /** Ends its caller's wait; the first time counts. */
  release(recorded: boolean): void {
    this.released = true;
    if (recorded) this.isWritten = true;
    this.#release(recorded);
  }
}

/** The number of what was given to be written, once it has one. */
export function sequenceOf(recording: PendingRecord | number): number | undefined {
  if (typeof recording === "number") return recording;
  return recording instanceof QueuedRecord ? recording.sequence : undefined;
}

/** What posline writes of its own accord: no caller waits for it. */
export function unawaited(kind: "probe" | "lacking"): QueuedRecord {
  const queued = new QueuedRecord({ kind, timeMs: Date.now() }, Number.POSITIVE_INFINITY);
  queued.release(false);
  return queued;
}

/** Records kept while the disk fails: those of a busy day. */
const queuedMax = 2_048;

/**
 * The records that wait for the disk, in order; the first ones may have been waiting for a working disk for long. It is
 * bounded, and drops first what says least: that something was not sent.
 */
export class WriteQueue {
  #waiting: QueuedRecord[] = [];

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** The first one whose caller waits. */
  get firstAwaited(): QueuedRecord | undefined {
    return this.#waiting.find(({ released }) => !released);
  }

  [Symbol.iterator](): Iterator<QueuedRecord> {
    return this.#waiting[Symbol.iterator]();
  }

  /** Takes a record, and gives those that had to be dropped for it. */
  add(queued: QueuedRecord): readonly QueuedRecord[] {
    this.#waiting.push(queued);
    const dropped: QueuedRecord[] = [];
    while (this.#waiting.length > queuedMax) dropped.push(...this.#drop());
    return dropped;
  }

  /** Takes out the first ones. */
  take(max: number): readonly QueuedRecord[] {
    const taken = this.#waiting.slice(0, max);
    this.#waiting = this.#waiting.slice(taken.length);
    return taken;
  }

  /** Puts some before all others. */
  putFirst(some: readonly QueuedRecord[]): void {
    this.#waiting = [...some, ...this.#waiting];
  }

  /** Takes out one; false when it isn't there. */
  remove(recording: PendingRecord): boolean {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((queued) => queued !== recording);
    return this.#waiting.length < before;
  }

  #drop(): readonly QueuedRecord[] {
    const dropped = this.#firstNotSent() ?? this.#waiting.slice(0, 1);
    this.#waiting = this.#waiting.filter((queued) => !dropped.includes(queued));
    for (const queued of dropped) queued.release(false);
    return dropped;
  }

  /** The first operation that both began and ended here, as not sent. */
  #firstNotSent(): readonly QueuedRecord[] | undefined {
    const all = new Set<PendingRecord>(this.#waiting);
    for (const queued of this.#waiting) {
      const { record } = queued;
      if (record.kind !== "outcome" || record.outcome !== "not-sent" || !all.has(record.sent)) continue;
      return this.#waiting.filter((each) => each === queued || each === record.sent);
    }
    return undefined;
  }
}

/** Backoff before a disk that failed is tried again unasked, in milliseconds; each failure doubles it. */
export const retryMs = { min: 5_000, max: 60_000 } as const;

/**
 * Retries a disk that failed: under `refuse` no till may come any more to try it, and a readiness check would wait for ever.
 */
export class DiskRetry {
  readonly #attempt: () => void;
  #timer: NodeJS.Timeout | undefined;
  #nextMs: number = retryMs.min;
  #isOver = false;

  constructor(attempt: () => void) {
    this.#attempt = attempt;
  }

  /** An attempt failed: there will be another one. */
  failed(): void {
    if (this.#isOver || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#nextMs = Math.min(2 * this.#nextMs, retryMs.max);
      this.#attempt();
    }, this.#nextMs);
    this.#timer.unref();
  }

  /** An attempt succeeded: no other one is needed. */
  succeeded(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#nextMs = retryMs.min;
  }

  /** No more retries. */
  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}
