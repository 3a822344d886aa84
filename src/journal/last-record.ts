import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { nowMs } from "../core/clock.ts";

/**
 * The number of the journal's newest record, kept outside its folder: an older copy of the journal that is put back is whole in itself, and
 * only this tells that it is older. Written after the first record, at the end, and every ten minutes at most between.
 */

const everyMs = 600_000;

export class LastRecord {
  /** As it was at the start; 0 if it isn't known. */
  readonly atStart: number;
  readonly #file: string | undefined;
  #sequence = 0;
  #dueMs = Number.NEGATIVE_INFINITY;

  /** @param file undefined if none is kept. */
  constructor(file: string | undefined) {
    this.#file = file;
    this.atStart = file === undefined ? 0 : numberIn(file);
  }

  /** Notes that a record is on the disk; nothing waits for that to be written. */
  note(sequence: number): void {
    this.#sequence = sequence;
    if (nowMs() >= this.#dueMs) void this.write();
  }

  /** Never rejects: without it an older copy isn't recognised, and all else goes on. */
  async write(): Promise<void> {
    const file = this.#file;
    if (file === undefined || this.#sequence === 0) return;
    this.#dueMs = nowMs() + everyMs;
    const write = writeFile(`${file}.new`, `${this.#sequence}\n`).then(() => rename(`${file}.new`, file));
    await write.catch(() => {});
  }
}

/** What is no number was written by a person who restored the whole box: any record may be missing. */
function numberIn(file: string): number {
  try {
    const number = Number(readFileSync(file, "utf8"));
    return Number.isNaN(number) ? Number.POSITIVE_INFINITY : number;
  } catch {
    return 0;
  }
}
