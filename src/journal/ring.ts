import { type Disk, type DiskFile, type FileFacts, isFileMissing } from "./disk.ts";
import { JournalError, journalFile } from "./errors.ts";
import { type RingScan, scanRing } from "./reader.ts";
import { readSlot, slotBytes, writeSlot } from "./slot.ts";

/**
 * A ring of records in a file, made whole at its beginning and overwritten in place from then on: an append costs one page on
 * the disk, where growing a file or replacing it would cost several, and a full disk can't stop it. A record's sequence number
 * is its place: it stands in slot `sequence % slots`, so the newest is found by reading, and nothing else has to be kept right.
 *
 * A file may be taken away under its writer, by a cleanup or a restored backup; the writes then go into a file that is never
 * read. So each write is only good when the file of that name is still the one that was written.
 */

/** A record as it goes into its slot. */
export interface SlotRecord {
  readonly sequence: number;
  readonly text: string;
}

/** What was found at an opening. */
export interface OpenedRing {
  readonly ring: Ring;
  readonly found: RingScan;
  /** What its operator should know. */
  readonly notices: readonly string[];
}

/** Bytes written at once while a file is made. */
const fillBytes = 1024 * 1024;

/** Readable by posline's group, so that a technician doesn't have to be root. */
const fileMode = 0o640;

/** An open file, and what its ring is to be. */
interface RingFile {
  readonly disk: Disk;
  readonly path: string;
  readonly file: DiskFile;
  readonly facts: FileFacts;
  readonly slots: number;
}

export class Ring {
  readonly #its: RingFile;
  #bytes: number;

  constructor(its: RingFile) {
    this.#its = its;
    this.#bytes = its.facts.bytes;
  }

  /** How many records it holds. */
  get slots(): number {
    return this.#its.slots;
  }

  /**
   * Puts records in their slots; settles once they are on the disk. They come in order, fewer than there are slots, and no
   * other process writes meanwhile.
   * @returns false when the file was removed, replaced or cut by another program: nothing is recorded then, and it must be opened anew.
   */
  async write(records: readonly SlotRecord[]): Promise<boolean> {
    const { disk, file, path, facts, slots } = this.#its;
    for (let from = 0; from < records.length; ) {
      let to = from + 1;
      while (to < records.length && this.#follows(records[to - 1], records[to])) to++;
      const run = Buffer.concat(records.slice(from, to).map(({ sequence, text }) => writeSlot(sequence, text, slots)));
      const position = ((records[from]?.sequence ?? 0) % slots) * slotBytes;
      await file.write(run, position);
      // A file that couldn't be given its right size grows.
      this.#bytes = Math.max(this.#bytes, position + run.length);
      from = to;
    }
    // Beside the sync it takes no time.
    const [there] = await Promise.all([disk.factsOf(path), file.sync()]);
    return there?.identity === facts.identity && there.bytes === this.#bytes;
  }

  /** Gives the file back, whatever its disk says to that. */
  async close(): Promise<void> {
    await this.#its.file.close().catch(() => {});
  }

  /** Two records whose slots touch go out in one write. */
  #follows(one: SlotRecord | undefined, other: SlotRecord | undefined): boolean {
    if (one === undefined || other === undefined) return false;
    return other.sequence === one.sequence + 1 && other.sequence % this.#its.slots !== 0;
  }
}

/**
 * Opens the ring of a folder; makes it where there is none, and gives it another size where `bytes` says so or where it was cut
 * or added to, with the newest of its records.
 * @throws JournalError when the file that is there isn't posline's, which is left as it is; the system's errors.
 */
export async function openRing(disk: Disk, folder: string, bytes: number): Promise<OpenedRing> {
  const path = journalFile(folder);
  const slots = Math.floor(bytes / slotBytes);
  const file = await openFile(disk, path);
  if (file === undefined) return { ring: await makeRing({ disk, folder, slots }, []), found: emptyScan, notices: [] };
  try {
    const facts = await file.facts();
    const found = await scanRing(file, 0, Math.floor(facts.bytes / slotBytes));
    refuseForeign(path, facts.bytes, found);
    const notices = noticesOf(path, facts.bytes, found);
    if (found.slots === slots && facts.bytes === slots * slotBytes) {
      // Of a process that was killed while it made a file of another size, which may be large.
      await disk.remove(draftOf(path)).catch(() => {});
      return { ring: new Ring({ disk, path, file, facts, slots }), found, notices };
    }
    const resized = await resize({ disk, folder, file, facts, slots, found, notices });
    return { ring: resized, found, notices };
  } catch (error) {
    await file.close().catch(() => {});
    throw error;
  }
}

/**
 * What stands in the journal's file, which is left as it is.
 * @throws the system's error, or a JournalError for a file that isn't posline's.
 */
export async function readRing(disk: Disk, folder: string): Promise<RingScan> {
  const path = journalFile(folder);
  const file = await disk.openToRead(path);
  try {
    const { bytes } = await file.facts();
    const found = await scanRing(file, 0, Math.floor(bytes / slotBytes));
    refuseForeign(path, bytes, found);
    return found;
  } finally {
    await file.close().catch(() => {});
  }
}

/** What a file that was just made holds. */
const emptyScan: RingScan = {
  ...{ records: [], sequences: [], head: 0, slots: 0, whole: 1, bad: 0, newer: 0, empty: 0, missing: [] },
  ...{ isLacking: false, next: 1 },
};

async function openFile(disk: Disk, path: string): Promise<DiskFile | undefined> {
  try {
    return await disk.open(path);
  } catch (error) {
    if (isFileMissing(error)) return undefined;
    throw error;
  }
}

/** A file that isn't posline's is never overwritten. */
function refuseForeign(path: string, bytes: number, { whole, newer }: RingScan): void {
  if (newer > 0) throw new JournalError(`${path} was written by a newer posline: install that version, or move the file away`);
  if (whole === 0 && bytes > 0)
    throw new JournalError(`${path} is not a journal of posline, or nothing in it is readable: move the file away`);
}

function noticesOf(path: string, bytes: number, { slots, bad, records }: RingScan): string[] {
  if (bytes === 0) return [`${path} was empty, which posline never leaves it: its records are lost, and a new journal begins`];
  const notices: string[] = [];
  if (bytes !== slots * slotBytes) {
    const what = bytes < slots * slotBytes ? "cut" : "lengthened";
    notices.push(
      `${path} was ${what} by another program, to ${bytes} bytes from ${slots * slotBytes}: ` +
        `the ${records.length} readable records are kept`,
    );
  }
  if (bad > 0) notices.push(badNotice(path, bad));
  return notices;
}

function badNotice(path: string, bad: number): string {
  const what = bad === 1 ? "1 record" : `${bad} records`;
  return `${what} in ${path} can't be read: a record that was being written during a power cut is left out`;
}

interface ResizeOptions {
  readonly disk: Disk;
  readonly folder: string;
  readonly file: DiskFile;
  readonly facts: FileFacts;
  readonly slots: number;
  readonly found: RingScan;
  readonly notices: string[];
}

/** The newest records in a file of another size. Where there is no room for a second file, the first one stays in use. */
async function resize({ disk, folder, file, facts, slots, found, notices }: ResizeOptions): Promise<Ring> {
  const kept = found.sequences.filter((sequence) => sequence > found.head - slots);
  let resized: Ring;
  try {
    resized = await makeRing({ disk, folder, slots }, await copyRecords(file, found.slots, kept));
  } catch (error) {
    if (found.slots === 0) throw error;
    const path = journalFile(folder);
    notices.push(
      `${path} keeps its size of ${facts.bytes} bytes: a file of the configured size can't be created (${String(error)})`,
    );
    return new Ring({ disk, path, file, facts, slots: found.slots });
  }
  await file.close().catch(() => {});
  return resized;
}

/** Records exactly as they were written, also of kinds that only a later posline knows. */
async function copyRecords(file: DiskFile, slots: number, sequences: readonly number[]): Promise<readonly SlotRecord[]> {
  const written: SlotRecord[] = [];
  const bytes = Buffer.alloc(slotBytes);
  for (const sequence of sequences) {
    await file.read(bytes, (sequence % slots) * slotBytes);
    const slot = readSlot(bytes);
    if (typeof slot !== "string") written.push(slot);
  }
  return written;
}

/** What a new file begins with, so that it is recognised as posline's though a power cut tears the first record of all. */
const firstRecord: SlotRecord = { sequence: 0, text: '{"kind":"made"}' };

/** What a file is called until it is whole. */
const draftOf = (path: string) => `${path}.new`;

interface MakeOptions {
  readonly disk: Disk;
  readonly folder: string;
  readonly slots: number;
}

/**
 * Makes a file with these records in it and zeros elsewhere, in place of the one there is: written in full, since a file with
 * holes would find the disk full later. At any moment there is one whole file.
 */
async function makeRing({ disk, folder, slots }: MakeOptions, records: readonly SlotRecord[]): Promise<Ring> {
  const path = journalFile(folder);
  const draft = draftOf(path);
  const file = await disk.create(draft, fileMode);
  try {
    const whole = Buffer.alloc(slots * slotBytes);
    for (const { sequence, text } of records.length === 0 ? [firstRecord] : records) {
      writeSlot(sequence, text, slots).copy(whole, (sequence % slots) * slotBytes);
    }
    for (let at = 0; at < whole.length; at += fillBytes) await file.write(whole.subarray(at, at + fillBytes), at);
    await file.sync();
    const facts = await file.facts();
    await disk.rename(draft, path);
    await disk.syncFolder(folder);
    return new Ring({ disk, path, file, facts, slots });
  } catch (error) {
    await file.close().catch(() => {});
    await disk.remove(draft).catch(() => {});
    throw error;
  }
}
