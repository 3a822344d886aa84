import type { Disk, DiskFile } from "./disk.ts";
import { JournalError, journalFile } from "./reasons.ts";
import type { Stored } from "./record.ts";
import { type Scan, scan } from "./scan.ts";
import { slotBytes, writeSlot } from "./slot.ts";

/**
 * A ring of records in a file, made whole at its beginning and overwritten in place from then on: an append costs one page on the
 * disk, where growing a file or replacing it would cost several, and a full disk can't stop it. A record's sequence number is
 * its place: it stands in slot `sequence % slots`, so the newest is found by reading, and nothing else has to be kept right.
 */

/** A record as it goes into its slot. */
export interface Written {
  readonly sequence: number;
  readonly text: string;
}

/** What was found at an opening. */
export interface Opened {
  readonly ring: Ring;
  readonly found: Scan;
  /** What its operator should know. */
  readonly notices: readonly string[];
}

/** Bytes written at once while a file is made. */
const fillBytes = 1024 * 1024;

/** Who may read it: posline's group, so that a technician needn't be root. */
const fileMode = 0o640;

export class Ring {
  readonly #file: DiskFile;
  readonly #slots: number;

  constructor(file: DiskFile, slots: number) {
    this.#file = file;
    this.#slots = slots;
  }

  /**
   * Puts records in their slots; settles once they are on the disk. They come in order, fewer than there are slots, and nobody
   * else writes meanwhile.
   */
  async write(records: readonly Written[]): Promise<void> {
    for (let from = 0; from < records.length; ) {
      let to = from + 1;
      while (to < records.length && this.#follows(records[to - 1], records[to])) to++;
      const run = records.slice(from, to).map(({ sequence, text }) => writeSlot(sequence, text));
      await this.#file.write(Buffer.concat(run), ((records[from]?.sequence ?? 0) % this.#slots) * slotBytes);
      from = to;
    }
    await this.#file.sync();
  }

  /** Gives the file back, whatever its disk says to that. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }

  /** Two records whose slots touch go out in one write. */
  #follows(one: Written | undefined, other: Written | undefined): boolean {
    if (one === undefined || other === undefined) return false;
    return other.sequence === one.sequence + 1 && other.sequence % this.#slots !== 0;
  }
}

/**
 * Opens the ring of a folder; makes it where there is none, and gives it another size where `bytes` says so, with the newest of
 * its records.
 * @throws JournalError when the file that is there is none of posline's, which is left as it is; the system's errors.
 */
export async function openRing(disk: Disk, folder: string, bytes: number): Promise<Opened> {
  const path = journalFile(folder);
  const slots = Math.floor(bytes / slotBytes);
  const file = await openFile(disk, path);
  if (file === undefined) {
    const fresh = await makeFile(disk, folder, slots, []);
    return { ring: new Ring(fresh, slots), found: nothing, notices: [] };
  }
  try {
    const fileBytes = await file.bytes();
    const there = Math.floor(fileBytes / slotBytes);
    const found = await scan(file, there);
    refuseForeign(path, fileBytes, found);
    const notices: string[] = [];
    if (found.bad > 0) notices.push(badNotice(path, found.bad));
    if (there === slots) return { ring: new Ring(file, slots), found, notices };
    const resized = await resize({ disk, folder, file, there, slots, found, notices });
    return { ring: resized, found, notices };
  } catch (error) {
    await file.close().catch(() => {});
    throw error;
  }
}

/** What a file that was just made holds. */
const nothing: Scan = { records: [], head: 0, whole: 1, bad: 0, newer: 0, empty: 0 };

async function openFile(disk: Disk, path: string): Promise<DiskFile | undefined> {
  try {
    return await disk.open(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** What somebody else put there is never overwritten. */
function refuseForeign(path: string, bytes: number, { whole, newer }: Scan): void {
  if (newer > 0) throw new JournalError(`${path} was written by a later posline: install that one, or move the file away`);
  if (whole === 0 && bytes > 0)
    throw new JournalError(`${path} is no journal of posline, or nothing of it can be read: move the file away`);
}

function badNotice(path: string, bad: number): string {
  const what = bad === 1 ? "1 slot was" : `${bad} slots were`;
  return `${what} torn or spoiled in ${path}: what was being written when the power went is left out`;
}

interface Resizing {
  readonly disk: Disk;
  readonly folder: string;
  readonly file: DiskFile;
  readonly there: number;
  readonly slots: number;
  readonly found: Scan;
  readonly notices: string[];
}

/** The newest records in a file of another size. Where there is no room for a second file, the first one goes on to be used. */
async function resize({ disk, folder, file, there, slots, found, notices }: Resizing): Promise<Ring> {
  const kept = found.records.filter(({ sequence }) => sequence > found.head - slots);
  let resized: DiskFile;
  try {
    resized = await makeFile(disk, folder, slots, await slotsOf(file, there, kept));
  } catch (error) {
    if (there === 0) throw error;
    notices.push(
      `${journalFile(folder)} keeps its size of ${there * slotBytes} bytes, since another can't be made beside it (${String(error)})`,
    );
    return new Ring(file, there);
  }
  await file.close().catch(() => {});
  return new Ring(resized, slots);
}

/** The slots of records, byte for byte. */
async function slotsOf(
  file: DiskFile,
  slots: number,
  records: readonly Stored[],
): Promise<readonly (readonly [number, Buffer])[]> {
  const found: (readonly [number, Buffer])[] = [];
  for (const { sequence } of records) {
    const slot = Buffer.alloc(slotBytes);
    await file.read(slot, (sequence % slots) * slotBytes);
    found.push([sequence, slot]);
  }
  return found;
}

/** What a new file begins with, so that it is known for posline's though a power cut tears the first record of all. */
const made = writeSlot(0, '{"kind":"made"}');

/**
 * Makes a file with these slots in it and zeros elsewhere, in place of the one there is: written in full, since a file with
 * holes would find the disk full later. At any moment there is one whole file.
 */
async function makeFile(
  disk: Disk,
  folder: string,
  slots: number,
  filled: readonly (readonly [number, Buffer])[],
): Promise<DiskFile> {
  const path = journalFile(folder);
  const beside = `${path}.new`;
  const file = await disk.create(beside, fileMode);
  try {
    const whole = Buffer.alloc(slots * slotBytes);
    if (filled.length === 0) made.copy(whole);
    for (const [sequence, slot] of filled) slot.copy(whole, (sequence % slots) * slotBytes);
    for (let at = 0; at < whole.length; at += fillBytes) await file.write(whole.subarray(at, at + fillBytes), at);
    await file.sync();
    await disk.rename(beside, path);
    await disk.syncFolder(folder);
    return file;
  } catch (error) {
    await file.close().catch(() => {});
    await disk.remove(beside).catch(() => {});
    throw error;
  }
}
