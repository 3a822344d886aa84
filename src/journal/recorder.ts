import { Deadline, nowMs } from "../core/clock.ts";
import { Backlog } from "./backlog.ts";
import type { Disk } from "./disk.ts";
import type { Hold } from "./hold.ts";
import type { JournalReport } from "./journal.ts";
import { Pending, probe, type Recording, sequenceOf, type Unplaced } from "./pending.ts";
import { JournalError, journalFile, writeReason } from "./reasons.ts";
import { type Stored, writeRecord } from "./record.ts";
import { Retry } from "./retry.ts";
import { openRing, type Ring, type Written } from "./ring.ts";

/**
 * Gets records onto the disk, in order and many at a time: what comes while a sync runs goes out with the next one. Whoever waits
 * for a record waits `recordMs` at most. What couldn't be written is kept, up to a bound, and goes out first when the disk works
 * again; each record that comes makes it be tried, and so does a timer, since where records are needed none may come any more.
 */

/**
 * Milliseconds that a record is waited for. An SD card may be busy for half a second by its specification, and a worn one with a
 * full cache for some seconds; a till stands waiting meanwhile, and calls wait for the line for 15 s before they are refused.
 */
export const recordMs = 5_000;

/** Records written at once: less than half of the smallest ring. */
const batchMax = 48;

/** How often in a row a file is opened anew that somebody takes away. */
const replacementsMax = 3;

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
  readonly #retry = new Retry(() => this.#tryAgain());
  readonly #backlog = new Backlog();
  /** What is being written. */
  #batch: readonly Pending[] = [];
  /** Sendings on the disk that have no outcome there: they must be in whatever file comes in the place of theirs. */
  readonly #inFlight = new Set<Recording>();
  #ring: Ring | undefined;
  #hold: Hold | undefined;
  #next = 1;
  #wasRead = false;
  /** How often in a row the file was taken away. */
  #replacements = 0;
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
    for (const dropped of this.#backlog.add(pending)) this.#lost(dropped);
    if (this.#hangs) pending.release(false);
    else if (!this.#deadline.isSet) this.#deadline.set(pending.dueMs, now);
    this.#running ??= this.#run();
    return pending;
  }

  /** Takes back a record that was not begun to be written; false when it may be on the disk. */
  withdraw(recording: Recording): boolean {
    return recording instanceof Pending && recording.sequence === undefined && this.#backlog.remove(recording);
  }

  /** Writes what waits, as far as the disk takes it within `recordMs`, and gives the folder back. */
  async close(): Promise<void> {
    this.#retry.end();
    if (!this.#backlog.isEmpty) this.#running ??= this.#run();
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
    // What comes in this very turn of the event loop goes out together.
    await undefined;
    do {
      try {
        while (!this.#backlog.isEmpty) await this.#writeBatch();
        this.#worked();
      } catch (error) {
        this.#hangs = false;
        this.#deadline.clear();
        this.#failed(writeReason(error, this.#options.folder));
        await this.#leave();
      }
      // Those that came while the file was given back have not been tried.
    } while (this.#backlog.awaited !== undefined);
    this.#hangs = false;
    this.#deadline.clear();
    this.#running = undefined;
    if (this.#failure !== undefined) this.#retry.failed();
  }

  #tryAgain(): void {
    if (this.#running !== undefined) return;
    // To open the file proves nothing: only a write does.
    if (this.#backlog.isEmpty) this.#backlog.add(probe());
    this.#running = this.#run();
  }

  async #writeBatch(): Promise<void> {
    const ring = this.#ring ?? (await this.#open());
    const batch = this.#backlog.take(batchMax);
    this.#batch = batch;
    let isWritten = false;
    try {
      isWritten = await ring.write(batch.flatMap((pending) => this.#place(pending)));
    } finally {
      this.#batch = [];
      if (!isWritten) this.#backlog.putFirst(batch);
    }
    if (!isWritten) return this.#replaced();
    this.#replacements = 0;
    for (const pending of batch) this.#written(pending);
    this.#deadline.set(this.#backlog.awaited?.dueMs ?? Number.POSITIVE_INFINITY, nowMs());
    if (this.#hangs) this.#worked();
    this.#hangs = false;
  }

  #written(pending: Pending): void {
    pending.release(true);
    if (pending.record.kind === "sent") this.#inFlight.add(pending);
    else if (pending.record.kind === "outcome") this.#inFlight.delete(pending.record.sent);
  }

  /** The file was taken away while it was written. The hold is given back with it: its folder may have been taken away, too. */
  async #replaced(): Promise<void> {
    const path = journalFile(this.#options.folder);
    if (++this.#replacements > replacementsMax) {
      throw new JournalError(`${path} is removed, replaced or cut again and again: find out by whom (sudo lsof ${path})`);
    }
    await this.#leave();
    if (this.#replacements > 1) return;
    this.#options.report.noticed(
      `${path} was removed, replaced or cut by somebody else while posline wrote it: what stood only there is lost, and it goes ` +
        "on in the file that is there now, or in a new one",
    );
  }

  /** Gives a record its number, if it has none yet. An outcome whose sending was never written has nothing to refer to. */
  #place(pending: Pending): readonly Written[] {
    const { record } = pending;
    const sent = record.kind === "outcome" ? sequenceOf(record.sent) : 0;
    if (sent === undefined) return [];
    pending.sequence ??= this.#next++;
    return [{ sequence: pending.sequence, text: writeRecord(record.kind === "outcome" ? { ...record, sent } : record) }];
  }

  async #open(): Promise<Ring> {
    const { disk, folder, bytes, report, found: tell } = this.#options;
    this.#hold = await disk.hold(folder);
    const { ring, found, notices } = await openRing(disk, folder, bytes);
    this.#ring = ring;
    this.#fit(found.records, found.head);
    if (!this.#wasRead || this.#replacements > 0) for (const notice of notices) report.noticed(notice);
    if (!this.#wasRead) {
      this.#wasRead = true;
      tell(found.records);
    }
    return ring;
  }

  /** Fits what this process has to write to what stands in the file, which may be another than before. */
  #fit(records: readonly Stored[], head: number): void {
    const there = new Map(records.map(({ sequence, record }) => [sequence, record]));
    const isThere = ({ sequence = 0, record }: Pending) => {
      const found = there.get(sequence);
      return found?.kind === record.kind && found.timeMs === record.timeMs;
    };
    // What waits comes after what is there.
    if (head >= this.#next) {
      this.#next = head + 1;
      for (const pending of this.#backlog) if (!isThere(pending)) pending.sequence = undefined;
    }
    const missing: Pending[] = [];
    for (const pending of this.#inFlight) {
      if (!(pending instanceof Pending) || isThere(pending)) continue;
      pending.sequence = undefined;
      missing.push(pending);
    }
    for (const pending of missing) this.#inFlight.delete(pending);
    this.#backlog.putFirst(missing);
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
    for (const pending of [...this.#batch, ...this.#backlog]) pending.release(false);
    if (this.#failure === reason) return;
    this.#failure = reason;
    this.#options.report.failed(`Cannot keep the journal in ${this.#options.folder}: ${reason}`);
  }

  #worked(): void {
    this.#retry.worked();
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    const lost = this.#dropped === 0 ? "" : `, and ${this.#dropped} records of the time between were lost`;
    this.#dropped = 0;
    this.#options.report.recovered(`The journal in ${this.#options.folder} is written again${lost}`);
  }

  #lost({ record }: Pending): void {
    if (record.kind !== "probe") this.#dropped++;
    if (record.kind === "outcome") this.#inFlight.delete(record.sent);
  }
}
