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
  const { records, bad, whole } = await scanned(folder);
  if (whole === 0)
    throw new JournalError(`Cannot read ${journalFile(folder)}: it is no journal of posline: name another folder`);
  return { records, bad, isKept: await isHeld(folder) };
}

/** Slots behind the last one that are looked at for what is new. */
const windowSlots = 256;

/** Follows a journal from a record on: tells what came behind it each time it is asked. */
export class Follower {
  readonly #folder: string;
  #last: number;
  #seen = "";

  constructor(folder: string, last: number) {
    this.#folder = folder;
    this.#last = last;
  }

  /**
   * The records that came since the last time, in order.
   * @throws JournalError saying why it can't be read, and what to do.
   */
  async next(): Promise<readonly Stored[]> {
    const seen = await identityOf(this.#folder);
    if (seen === this.#seen) return [];
    this.#seen = seen;
    const near = await this.#newer(windowSlots);
    // A longer gap is left by records that were dropped while the disk failed.
    const records = near.length > 0 ? near : await this.#newer(undefined);
    this.#last = records.at(-1)?.sequence ?? this.#last;
    return records;
  }

  async #newer(slots: number | undefined): Promise<readonly Stored[]> {
    const { records } = await scanned(this.#folder, slots === undefined ? undefined : { after: this.#last, slots });
    return records.filter(({ sequence }) => sequence > this.#last);
  }
}

/** Changes with each record, and when the file is replaced. */
async function identityOf(folder: string): Promise<string> {
  try {
    const { ino, mtimeMs } = await stat(journalFile(folder));
    return `${ino} ${mtimeMs}`;
  } catch (error) {
    throw unreadable(error, folder);
  }
}

async function scanned(folder: string, window?: { readonly after: number; readonly slots: number }): Promise<Scan> {
  try {
    const file = await openToRead(journalFile(folder));
    try {
      const slots = Math.floor((await file.bytes()) / slotBytes);
      if (window === undefined || window.slots >= slots) return await scan(file, slots);
      const from = (window.after + 1) % slots;
      const first = await scan(file, slots, from, Math.min(slots, from + window.slots));
      const rest = await scan(file, slots, 0, Math.max(0, from + window.slots - slots));
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
