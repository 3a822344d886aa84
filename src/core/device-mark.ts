import { createHash } from "node:crypto";
import type { ContractName } from "./call.ts";

/** Characters that stand for a path: a box has had a handful of devices. */
const markCharacters = 8;

/**
 * What stands for a line's device, and the contract that is spoken over it, beside an operation that was sent over it, in memory as in
 * the journal: a path may be as long as a record. Another device may lead to another terminal, and another contract's question asks
 * about other operations: of their "there is none" nothing follows.
 * @param path As the configuration has it.
 */
export function deviceMark(path: string, contract: ContractName): string {
  return `${contract} ${createHash("sha256").update(path).digest("hex").slice(0, markCharacters)}`;
}

/** What is said then of an answer that isn't a success. */
export const sentElsewhere = "it was sent over another device, or by another contract, than its service has now";

/** What is said of any answer where another service sent the same key to the terminal that is asked. */
export const sentByOthers =
  "another service sent an operation under the same key over the device that it was asked over, and it may be about that one";

/** What is said of a success. */
export const foundElsewhere = "what the terminal there has under its key may be another service's";

/** Whether what was sent by one contract is asked about by another, whose answers are about other operations; false where either isn't known. */
export function isByOtherContract(sent: string | undefined, asked: string | undefined): boolean {
  return isElsewhere(contractIn(sent), contractIn(asked));
}

/** Whether what was sent over one device is asked about over another; false where either isn't known. */
export function isElsewhere(sent: string | undefined, asked: string | undefined): boolean {
  return sent !== undefined && asked !== undefined && sent !== asked;
}

const contractIn = (mark: string | undefined) => mark?.split(" ")[0];
