import { codeOf } from "../core/error-code.ts";

/** The journal's error texts: why it can't be written or read, and how to fix it, by folder. */

/** Something about the journal can't be done. */
export class JournalError extends Error {
  override readonly name = "JournalError";
}

/** Why the journal can't be written. */
export function writeReason(error: unknown, folder: string): string {
  if (error instanceof JournalError) return error.message;
  switch (codeOf(error)) {
    case "ENOENT":
    case "ENOTDIR":
      return `there is no folder ${folder}: make it for posline's user (sudo install -d -o posline -g posline ${folder})`;
    case "EACCES":
    case "EPERM":
      return `no permission in ${folder}: give it to posline's user (sudo chown -R posline:posline ${folder})`;
    case "EROFS":
      return `the file system of ${folder} is read-only: a disk that fails becomes so (sudo dmesg | tail), otherwise mount it for writing`;
    case "ENOSPC":
    case "EDQUOT":
      return `the disk is full: make room (df -h ${folder})`;
    case "EIO":
      return `the disk fails to write (EIO): save its data and replace it (sudo dmesg | tail tells more)`;
    case "EISDIR":
      return `${journalFile(folder)} is a folder: move it away`;
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

/** Why the journal can't be read. */
export function readReason(error: unknown, folder: string): string {
  switch (codeOf(error)) {
    case "ENOENT":
    case "ENOTDIR":
      return `there is none: name the folder where posline keeps it with --folder (posline config shows journal.folder)`;
    case "EACCES":
    case "EPERM":
      return "no permission: read it with sudo, or join the group for good (sudo usermod -aG posline $USER, then log in anew)";
    case "EIO":
      return "the disk fails to read (EIO): save its data and replace it (sudo dmesg | tail tells more)";
    default:
      return writeReason(error, folder);
  }
}

/** Where the journal of a folder is. */
export function journalFile(folder: string): string {
  return `${folder.replace(/\/+$/, "")}/journal`;
}
