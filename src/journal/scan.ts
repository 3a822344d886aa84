import type { DiskFile } from "./disk.ts";
import { type JournalRecord, readRecord, type Stored } from "./record.ts";
import { readSlot, slotBytes } from "./slot.ts";

/** Reads a ring: every whole record, in order, and how many slots hold none. */

/** Bytes read at once: little enough that others get their turn between. */
const chunkBytes = 256 * 1024;

/** Bytes that a disk fails to read as one: a page. */
const pageBytes = 4_096;

export interface Scan {
  /** In order. */
  readonly records: readonly Stored[];
  /** The highest sequence number of all slots; 0 when there is none. */
  readonly head: number;
  /** Slots of the ring, as its newest one tells; 0 when none is whole. The file may have been cut, or been added to. */
  readonly slots: number;
  /** Slots that hold what was written into them. */
  readonly whole: number;
  /** Slots that were torn or spoiled. */
  readonly bad: number;
  /** Slots that a later posline wrote. */
  readonly newer: number;
  /** Slots that were never written. */
  readonly empty: number;
}

/** A whole slot, and where it stands. */
interface Placed {
  readonly at: number;
  readonly sequence: number;
  readonly slots: number;
  readonly record: JournalRecord | undefined;
}

/** Reads the slots `[from, to)` of a file; `ringSlots` when it is known of how many the ring is. */
export async function scan(file: DiskFile, from: number, to: number, ringSlots?: number): Promise<Scan> {
  const placed: Placed[] = [];
  const counts = { whole: 0, bad: 0, newer: 0, empty: 0 };
  for (let at = from * slotBytes; at < to * slotBytes; at += chunkBytes) {
    const chunk = await readChunk(file, at, Math.min(chunkBytes, to * slotBytes - at));
    for (let offset = 0; offset < chunk.length; offset += slotBytes) {
      const slot = readSlot(chunk.subarray(offset, offset + slotBytes));
      if (typeof slot === "string") counts[slot]++;
      else {
        const { sequence, slots, text } = slot;
        placed.push({ at: (at + offset) / slotBytes, sequence, slots, record: readRecord(text) });
      }
    }
  }
  const slots = ringSlots ?? slotsOf(placed);
  // A slot that stands elsewhere than its number says, or is of a ring of another size, is none of this ring's.
  const own = placed.filter((each) => each.slots === slots && isInPlace(each));
  counts.whole = own.length;
  counts.bad += placed.length - own.length;
  const head = own.reduce((highest, { sequence }) => Math.max(highest, sequence), 0);
  const records = own.flatMap(({ sequence, record }) => {
    // What is a whole round behind is older than the oldest slot that should be there: it was to be overwritten and wasn't.
    return record === undefined || sequence <= head - slots ? [] : [{ sequence, record }];
  });
  records.sort((one, other) => one.sequence - other.sequence);
  return { records, head, slots, ...counts };
}

const isInPlace = ({ at, sequence, slots }: Placed) => sequence % slots === at;

/** Of how many slots the ring is that these belong to: the newest was written last. */
function slotsOf(placed: readonly Placed[]): number {
  let newest: Placed | undefined;
  for (const each of placed) {
    if (isInPlace(each) && (newest === undefined || each.sequence > newest.sequence)) newest = each;
  }
  return newest?.slots ?? 0;
}

/** Reads a piece of the file. A page that the disk can't read any more is left as spoiled, and the others are read. */
async function readChunk(file: DiskFile, position: number, bytes: number): Promise<Buffer> {
  const chunk = Buffer.alloc(bytes, spoiled);
  try {
    await file.read(chunk, position);
    return chunk;
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
    return chunk;
  }
}

/** What stands for bytes that can't be read: no slot begins like that. */
const spoiled = 0xff;
