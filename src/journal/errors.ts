import { codeOf, messageOf } from "../core/error-code.ts";

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
      return `there is no folder ${folder}: create it for posline's user (sudo install -d -o posline -g posline ${folder})`;
    case "EACCES":
    case "EPERM":
      return `no permission in ${folder}: give it to posline's user (sudo chown -R posline:posline ${folder})`;
    case "EROFS":
      return `the file system of ${folder} is read-only, as it becomes when a disk fails (check with sudo dmesg | tail): otherwise mount it for writing`;
    case "ENOSPC":
    case "EDQUOT":
      return `the disk is full: free some space (df -h ${folder})`;
    case "EIO":
      return `write error of the disk (EIO): save its data and replace it (details: sudo dmesg | tail)`;
    case "EISDIR":
      return `${journalFile(folder)} is a folder: move it away`;
    default:
      return messageOf(error);
  }
}

/** Why the journal can't be read. */
export function readReason(error: unknown, folder: string): string {
  switch (codeOf(error)) {
    case "ENOENT":
    case "ENOTDIR":
      return `there is no journal: name its folder with --folder (posline config shows journal.folder)`;
    case "EACCES":
    case "EPERM":
      return "no permission: use sudo, or join the group posline (sudo usermod -aG posline $USER, then log in again)";
    case "EIO":
      return "read error of the disk (EIO): save its data and replace it (details: sudo dmesg | tail)";
    default:
      return writeReason(error, folder);
  }
}

/** Where the journal of a folder is. */
export function journalFile(folder: string): string {
  return `${folder.replace(/\/+$/, "")}/journal`;
}
