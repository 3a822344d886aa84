import { realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Replaces a file by a new one that is on the disk before it takes the old one's place: at any moment, also after a power cut,
 * there is one whole file, and a part never takes the place of a whole. Where a link leads is replaced, and the link stays. Only
 * its owner may read the new file.
 * @throws the system's error when it can't be written; the file is as it was then, and nothing is left beside it.
 */
export function replaceFile(path: string, text: string): void {
  const target = behindLink(path);
  const beside = `${target}.${process.pid}.new`;
  try {
    // Unlike the package for this, it writes until all is written or says why not.
    writeFileSync(beside, text, { flush: true, mode: 0o600 });
    renameSync(beside, target);
  } catch (error) {
    remove(beside);
    throw error;
  }
}

/** Where a link leads, since a rename would take the link's place. */
function behindLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Why the file couldn't be written is what has to be told, not why a leftover can't be removed. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}
