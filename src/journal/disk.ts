import type { BigIntStats } from "node:fs";
import { type FileHandle, open, rename, rm, stat, unlink } from "node:fs/promises";
import { codeOf } from "../core/error-code.ts";
import { acquireWriterLock, type WriterLock } from "./writer-lock.ts";

/**
 * What the journal asks of a disk. Each call runs in the thread pool, so a disk that dies blocks no exchange; how long to wait
 * for one is up to its caller.
 */

/** A file as the system knows it. */
export interface FileFacts {
  /** The file's identity, whatever its name. */
  readonly identity: string;
  readonly bytes: number;
}

/** An open file. */
export interface DiskFile {
  facts(): Promise<FileFacts>;
  /** Reads up to the buffer's length; gives how many bytes came. */
  read(buffer: Buffer, position: number): Promise<number>;
  /** Writes all of it. */
  write(buffer: Buffer, position: number): Promise<void>;
  /** Settles once what was written is on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface Disk {
  /** Keeps other processes from writing the journal of a folder. */
  lock(folder: string): Promise<WriterLock>;
  open(path: string): Promise<DiskFile>;
  /** Opens a file that is only read, and that another process may be writing. */
  openToRead(path: string): Promise<DiskFile>;
  /** The file of a name; undefined when there is none. */
  factsOf(path: string): Promise<FileFacts | undefined>;
  /** Makes a file anew; one that is there is removed. */
  create(path: string, mode: number): Promise<DiskFile>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Settles once the names in a folder are on the disk. */
  syncFolder(folder: string): Promise<void>;
}

class NodeFile implements DiskFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async facts(): Promise<FileFacts> {
    return factsIn(await this.#handle.stat({ bigint: true }));
  }

  async read(buffer: Buffer, position: number): Promise<number> {
    let read = 0;
    while (read < buffer.length) {
      const { bytesRead } = await this.#handle.read(buffer, read, buffer.length - read, position + read);
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    return read;
  }

  async write(buffer: Buffer, position: number): Promise<void> {
    // A write may take less than all, as the last one before a full disk does.
    for (let written = 0; written < buffer.length; ) {
      const { bytesWritten } = await this.#handle.write(buffer, written, buffer.length - written, position + written);
      if (bytesWritten === 0) throw new Error("the disk accepts no more bytes");
      written += bytesWritten;
    }
  }

  sync(): Promise<void> {
    return this.#handle.datasync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

/** Inode numbers of some file systems are too long for a number. */
function factsIn({ dev, ino, size }: BigIntStats): FileFacts {
  return { identity: `${dev}:${ino}`, bytes: Number(size) };
}

/** The disk of this box. */
export const nodeDisk: Disk = {
  lock: acquireWriterLock,
  open: async (path) => new NodeFile(await open(path, "r+")),
  openToRead: async (path) => new NodeFile(await open(path, "r")),
  create: async (path, mode) => {
    // Always a new file: a link that was left under the name would lead the writing elsewhere.
    await rm(path, { force: true });
    const handle = await open(path, "wx+", mode);
    try {
      // The umask may have taken the group's share.
      await handle.chmod(mode);
    } catch (error) {
      await handle.close().catch(() => {});
      await unlink(path).catch(() => {});
      throw error;
    }
    return new NodeFile(handle);
  },
  factsOf: async (path) => {
    try {
      return factsIn(await stat(path, { bigint: true }));
    } catch (error) {
      if (isFileMissing(error)) return undefined;
      throw error;
    }
  },
  rename,
  remove: unlink,
  syncFolder: async (folder) => {
    const handle = await open(folder, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

/** Whether an error says that there is no file of that name. */
export function isFileMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(codeOf(error) ?? "");
}
