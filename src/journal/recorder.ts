import { Deadline, nowMs } from "../core/clock.ts";
import type { Disk } from "./disk.ts";
import type { Hold } from "./hold.ts";
import type { JournalReport } from "./journal.ts";
import { writeReason } from "./reasons.ts";
import { type OutcomeRecord, type SentRecord, type StartRecord, type Stored, writeRecord } from "./record.ts";
import { openRing, type Ring, type Written } from "./ring.ts";

/**
 * Gets records onto the disk, in order and many at a time: what comes while a sync runs goes out with the next one. Whoever waits
 * for a record waits `recordMs` at most. What couldn't be written is kept, up to a bound, and goes out first when the disk works
 * again; a record that comes is what makes it be tried.
 */

/**
 * Milliseconds that a record is waited for. An SD card may be busy for half a second by its specification, and a worn one with a
 * full cache for some seconds; a till stands waiting meanwhile, and calls wait for the line for 15 s before they are refused.
 */
export const recordMs = 5_000;

/** Records written at once: less than half of the smallest ring. */
const batchMax = 48;

/** Records kept while the disk fails: those of a busy day. */
const keptMax = 2_048;

/** An outcome refers to its sending, whose number is known once that is written. */
export type Unplaced = SentRecord | StartRecord | (Omit<OutcomeRecord, "sent"> & { readonly sent: Recording });

/** A record on its way. */
export interface Recording {
  /** True once it is on the disk; false when that can't be had within `recordMs`. Never rejects. */
  readonly recorded: Promise<boolean>;
}

class Pending implements Recording {
  readonly record: Unplaced;
  readonly recorded: Promise<boolean>;
  /** When it has been waited for long enough. */
  readonly dueMs: number;
  /** Nobody waits for it any more. */
  released = false;
  /** Its place in the order of all, once it was first written, and in which round of numbers. */
  place: { readonly sequence: number; readonly round: number } | undefined;
  #release: (recorded: boolean) => void = () => {};

  constructor(record: Unplaced, dueMs: number) {
    this.record = record;
    this.dueMs = dueMs;
    this.recorded = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  /** Lets go of whoever waits for it; the first time counts. */
  release(recorded: boolean): void {
    this.released = true;
    this.#release(recorded);
  }
}

export interface RecorderOptions {
  readonly disk: Disk;
  readonly folder: string;
  readonly bytes: number;
  readonly report: JournalReport;
  /** Told once, when the journal was first read. */
  readonly found: (records: readonly Stored[]) => void;
}

export class Recorder {
  readonly #options: RecorderOptions;
  readonly #deadline = new Deadline(() => this.#overdue());
  /** In order; the first ones may have been waiting for a working disk for long. */
  #waiting: Pending[] = [];
  /** What is being written. */
  #batch: readonly Pending[] = [];
  #ring: Ring | undefined;
  #hold: Hold | undefined;
  #next = 1;
  /** Numbers begin anew when the file holds records that this process did not write. */
  #round = 0;
  #wasRead = false;
  #running: Promise<void> | undefined;
  /** The disk has not answered for `recordMs`; nobody waits for it until it does. */
  #hangs = false;
  #failure: string | undefined;
  #dropped = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Why the last attempt failed, and what to do; undefined when it did not. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Takes a record. */
  add(record: Unplaced): Recording {
    const now = nowMs();
    const pending = new Pending(record, now + recordMs);
    this.#waiting.push(pending);
    this.#dropOldest();
    if (this.#hangs) pending.release(false);
    else if (!this.#deadline.isSet) this.#deadline.set(pending.dueMs, now);
    this.#running ??= this.#run();
    return pending;
  }

  /** Writes what waits, as far as the disk takes it within `recordMs`, and gives the folder back. */
  async close(): Promise<void> {
    if (this.#waiting.length > 0) this.#running ??= this.#run();
    if (this.#running !== undefined) {
      const tired = new Promise<void>((resolve) => {
        setTimeout(resolve, recordMs).unref();
      });
      await Promise.race([this.#running, tired]);
    }
    this.#deadline.dispose();
    // A disk that hangs would hold up the end.
    if (this.#running === undefined) await this.#leave();
  }

  async #run(): Promise<void> {
    try {
      // What comes in this very turn of the event loop goes out together.
      await undefined;
      while (this.#waiting.length > 0) await this.#writeBatch();
      this.#worked();
    } catch (error) {
      this.#failed(writeReason(error, this.#options.folder));
      await this.#leave();
      // Those that came in the meantime would begin another attempt at once; the next one does.
      this.#release();
    }
    this.#hangs = false;
    this.#deadline.clear();
    this.#running = undefined;
  }

  async #writeBatch(): Promise<void> {
    const ring = this.#ring ?? (await this.#open());
    const batch = this.#waiting.slice(0, batchMax);
    this.#waiting = this.#waiting.slice(batch.length);
    this.#batch = batch;
    try {
      await ring.write(batch.flatMap((pending) => this.#place(pending)));
    } catch (error) {
      this.#waiting = [...batch, ...this.#waiting];
      throw error;
    } finally {
      this.#batch = [];
    }
    for (const pending of batch) pending.release(true);
    const next = this.#waiting.find(({ released }) => !released);
    this.#deadline.set(next?.dueMs ?? Number.POSITIVE_INFINITY, nowMs());
    if (this.#hangs) this.#worked();
    this.#hangs = false;
  }

  /** Gives a record its place, if it has none yet. An outcome whose sending was never written has nothing to refer to. */
  #place(pending: Pending): readonly Written[] {
    const { record } = pending;
    const sent = record.kind === "outcome" ? this.#sequenceOf(record.sent) : 0;
    if (sent === undefined) return [];
    if (pending.place?.round !== this.#round) pending.place = { sequence: this.#next++, round: this.#round };
    const text = writeRecord(record.kind === "outcome" ? { ...record, sent } : record);
    return [{ sequence: pending.place.sequence, text }];
  }

  #sequenceOf(recording: Recording): number | undefined {
    if (!(recording instanceof Pending) || recording.place?.round !== this.#round) return undefined;
    return recording.place.sequence;
  }

  async #open(): Promise<Ring> {
    const { disk, folder, bytes, report, found: tell } = this.#options;
    this.#hold = await disk.hold(folder);
    const { ring, found, notices } = await openRing(disk, folder, bytes);
    this.#ring = ring;
    if (found.head >= this.#next) {
      // As at the start: what waits comes after what is there.
      this.#next = found.head + 1;
      this.#round++;
    }
    if (!this.#wasRead) {
      this.#wasRead = true;
      for (const notice of notices) report.noticed(notice);
      tell(found.records);
    }
    return ring;
  }

  /** Gives the file and the folder back; the next record opens them again. */
  async #leave(): Promise<void> {
    const [ring, hold] = [this.#ring, this.#hold];
    this.#ring = undefined;
    this.#hold = undefined;
    await ring?.close();
    await hold?.release();
  }

  #overdue(): void {
    this.#hangs = true;
    this.#failed(`the disk has not answered for ${recordMs} ms: it may be failing (sudo dmesg | tail)`);
  }

  /** Nobody waits in vain: whoever did goes on as the policy says. */
  #failed(reason: string): void {
    this.#release();
    if (this.#failure === reason) return;
    this.#failure = reason;
    this.#options.report.failed(`Cannot keep the journal in ${this.#options.folder}: ${reason}`);
  }

  #release(): void {
    for (const pending of [...this.#batch, ...this.#waiting]) pending.release(false);
  }

  #worked(): void {
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    const lost = this.#dropped === 0 ? "" : `, and ${this.#dropped} records of the time between were lost`;
    this.#dropped = 0;
    this.#options.report.recovered(`The journal in ${this.#options.folder} is written again${lost}`);
  }

  #dropOldest(): void {
    while (this.#waiting.length > keptMax) {
      this.#waiting.shift()?.release(false);
      this.#dropped++;
    }
  }
}
