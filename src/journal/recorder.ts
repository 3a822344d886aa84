import { Deadline, nowMs } from "../core/clock.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { Disk } from "./disk.ts";
import { JournalError, journalFile, writeReason } from "./errors.ts";
import { LastRecord } from "./last-record.ts";
import type { RingScan } from "./reader.ts";
import { type SettledRecord, type UnknownOperation, writeRecord } from "./record.ts";
import { type OpenedRing, openRing, type Ring, readRing, type SlotRecord } from "./ring.ts";
import { batchMax } from "./slot.ts";
import {
  DiskRetry,
  type PendingRecord,
  QueuedRecord,
  sequenceOf,
  type UnnumberedRecord,
  unawaited,
  WriteQueue,
} from "./write-queue.ts";
import type { WriterLock } from "./writer-lock.ts";

/**
 * Gets records onto the disk, in order and many at a time: what comes while a sync runs goes out with the next one. A caller
 * waits for its record for `recordMs` at most. What couldn't be written is kept, up to a bound, and goes out first when the
 * disk works again; each new record retries the disk, and so does a timer, since under `refuse` no record may come any more.
 */

/**
 * Timeout of a record's write, in milliseconds. An SD card may be busy for half a second by its specification, and a worn one
 * with a full cache for some seconds; a till waits meanwhile, and calls wait for the line for 15 s before they are refused.
 */
export const recordMs = 5_000;

/** How often in a row a file that was taken away is opened anew. */
const replacementsMax = 3;

const compareReport = "what was sent since isn't in it: compare the terminals' reports before anything is sold again";

/** Where a journal reports what its operator should know. */
export interface JournalReport {
  /** The journal can't be written, or for another reason than before: how it is, and what to do. */
  failed(reason: string): void;
  /** The journal is written again. */
  recovered(message: string): void;
  /** The journal works, and its operator should know this of it. */
  noticed(message: string): void;
  /**
   * Operations of unknown outcome stood in it when it was first read, at the start or once its disk was there.
   * @param recent What the process before sent and never learnt the outcome of, the last one last.
   * @param older How many others there are.
   */
  found(recent: readonly UnknownOperation[], older: number): void;
  /** An operation is proven to have ended, by an answer of the terminal or by the person who looked at it. */
  onSettled(settled: SettledOperation): void;
}

/** An operation with its proven end. */
export interface SettledOperation {
  /** undefined where it was sent by an earlier process, and its caller knew its outcome. */
  readonly requestId: string | undefined;
  /** The id that no other call has; undefined where it was sent by an earlier process. */
  readonly callId: string | undefined;
  readonly service: string;
  readonly route: string;
  readonly key: string | undefined;
  readonly result: OperationEnd;
  readonly by: SettledRecord["by"];
}

/** What stood in the journal when it was first read; `slots` are those of the ring that is written from then on. */
export type FoundRecords = Pick<RingScan, "records" | "sequences" | "slots" | "missing" | "isLacking">;

export interface RecorderOptions {
  readonly disk: Disk;
  readonly folder: string;
  readonly bytes: number;
  readonly report: JournalReport;
  /** The file that has the number of the newest record, outside the folder; undefined if none is kept. */
  readonly lastRecord?: string | undefined;
  /** Called once, when the journal was first read. */
  readonly onFirstRead: (found: FoundRecords) => void;
  /** Called when the file was taken away: what stood only there, the next process won't know. */
  readonly onReplaced: () => void;
}

export class Recorder {
  readonly #options: RecorderOptions;
  readonly #deadline = new Deadline(() => this.#overdue());
  readonly #retry = new DiskRetry(() => this.#tryAgain());
  readonly #queue = new WriteQueue();
  readonly #last: LastRecord;
  /** What is being written. */
  #batch: readonly QueuedRecord[] = [];
  /** Sendings on the disk that have no outcome there: they must be in whatever file comes in the place of theirs. */
  readonly #inFlight = new Set<PendingRecord>();
  #ring: Ring | undefined;
  #lock: WriterLock | undefined;
  #next = 1;
  #wasRead = false;
  /** How often in a row the file was taken away. */
  #replacements = 0;
  #running: Promise<void> | undefined;
  /** The disk has not answered for `recordMs`; no caller waits for it until it does. */
  #hangs = false;
  #failure: string | undefined;
  #dropped = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#last = new LastRecord(options.lastRecord);
  }

  /** Why the last attempt failed, and what to do; undefined when it did not. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Takes a record. */
  add(record: UnnumberedRecord): PendingRecord {
    const now = nowMs();
    const queued = new QueuedRecord(record, now + recordMs);
    for (const dropped of this.#queue.add(queued)) this.#lost(dropped);
    if (this.#hangs) queued.release(false);
    else if (!this.#deadline.isSet) this.#deadline.set(queued.dueMs, now);
    this.#running ??= this.#run();
    return queued;
  }

  /** Takes back a record that was not begun to be written; false when it may be on the disk. */
  withdraw(recording: PendingRecord): boolean {
    return recording instanceof QueuedRecord && recording.sequence === undefined && this.#queue.remove(recording);
  }

  /** Writes what waits, as far as the disk takes it within `recordMs`, and gives the folder back. */
  async close(): Promise<void> {
    this.#retry.stop();
    if (!this.#queue.isEmpty) this.#running ??= this.#run();
    const timeout = new Promise<void>((resolve) => {
      setTimeout(resolve, recordMs).unref();
    });
    await Promise.race([this.#running?.then(() => this.#last.write()) ?? this.#last.write(), timeout]);
    this.#deadline.dispose();
    // A disk that hangs would delay the end.
    if (this.#running === undefined) await this.#release();
  }

  async #run(): Promise<void> {
    // What comes in this very turn of the event loop goes out together.
    await undefined;
    do {
      try {
        while (!this.#queue.isEmpty) await this.#writeBatch();
        this.#worked();
      } catch (error) {
        this.#hangs = false;
        this.#deadline.clear();
        this.#failed(writeReason(error, this.#options.folder));
        await this.#release();
      }
      // Those that came while the file was given back have not been tried.
    } while (this.#queue.firstAwaited !== undefined);
    this.#hangs = false;
    this.#deadline.clear();
    this.#running = undefined;
    if (this.#failure !== undefined) this.#retry.failed();
  }

  #tryAgain(): void {
    if (this.#running !== undefined) return;
    // To open the file proves nothing: only a write does.
    if (this.#queue.isEmpty) this.#queue.add(unawaited("probe"));
    this.#running = this.#run();
  }

  async #writeBatch(): Promise<void> {
    const ring = this.#ring ?? (await this.#open());
    const batch = this.#queue.take(batchMax);
    this.#batch = batch;
    let isWritten = false;
    try {
      isWritten = await ring.write(batch.flatMap((queued) => this.#numbered(queued)));
    } finally {
      this.#batch = [];
      if (!isWritten) this.#queue.putFirst(batch);
    }
    if (!isWritten) return this.#replaced();
    this.#replacements = 0;
    for (const queued of batch) this.#written(queued);
    this.#deadline.set(this.#queue.firstAwaited?.dueMs ?? Number.POSITIVE_INFINITY, nowMs());
    if (this.#hangs) this.#worked();
    this.#hangs = false;
  }

  #written(queued: QueuedRecord): void {
    queued.release(true);
    this.#last.note(queued.sequence ?? 0);
    if (queued.record.kind === "sent") this.#inFlight.add(queued);
    else if (queued.record.kind === "outcome") this.#inFlight.delete(queued.record.sent);
  }

  /** The file was taken away while it was written. The lock is released with it: its folder may have been taken away, too. */
  async #replaced(): Promise<void> {
    const path = journalFile(this.#options.folder);
    if (++this.#replacements > replacementsMax) {
      throw new JournalError(
        `${path} is removed, replaced or cut again and again: find the program that does it (sudo lsof ${path})`,
      );
    }
    await this.#release();
    if (this.#replacements > 1) return;
    this.#options.onReplaced();
    this.#options.report.noticed(
      `${path} was removed, replaced or cut by another program while posline wrote it: records that were only there are lost, ` +
        "and posline goes on in the file that is there now, or in a new one",
    );
  }

  /** Gives a record its number, if it has none yet. What is said of a sending that was never written refers to nothing. */
  #numbered(queued: QueuedRecord): readonly SlotRecord[] {
    const { record } = queued;
    const refers = record.kind === "outcome" || record.kind === "begun" || record.kind === "settled";
    const sent = refers ? sequenceOf(record.sent) : 0;
    if (sent === undefined) return [];
    queued.sequence ??= this.#next++;
    return [{ sequence: queued.sequence, text: writeRecord(refers ? { ...record, sent } : record) }];
  }

  async #open(): Promise<Ring> {
    const { disk, folder, bytes, report } = this.#options;
    let opened: OpenedRing;
    try {
      this.#lock = await disk.lock(folder);
      opened = await openRing(disk, folder, bytes);
    } catch (error) {
      await this.#readOnly(error);
      throw error;
    }
    const { ring, notices } = opened;
    const found = this.#compared(opened.found);
    this.#ring = ring;
    this.#reconcile(found);
    if (!this.#wasRead || this.#replacements > 0) for (const notice of notices) report.noticed(notice);
    this.#read({ ...found, slots: ring.slots });
    return ring;
  }

  /** A disk that takes nothing may still be read, and what it has stops a repetition; not where another process goes on writing it. */
  async #readOnly(error: unknown): Promise<void> {
    if (this.#wasRead || error instanceof JournalError) return;
    const { disk, folder } = this.#options;
    const found = await readRing(disk, folder).catch(() => undefined);
    if (found !== undefined) this.#read(this.#compared(found));
  }

  /** An older copy of the file is whole in itself, and lacks what was recorded since. */
  #compared(found: RingScan): RingScan {
    if (this.#wasRead || found.head >= this.#last.atStart) return found;
    const { folder, report } = this.#options;
    report.noticed(
      `${journalFile(folder)} is older than this box's last run, as if an older copy was put back: ${compareReport}`,
    );
    return { ...found, isLacking: true };
  }

  #read(found: FoundRecords): void {
    if (this.#wasRead) return;
    this.#wasRead = true;
    this.#options.onFirstRead(found);
  }

  /** Fits what this process has to write to what stands in the file, which may be another than before. */
  #reconcile({ records, sequences, next, isLacking }: RingScan): void {
    const there = new Map(records.map(({ sequence, record }) => [sequence, record]));
    const isThere = ({ sequence = 0, record }: QueuedRecord) => {
      const found = there.get(sequence);
      return found?.kind === record.kind && found.timeMs === record.timeMs;
    };
    const waiting = [...this.#queue].filter((queued) => !isThere(queued));
    const taken = new Set(sequences);
    // What waits comes after what is there: while the disk failed, another process may have given its numbers to records of its own.
    if (next > this.#next || waiting.some(({ sequence }) => sequence !== undefined && taken.has(sequence))) {
      this.#next = next;
      for (const queued of waiting) queued.sequence = undefined;
    }
    const missing: QueuedRecord[] = [];
    for (const queued of this.#inFlight) {
      if (!(queued instanceof QueuedRecord) || isThere(queued)) continue;
      queued.sequence = undefined;
      queued.isWritten = false;
      missing.push(queued);
    }
    for (const queued of missing) this.#inFlight.delete(queued);
    this.#queue.putFirst(missing);
    // So that the next process knows of it, too.
    if (isLacking || this.#replacements === 1) this.#queue.add(unawaited("lacking"));
  }

  /** Gives the file and the folder back; the next record opens them again. */
  async #release(): Promise<void> {
    const [ring, lock] = [this.#ring, this.#lock];
    this.#ring = undefined;
    this.#lock = undefined;
    await ring?.close();
    await lock?.release();
  }

  #overdue(): void {
    this.#hangs = true;
    this.#failed(`no answer from the disk for ${recordMs} ms: it may be failing (check with sudo dmesg | tail)`);
  }

  /** Ends the wait of all callers, which go on as `onFailure` says. */
  #failed(reason: string): void {
    for (const queued of [...this.#batch, ...this.#queue]) queued.release(false);
    if (this.#failure === reason) return;
    this.#failure = reason;
    this.#options.report.failed(`Cannot write the journal in ${this.#options.folder}: ${reason}`);
  }

  #worked(): void {
    this.#retry.succeeded();
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    const lost =
      this.#dropped === 0
        ? ""
        : `, and ${this.#dropped} ${this.#dropped === 1 ? "record was" : "records were"} lost in the meantime`;
    this.#dropped = 0;
    this.#options.report.recovered(`the journal in ${this.#options.folder} is written again${lost}`);
  }

  #lost({ record }: QueuedRecord): void {
    if (record.kind !== "probe") this.#dropped++;
    if (record.kind === "outcome") this.#inFlight.delete(record.sent);
  }
}
