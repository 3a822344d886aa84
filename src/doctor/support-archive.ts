import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { createTar, parseTar } from "nanotar";

/** The archive of `posline support`: a tar.gz of a few texts in memory, and what is read back of it. */

export interface ArchivedFile {
  readonly name: string;
  readonly text: string;
}

/** Bytes of an archive, unpacked: ours has two or three MiB at most, and a file that unpacks to more isn't one of ours. */
const unpackedBytesMax = 64 * 1024 * 1024;

/**
 * Writes an archive that only its owner may read, whole or not at all.
 * @throws the system's error when it can't be written, or is there already.
 */
export function writeArchive(path: string, folder: string, files: readonly ArchivedFile[]): void {
  const entries = files.map(({ name, text }) => ({ name: `${folder}/${name}`, data: Buffer.from(text) }));
  const tar = createTar(entries, { attrs: { mode: "600", uid: 0, gid: 0 } });
  const bytes = gzipSync(tar);
  const fd = openSync(path, "wx", 0o600);
  try {
    writeFileSync(fd, bytes);
  } catch (error) {
    // A broken one would be sent, and be in the way of the next.
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/**
 * The files of an archive; a file that is none is one file, as it is.
 * @throws Error when it is broken, or too large.
 */
export function readArchive(bytes: Buffer): readonly ArchivedFile[] {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return [{ name: "", text: bytes.toString("utf8") }];
  const files = parseTar(gunzipSync(bytes, { maxOutputLength: unpackedBytesMax }));
  return files.map(({ name, text }) => ({ name: name.slice(name.lastIndexOf("/") + 1), text }));
}
