import { stat } from "node:fs/promises";
import { openToRead } from "./disk.ts";
import { isHeld } from "./hold.ts";
import { JournalError, journalFile, readReason } from "./reasons.ts";
import type { Stored } from "./record.ts";
import { type Scan, scan } from "./scan.ts";
import { slotBytes } from "./slot.ts";

/**
 * Reads a journal while another process writes it: without a lock, since what is being written at this moment is a torn slot
 * like any other, and whole a moment later.
 */

export interface Reading {
  /** In order. */
  readonly records: readonly Stored[];
  /** Slots of its ring. */
  readonly slots: number;
  /** Slots that were torn or spoiled. */
  readonly bad: number;
  /** A process keeps the journal at this moment, so what has no outcome may be in flight. */
  readonly isKept: boolean;
}

/**
 * Reads all that stands in a folder's journal.
 * @throws JournalError saying why it can't be read, and what to do.
 */
export async function readJournal(folder: string): Promise<Reading> {
  const { records, slots, bad, whole } = await scanned(folder);
  if (whole === 0)
    throw new JournalError(`Cannot read ${journalFile(folder)}: it is no journal of posline: name another folder`);
  return { records, slots, bad, isKept: await isHeld(folder) };
}

/** Slots behind the last one that are looked at for what is new. */
const windowSlots = 256;

/** Follows a journal from a record on: tells what came behind it each time it is asked. */
export class Follower {
  readonly #folder: string;
  #last: number;
  #slots: number;
  #seen = "";

  /** @param reading What was read before, and is known. */
  constructor(folder: string, { records, slots }: Reading) {
    this.#folder = folder;
    this.#last = records.at(-1)?.sequence ?? 0;
    this.#slots = slots;
  }

  /**
   * The records that came since the last time, in order.
   * @throws JournalError saying why it can't be read, and what to do.
   */
  async next(): Promise<readonly Stored[]> {
    const seen = await seenIn(this.#folder);
    if (seen === this.#seen) return [];
    this.#seen = seen;
    const near = await this.#newer({ slots: this.#slots, after: this.#last });
    // A longer gap is left by records that were dropped while the disk failed, or in a file of another size.
    const records = near.length > 0 ? near : await this.#newer(undefined);
    this.#last = records.at(-1)?.sequence ?? this.#last;
    return records;
  }

  async #newer(window: Window | undefined): Promise<readonly Stored[]> {
    const { records, slots, head, bad } = await scanned(this.#folder, window);
    if (window === undefined) {
      this.#slots = slots;
      // It is another file, whose numbers began anew; unless the last record is being written again at this moment.
      if (head < this.#last && bad === 0) this.#last = 0;
    }
    return records.filter(({ sequence }) => sequence > this.#last);
  }
}

/** What changes with each record, and when the file is replaced. */
async function seenIn(folder: string): Promise<string> {
  try {
    const { ino, mtimeMs } = await stat(journalFile(folder));
    return `${ino} ${mtimeMs}`;
  } catch (error) {
    throw unreadable(error, folder);
  }
}

/** The slots behind a record, in a ring of so many. */
interface Window {
  readonly slots: number;
  readonly after: number;
}

async function scanned(folder: string, window?: Window): Promise<Scan> {
  try {
    const file = await openToRead(journalFile(folder));
    try {
      const there = Math.floor((await file.facts()).bytes / slotBytes);
      if (window === undefined || windowSlots >= window.slots || window.slots !== there) return await scan(file, 0, there);
      const { slots, after } = window;
      const from = (after + 1) % slots;
      const first = await scan(file, from, Math.min(slots, from + windowSlots), slots);
      const rest = await scan(file, 0, Math.max(0, from + windowSlots - slots), slots);
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
