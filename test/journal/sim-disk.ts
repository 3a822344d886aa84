import type { Disk, DiskFile, FileFacts } from "../../src/journal/disk.ts";
import { slotBytes } from "../../src/journal/slot.ts";

/**
 * A disk that can lose its power: what was written and not synced may be there afterwards, or not, or in part, each slot on its
 * own. It counts its syncs, and fails or hangs when a test says so.
 */

interface File {
  /** Which one it is, by whatever name. */
  readonly number: number;
  /** What is on the platter for sure. */
  durable: Buffer;
  /** What a reader sees. */
  current: Buffer;
  unsynced: { readonly position: number; readonly bytes: Buffer }[];
  /** Positions of slots that can't be read, until they are written. */
  readonly unreadable: Set<number>;
}

/** What the power cut leaves of one slot's worth of a write: all of it, nothing, or its beginning or its end. */
export type Fate = { readonly keeps: "all" | "none" | "start" | "end"; readonly bytes: number };

/** Files made by all disks. */
let filesMade = 0;

export class SimDisk implements Disk {
  /** By path, as a reader sees them. */
  readonly files = new Map<string, File>();
  /** The names that are on the platter for sure. */
  #durableNames = new Map<string, File>();
  syncs = 0;
  writes = 0;
  /** Operations until the power goes; every one after that hangs for ever. */
  fuse = Number.POSITIVE_INFINITY;
  /** What each operation on it meets: thrown, or awaited. */
  trouble: { readonly error?: Error; readonly until?: Promise<void> } | undefined;
  locked = false;
  /** It can be read, and takes nothing. */
  isReadOnly = false;

  lock = async () => {
    await this.#step();
    if (this.isReadOnly) throw systemError("EROFS");
    if (this.locked) throw new Error("locked twice");
    this.locked = true;
    return {
      release: async () => {
        this.locked = false;
      },
    };
  };

  open = async (path: string): Promise<DiskFile> => {
    await this.#step();
    const file = this.files.get(path);
    if (file === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: "ENOENT" });
    return this.#fileOf(file);
  };

  openToRead = (path: string): Promise<DiskFile> => this.open(path);

  factsOf = async (path: string): Promise<FileFacts | undefined> => {
    await this.#step();
    const file = this.files.get(path);
    return file === undefined ? undefined : factsIn(file);
  };

  create = async (path: string): Promise<DiskFile> => {
    await this.#step();
    const file = newFile(Buffer.alloc(0));
    this.files.set(path, file);
    return this.#fileOf(file);
  };

  rename = async (from: string, to: string): Promise<void> => {
    await this.#step();
    const file = this.files.get(from);
    if (file === undefined) throw new Error(`no ${from}`);
    this.files.delete(from);
    this.files.set(to, file);
  };

  remove = async (path: string): Promise<void> => {
    await this.#step();
    this.files.delete(path);
  };

  syncFolder = async (): Promise<void> => {
    await this.#step();
    this.#durableNames = new Map(this.files);
  };

  /** Puts a file there as it is. */
  put(path: string, content: Buffer): void {
    const file = newFile(content);
    this.files.set(path, file);
    this.#durableNames.set(path, file);
  }

  /** A page of a file goes bad: something else stands there, or it can't be read until it is written. */
  spoil(path: string, page: number, as: "garbage" | "unreadable"): void {
    const file = this.files.get(path);
    if (file === undefined) return;
    for (let at = page * pageBytes; at < Math.min((page + 1) * pageBytes, file.current.length); at += slotBytes) {
      for (const content of [file.current, file.durable]) content.fill(0x5a, at, at + slotBytes);
      if (as === "unreadable") file.unreadable.add(at);
    }
  }

  /** The disk as it is found after the power cut; `fates` are taken in turn, one a slot that was not synced. */
  afterCut(fates: readonly Fate[], renamesKept: boolean): SimDisk {
    const found = new SimDisk();
    let count = 0;
    for (const [path, file] of renamesKept ? this.files : this.#durableNames) {
      const content = Buffer.from(file.durable);
      for (const { position, bytes } of file.unsynced) {
        for (let at = 0; at < bytes.length; at += slotBytes) {
          const fate = fates[count++ % fates.length] ?? { keeps: "none", bytes: 0 };
          const piece = bytes.subarray(at, at + slotBytes);
          const from = fate.keeps === "end" ? Math.max(0, piece.length - fate.bytes) : 0;
          const to = fate.keeps === "start" ? Math.min(fate.bytes, piece.length) : fate.keeps === "none" ? 0 : piece.length;
          // What the file had not grown to is not there.
          if (from < to && position + at + from < content.length) piece.copy(content, position + at + from, from, to);
        }
      }
      found.put(path, content);
    }
    return found;
  }

  async #step(): Promise<void> {
    if (this.fuse-- <= 0) await new Promise<void>(() => {});
    const { trouble } = this;
    if (trouble?.until !== undefined) await trouble.until;
    if (trouble?.error !== undefined) throw trouble.error;
  }

  #fileOf(file: File): DiskFile {
    return {
      facts: async () => {
        await this.#step();
        return factsIn(file);
      },
      read: async (buffer, position) => {
        await this.#step();
        for (const at of file.unreadable) {
          if (at < position + buffer.length && at + slotBytes > position) throw systemError("EIO");
        }
        return file.current.copy(buffer, 0, position);
      },
      write: async (buffer, position) => {
        const bytes = Buffer.from(buffer);
        // What the power cut stops may have begun.
        file.unsynced.push({ position, bytes });
        await this.#step();
        this.writes++;
        const end = position + bytes.length;
        if (end > file.current.length) file.current = Buffer.concat([file.current, Buffer.alloc(end - file.current.length)]);
        bytes.copy(file.current, position);
        for (let at = position; at < end; at += slotBytes) file.unreadable.delete(at);
      },
      sync: async () => {
        const unsynced = file.unsynced.length;
        const content = Buffer.from(file.current);
        await this.#step();
        this.syncs++;
        file.unsynced = file.unsynced.slice(unsynced);
        file.durable = content;
      },
      close: async () => {},
    };
  }
}

/** Bytes of what goes bad at once. */
export const pageBytes = 4_096;

const newFile = (content: Buffer): File => ({
  ...{ number: ++filesMade, durable: Buffer.from(content), current: Buffer.from(content), unsynced: [] },
  unreadable: new Set(),
});

const factsIn = ({ number, current }: File): FileFacts => ({ identity: `${number}`, bytes: current.length });

/** An error of the system. */
export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: of a test`), { code });
}
