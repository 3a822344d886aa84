import { createHash } from "node:crypto";

/** Characters of a mark: a box has had a handful of devices. */
const markCharacters = 8;

/**
 * What stands for a line's device beside an operation that was sent over it, in memory as in the journal: a path may be as long as a
 * record. Another device may lead to another terminal, of whose "there is none" nothing follows.
 * @param path As the configuration has it.
 */
export function deviceMark(path: string): string {
  return createHash("sha256").update(path).digest("hex").slice(0, markCharacters);
}

/** What is said then of an answer that isn't a success. */
export const sentElsewhere = "it was sent over another device than its line has now";

/** Whether what was sent over one device is asked about over another; false where either isn't known. */
export function isElsewhere(sent: string | undefined, asked: string | undefined): boolean {
  return sent !== undefined && asked !== undefined && sent !== asked;
}
