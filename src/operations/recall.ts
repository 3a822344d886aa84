import { contractOf } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { ContractName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import {
  asUnknown,
  isSameOperation,
  isUnknown,
  type JournalOperation,
  type SentRecord,
  type UnknownOperation,
} from "../journal/record.ts";
import type { FoundRecords } from "../journal/recorder.ts";
import { replay } from "../journal/replay.ts";
import { slotBytes } from "../journal/slot.ts";
import { Copies } from "./copies.ts";
import { factsIn } from "./own-answer.ts";
import { endOfOne, mayHaveBegun, newSending, operationOf, type Sending } from "./sending.ts";
import type { UnderKey } from "./under-key.ts";

/** The journal's records of earlier processes, as this one remembers them. */

/** An operation has two records: its sending and its outcome. */
const recordsOfOne = 2;

/** How many sendings are remembered at most, however large the journal is: one every 5 s all day, 21 MB. */
export const sendingsMax = 16_384;

/** How many sendings are remembered of a journal of so many bytes: no more than its ring has operations. */
export const rememberedOf = (bytes = Number.POSITIVE_INFINITY) =>
  Math.min(Math.floor(bytes / slotBytes / recordsOfOne), sendingsMax);

export interface Recalled {
  readonly copies: Copies;
  /** Operations of unknown outcome; and those among them of which the last process never learnt the outcome. */
  readonly listed: readonly Sending[];
  readonly recent: readonly UnknownOperation[];
  /** Those that a till followed, and that went on when the last process ended. */
  readonly followed: readonly Sending[];
  /** Which records of the last day are missing; undefined if none are. */
  readonly lacks: string | undefined;
  /** Why less than a day is remembered, if the ring has overwritten the rest; undefined otherwise. */
  readonly forgets: string | undefined;
}

/** One of them, by what its records say. @param atMs When it was sent, and `now`, on `nowMs`'s scale. */
export function recalledSending(
  recorded: JournalOperation,
  contract: ContractName | undefined,
  atMs: number,
  now: number,
): Sending {
  const { sequence, sent } = recorded;
  const of = { callId: undefined, place: sequence, order: sequence, atMs, endedMs: now, contract, names: undefined };
  const sending = newSending(sent, { ...of, facts: [] });
  const operation = operationOf(sending);
  const { before = operation?.rules.baseline === undefined ? {} : null } = sent;
  sending.facts = factsIn(operation, { ...recorded, before, sentMs: atMs }, now);
  return sending;
}

/** False if it never left, or was refused before anything was begun. */
export const hasLeft = ({ ending }: JournalOperation) => ending?.outcome !== "not-sent" && ending?.begun !== false;

/** True if a person may say how it ended: no record proves that. What goes on, as far as its answer says, is among them. */
export function mayBeSettled(recorded: JournalOperation, contract: ContractName | undefined): boolean {
  if (isUnknown(recorded)) return true;
  if (recorded.settled !== undefined || recorded.ending === undefined || !hasLeft(recorded)) return false;
  const now = nowMs();
  const isFollowable = contract !== undefined && settlingRulesOf(contract, recorded.sent.route) !== undefined;
  return isFollowable && endOfOne(recalledSending(recorded, contract, now, now)) === undefined;
}

/** Gives the memory the sendings of earlier processes. */
export function recall(found: FoundRecords, memory: UnderKey): Recalled {
  const now = nowMs();
  const { operations, cutOff, missingBefore, missingMs, overwrittenMs, isRound } = replay(found);
  const listed: Sending[] = [];
  const recent: UnknownOperation[] = [];
  const followed: Sending[] = [];
  let ageMs = Number.POSITIVE_INFINITY;
  for (const recorded of operations) {
    const { sequence, sent, ending, lost, settled } = recorded;
    // A later sending is no older, whatever the box's clock was then. A clock that was ahead says nothing.
    const behindMs = Date.now() - sent.timeMs;
    if (behindMs >= 0) ageMs = Math.min(ageMs, behindMs);
    const atMs = now - (behindMs < 0 ? 0 : ageMs);
    const contract = contractOf(sent.service);
    const isRepeated = memory.of(sent).some((each) => isSameOperation(each.sent, sent) && mayHaveBegun(each));
    const sending = recalledSending(recorded, contract, atMs, now);
    if (isRepeated) sending.facts = [{ is: "earlier", atMs }, ...sending.facts];
    if (ending === undefined) sending.cause = "no outcome recorded";
    else if (ending.outcome === "unknown") sending.cause = "reported as unknown";
    if (hasLeft(recorded)) {
      memory.closes(sent, sequence);
      memory.add(sending);
    }
    if (ending !== undefined && isAbort(sent, ending)) memory.stopped(sent, sequence);
    if (sent.followed === true && hasLeft(recorded) && endOfOne(sending) === undefined) followed.push(sending);
    if (sending.cause === undefined || settled !== undefined) continue;
    // An outcome lost before the last start was reported at that start.
    if (ending === undefined && !lost) recent.push(asUnknown(sent, sending.cause));
    listed.push(sending);
  }
  memory.sort();
  const onClock = (timeMs: number) => now + Math.min(0, timeMs - Date.now());
  memory.missing(missingBefore, onClock(missingMs));
  const lacks = missingBefore > 0 && !memory.isWhole ? lacking : undefined;
  memory.forgotten(onClock(overwrittenMs));
  const forgets = overwrittenMs === Number.NEGATIVE_INFINITY ? undefined : isRound ? tooSmall : lostBefore;
  return { copies: new Copies(cutOff), listed, recent, followed, lacks, forgets };
}

/** True if an abort took back what stands under its key: /abort bears the key of the operation that it ends. */
export const isAbort = ({ route, key }: SentRecord, { outcome, status }: Pick<OperationLogEnding, "outcome" | "status">) =>
  route === "/abort" && key !== undefined && outcome === "answered" && status === "success";

const lacking =
  "records of the last day are missing from the journal, as after a disk failure or an older copy of it: for a day a repetition of their operations isn't " +
  "recognised, and answers say X-Posline-Repeat-Guard: off. Check the disk (sudo dmesg | tail)";

/** @param advice What to do about it. */
const forgetting = (than: string, advice: string) =>
  `more operations were sent within a day than ${than}: a repetition of an older one isn't recognised, and answers say ` +
  `X-Posline-Repeat-Guard: off. ${advice}`;

export const tooSmall = forgetting("the journal holds", "Give the journal more room (journal.bytes, 67108864 at most)");

export const tooMany = forgetting(
  `the ${sendingsMax} that posline remembers`,
  "No setting raises that: give some of the terminals to another box",
);

/** Zeros in place of the first records look like the unwritten part of a file that was made larger. */
const lostBefore =
  "more operations were sent within a day than the journal held before it was made larger, or its first records are lost, as after a disk " +
  "failure: for a day a repetition of their operations isn't recognised, and answers say X-Posline-Repeat-Guard: off. If journal.bytes " +
  "was not changed, check the disk (sudo dmesg | tail)";
