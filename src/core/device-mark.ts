import { createHash } from "node:crypto";
import type { ContractName } from "./call.ts";

/** Characters that stand for a path: a box has had a handful of devices. */
const markCharacters = 8;

/**
 * The mark of a line's device, and of the contract that is spoken over it, beside an operation that was sent over it, in memory as in the
 * journal: a path may be as long as a record. Another device may lead to another terminal, and another contract's question asks about other
 * operations: their "there is none" proves nothing.
 * @param path As the configuration has it.
 */
export function deviceMark(path: string, contract: ContractName): string {
  return `${contract} ${createHash("sha256").update(path).digest("hex").slice(0, markCharacters)}`;
}

/** True if an operation sent over one device is asked about over another; false if either isn't known. */
export function isElsewhere(sent: string | undefined, asked: string | undefined): boolean {
  return sent !== undefined && asked !== undefined && sent !== asked;
}
