import { stat } from "node:fs/promises";
import { type DiskFile, nodeDisk } from "./disk.ts";
import { JournalError, journalFile, readReason } from "./errors.ts";
import { type JournalRecord, readRecord, type StoredRecord } from "./record.ts";
import { batchMax, readSlot, slotBytes } from "./slot.ts";
import { isWriterLocked } from "./writer-lock.ts";

/**
 * Reads the journal's file: every whole record of its ring, in order, and how many slots hold none. It takes no lock, so
 * another process may be writing: what is being written at this moment is a torn slot like any other, and whole a moment later.
 */

/** Bytes read at once: little enough that others get their turn between. */
const chunkBytes = 256 * 1024;

/** Bytes that a disk fails to read as one: a page. */
const pageBytes = 4_096;

/**
 * So many spoiled slots behind the newest record are what a power cut tore: what is written of one moment of a line. More of them are a page
 * that is lost, with records that callers were answered by.
 */
export const tornMax = 3;

export interface RingScan {
  /** In order. */
  readonly records: readonly StoredRecord[];
  /** The numbers of all its whole slots, in order: of records, and of what says nothing to this posline. */
  readonly sequences: readonly number[];
  /** The highest of them; 0 when there is none. */
  readonly head: number;
  /** Slots of the ring, as its newest one says; 0 when none is whole. The file may have been cut, or been added to. */
  readonly slots: number;
  /** Slots that hold what was written into them. */
  readonly whole: number;
  /** Slots that were torn or spoiled. */
  readonly bad: number;
  /** Slots that a later posline wrote. */
  readonly newer: number;
  /** Slots that were never written. */
  readonly empty: number;
  /** Numbers of records that are missing between others, or before all: torn, spoiled, or never written. */
  readonly missing: readonly SequenceRange[];
  /** Other records may be lost, of any time until now: a page can't be read, the newest ones are spoiled, or the file was cut or emptied. */
  readonly isLacking: boolean;
  /** The number of the next record: behind slots that can't be read now, and may be readable again later. */
  readonly next: number;
}

/** Records by their numbers, the last one included. */
export interface SequenceRange {
  readonly from: number;
  readonly to: number;
}

/** A whole slot, and where it stands. */
interface PlacedSlot {
  readonly at: number;
  readonly sequence: number;
  readonly slots: number;
  readonly record: JournalRecord | undefined;
}

/** Reads the slots `[from, to)` of a file; `ringSlots` when it is known of how many the ring is. */
export async function scanRing(file: DiskFile, from: number, to: number, ringSlots?: number): Promise<RingScan> {
  const placed: PlacedSlot[] = [];
  const counts = { bad: 0, newer: 0, empty: 0 };
  const badSlots = new Set<number>();
  let isUnreadable = false;
  for (let at = from * slotBytes; at < to * slotBytes; at += chunkBytes) {
    const { chunk, isWhole } = await readChunk(file, at, Math.min(chunkBytes, to * slotBytes - at));
    isUnreadable ||= !isWhole;
    for (let offset = 0; offset < chunk.length; offset += slotBytes) {
      const slot = readSlot(chunk.subarray(offset, offset + slotBytes));
      if (typeof slot === "string") {
        counts[slot]++;
        if (slot === "bad") badSlots.add((at + offset) / slotBytes);
      } else {
        const { sequence, slots, text } = slot;
        placed.push({ at: (at + offset) / slotBytes, sequence, slots, record: readRecord(text) });
      }
    }
  }
  const slots = ringSlots ?? slotsOf(placed);
  // A slot that stands elsewhere than its number says, or is of a ring of another size, isn't this ring's.
  const own = placed.filter((each) => each.slots === slots && isInPlace(each));
  own.sort((one, other) => one.sequence - other.sequence);
  counts.bad += placed.length - own.length;
  const head = own.at(-1)?.sequence ?? 0;
  // What is a whole round behind is older than the oldest slot that should be there: it was to be overwritten and wasn't.
  const current = own.filter(({ sequence }) => sequence > head - slots);
  const records = current.flatMap(({ sequence, record }) => (record === undefined ? [] : [{ sequence, record }]));
  let next = head + 1;
  while (next <= head + batchMax && badSlots.has(next % slots)) next++;
  const isCut = ringSlots === undefined && (to === 0 || to < slots);
  const isLacking = isUnreadable || isCut || next - head - 1 > tornMax;
  const sequences = current.map(({ sequence }) => sequence);
  const missing = [...missingBefore(sequences, { head, slots, badSlots }), ...missingIn(sequences)];
  return { records, sequences, head, slots, whole: own.length, ...counts, missing, isLacking, next };
}

/** @param sequences In order. */
function missingIn(sequences: readonly number[]): readonly SequenceRange[] {
  return sequences.flatMap((sequence, at) => {
    const before = sequences[at - 1];
    return before === undefined || sequence === before + 1 ? [] : [{ from: before + 1, to: sequence - 1 }];
  });
}

/** What should stand before the oldest record, and is spoiled. What was never there is of a file that was made larger. */
function missingBefore(
  [oldest = 0]: readonly number[],
  { head, slots, badSlots }: Pick<RingScan, "head" | "slots"> & { readonly badSlots: ReadonlySet<number> },
): readonly SequenceRange[] {
  const from = Math.max(1, head - slots + 1);
  for (let sequence = from; sequence < oldest; sequence++) {
    if (badSlots.has(sequence % slots)) return [{ from, to: oldest - 1 }];
  }
  return [];
}

const isInPlace = ({ at, sequence, slots }: PlacedSlot) => sequence % slots === at;

/** Of how many slots the ring is that these belong to: the newest was written last. */
function slotsOf(placed: readonly PlacedSlot[]): number {
  let newest: PlacedSlot | undefined;
  for (const each of placed) {
    if (isInPlace(each) && (newest === undefined || each.sequence > newest.sequence)) newest = each;
  }
  return newest?.slots ?? 0;
}

/** Reads a piece of the file. A page that the disk can't read any more is left as spoiled, and the others are read. */
async function readChunk(file: DiskFile, position: number, bytes: number): Promise<{ chunk: Buffer; isWhole: boolean }> {
  const chunk = Buffer.alloc(bytes, spoiled);
  try {
    await file.read(chunk, position);
    return { chunk, isWhole: true };
  } catch (error) {
    let read = 0;
    for (let at = 0; at < bytes; at += pageBytes) {
      const page = Buffer.alloc(Math.min(pageBytes, bytes - at));
      await file.read(page, position + at).then(
        () => {
          read++;
          page.copy(chunk, at);
        },
        () => {},
      );
    }
    if (read === 0) throw error;
    return { chunk, isWhole: false };
  }
}

/** What stands for bytes that can't be read: no slot begins like that. */
const spoiled = 0xff;

/** What a journal holds at one moment. */
export interface JournalSnapshot extends RingScan {
  /** A process writes the journal at this moment, so what has no outcome may be in flight. */
  readonly isWritten: boolean;
}

/**
 * Reads all that stands in a folder's journal.
 * @throws JournalError saying why it can't be read, and what to do.
 */
export async function readJournal(folder: string): Promise<JournalSnapshot> {
  const scan = await scanFolder(folder);
  if (scan.whole === 0)
    throw new JournalError(`Cannot read ${journalFile(folder)}: it is not a journal of posline: name another folder`);
  return { ...scan, isWritten: await isWriterLocked(folder) };
}

/** Slots behind the last one that are looked at for what is new. */
const windowSlots = 256;

/** Follows a journal: each call of `next` gives the records that came after the last one. */
export class JournalFollower {
  readonly #folder: string;
  #last: number;
  #slots: number;
  #version: string | undefined;

  /** @param snapshot What was read before. */
  constructor(folder: string, { records, slots }: JournalSnapshot) {
    this.#folder = folder;
    this.#last = records.at(-1)?.sequence ?? 0;
    this.#slots = slots;
  }

  /**
   * The records that came since the last time, in order.
   * @throws JournalError saying why it can't be read, and what to do.
   */
  async next(): Promise<readonly StoredRecord[]> {
    const version = await versionOf(this.#folder);
    if (version !== undefined && version === this.#version) return [];
    this.#version = version;
    const near = await this.#newer({ slots: this.#slots, after: this.#last });
    // A longer gap is left by records that were dropped while the disk failed, or in a file of another size.
    const records = near.length > 0 ? near : await this.#newer(undefined);
    this.#last = records.at(-1)?.sequence ?? this.#last;
    return records;
  }

  async #newer(window: SlotWindow | undefined): Promise<readonly StoredRecord[]> {
    const { records, slots, head, bad } = await scanFolder(this.#folder, window);
    if (window === undefined) {
      this.#slots = slots;
      // This is another file, whose numbers began anew; unless the last record is being written again at this moment.
      if (head < this.#last && bad === 0) this.#last = 0;
    }
    return records.filter(({ sequence }) => sequence > this.#last);
  }
}

/** Milliseconds in which a file may change once more without another time of change: a tick of FAT has 2 s, one of Linux up to 10 ms. */
const tickMs = 3_000;

/** What changes with each record, and when the file is replaced; undefined while it may not do so yet. */
async function versionOf(folder: string): Promise<string | undefined> {
  try {
    const { ino, mtimeMs } = await stat(journalFile(folder));
    return mtimeMs > Date.now() - tickMs ? undefined : `${ino} ${mtimeMs}`;
  } catch (error) {
    throw unreadable(error, folder);
  }
}

/** The slots behind a record, in a ring of so many. */
interface SlotWindow {
  readonly slots: number;
  readonly after: number;
}

async function scanFolder(folder: string, window?: SlotWindow): Promise<RingScan> {
  try {
    const file = await nodeDisk.openToRead(journalFile(folder));
    try {
      const there = Math.floor((await file.facts()).bytes / slotBytes);
      if (window === undefined || windowSlots >= window.slots || window.slots !== there) return await scanRing(file, 0, there);
      const { slots, after } = window;
      const from = (after + 1) % slots;
      const first = await scanRing(file, from, Math.min(slots, from + windowSlots), slots);
      const rest = await scanRing(file, 0, Math.max(0, from + windowSlots - slots), slots);
      return { ...first, records: [...first.records, ...rest.records] };
    } finally {
      await file.close();
    }
  } catch (error) {
    throw unreadable(error, folder);
  }
}

function unreadable(error: unknown, folder: string): JournalError {
  return new JournalError(`Cannot read the journal in ${folder}: ${readReason(error, folder)}`);
}
