import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "./error-code.ts";
import { UsageError } from "./exit.ts";

/** The owner, the group and the mode of a file. */
export interface FileReaders {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/**
 * Replaces a file by a new one that is on the disk before it takes the old one's place: at any moment, also after a power cut, there is one
 * whole file, and a part never takes the place of a whole. A link stays, and its target is replaced. Only its owner may read the new file,
 * unless others are given.
 *
 * The new file is made beside it under a name that nobody can have foreseen, and made by this or not at all: in a folder that others may
 * write to, a link of theirs must not lead the text elsewhere.
 * @throws the system's error if it can't be written; the file is as it was then, and nothing is left beside it.
 */
export function replaceFile(path: string, text: string, readers?: FileReaders): void {
  const target = behindLink(path);
  const beside = `${target}.${randomBytes(8).toString("hex")}.new`;
  const file = openSync(beside, "wx", 0o600);
  try {
    try {
      // Writes until all is written or says why not, unlike the package for this.
      writeFileSync(file, text, { flush: true });
      if (readers !== undefined) {
        fchownSync(file, readers.uid, readers.gid);
        fchmodSync(file, readers.mode & 0o777);
      }
    } finally {
      closeSync(file);
    }
    renameSync(beside, target);
  } catch (error) {
    remove(beside);
    throw error;
  }
  syncFolder(dirname(target));
}

/**
 * Syncs a folder: only then the new name is on the disk for sure. If a folder can't be opened or synced (Windows, some network file
 * systems, one that may be written and not read), the file system's own order has to do.
 */
function syncFolder(folder: string): void {
  try {
    const opened = openSync(folder, "r");
    try {
      fsyncSync(opened);
    } finally {
      closeSync(opened);
    }
  } catch {}
}

/** The target of a link, since a rename would take the link's place. */
function behindLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Removes a leftover silently: why the file couldn't be written has to be reported, not why this can't be removed. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}

/** Opens or writes the file that a flag names. @throws UsageError if it can't be written. */
export function asFile(flag: string, file: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw new UsageError(`Cannot write ${flag} ${file}: ${messageOf(error)}: name a file in a folder that can be written`);
  }
}
