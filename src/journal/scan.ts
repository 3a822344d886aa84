import type { DiskFile } from "./disk.ts";
import { readRecord, type Stored } from "./record.ts";
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
  /** Slots that hold what was written into them. */
  readonly whole: number;
  /** Slots that were torn or spoiled. */
  readonly bad: number;
  /** Slots that a later posline wrote. */
  readonly newer: number;
  /** Slots that were never written. */
  readonly empty: number;
}

/** Reads `[from, to)` of a ring of so many slots; all of it unless told. */
export async function scan(file: DiskFile, slots: number, from = 0, to = slots): Promise<Scan> {
  const records: Stored[] = [];
  const counts = { whole: 0, bad: 0, newer: 0, empty: 0 };
  let head = 0;
  for (let at = from * slotBytes; at < to * slotBytes; at += chunkBytes) {
    const chunk = await readChunk(file, at, Math.min(chunkBytes, to * slotBytes - at));
    for (let offset = 0; offset < chunk.length; offset += slotBytes) {
      const slot = readSlot(chunk.subarray(offset, offset + slotBytes));
      if (typeof slot === "string") counts[slot]++;
      // A slot that stands elsewhere than its number says is none of this ring's.
      else if (slot.sequence % slots !== (at + offset) / slotBytes) counts.bad++;
      else {
        counts.whole++;
        head = Math.max(head, slot.sequence);
        const record = readRecord(slot.text);
        if (record !== undefined) records.push({ sequence: slot.sequence, record });
      }
    }
  }
  // What is a whole round behind is older than the oldest slot that should be there: it was to be overwritten and wasn't.
  const kept = records.filter(({ sequence }) => sequence > head - slots);
  kept.sort((one, other) => one.sequence - other.sequence);
  return { records: kept, head, ...counts };
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
