import { contracts, routeOf } from "../contract/contracts.ts";
import { type ContractName, contractNames } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { isGoodEnd, type OperationEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { SentRecord, UnknownOperation } from "../journal/record.ts";
import type { PendingRecord } from "../journal/write-queue.ts";
import type { Fact } from "../settle/fact.ts";
import { type JudgedOperation, judge, judgedOperation, type Known, provenEnd, withFact } from "../settle/judge.ts";

/** A sending of an operation, with the facts about it: its own answer, what was answered about it, and its recorded end. */
export interface Sending {
  readonly sent: SentRecord;
  /** The id that no other call has; undefined if an earlier process sent it. */
  readonly callId: string | undefined;
  /**
   * The place of its record: to be written by this process, or the number that an earlier one wrote it under; undefined if there is none.
   */
  place: PendingRecord | number | undefined;
  /** Greater than that of all earlier sendings. A sending of an earlier process has its record's number, whatever the box's clock was. */
  readonly order: number;
  /** When it was sent, on `nowMs`'s scale. If an earlier process sent it, as far as the box's clock can be believed. */
  readonly atMs: number;
  /** When it came to an end, or was found in the journal, on `nowMs`'s scale; undefined while it is in flight. */
  endedMs: number | undefined;
  /** By which it is judged. If its service has a name of its own and an earlier process sent it, undefined until it is asked about. */
  contract: ContractName | undefined;
  /** In their order, from its sending on; their times are on `nowMs`'s scale. What they prove together, the judge says. */
  facts: readonly Fact[];
  /** That, once somebody has asked. */
  known: Known | undefined;
  /** True if a till of this process follows it, and sends it again to learn how it ended. */
  isFollowed: boolean;
  /** Why it is listed as unknown; undefined if it isn't. */
  cause: UnknownOperation["cause"] | undefined;
  /** The body's fields that name it in a question, to the digit, if more of them is known than the record has. */
  names: JsonObject | undefined;
  /** Records of what was learned of it that may not be on the disk yet. */
  notes: readonly PendingRecord[];
}

/** Milliseconds for which an operation is remembered: a shop's day. */
export const dayMs = 24 * 60 * 60 * 1_000;

type Sent = Pick<Sending, "callId" | "place" | "order" | "atMs" | "endedMs" | "contract" | "facts" | "names">;

// Built field by field: a spread of other objects makes V8 use twice the memory, and a full journal is read in twice the time.
export function newSending(sent: SentRecord, of: Sent): Sending {
  return {
    sent,
    callId: of.callId,
    place: of.place,
    order: of.order,
    atMs: of.atMs,
    endedMs: of.endedMs,
    contract: of.contract,
    facts: of.facts,
    known: undefined,
    isFollowed: false,
    cause: undefined,
    names: of.names,
    notes: [],
  };
}

/** @param operation By which it is judged, if an answer may say nothing new. */
export function addFact(sending: Sending, fact: Fact, operation?: JudgedOperation): void {
  sending.facts = operation === undefined ? [...sending.facts, fact] : withFact(operation, sending.facts, fact);
  sending.known = undefined;
}

/** The contract of a service that isn't known any more: what is in the journal means the same by each that has the route. */
const anyContract = (path: string) => contractNames.find((name) => routeOf(contracts[name], path) !== undefined);

/** The operation as the bridge follows it; undefined if its contract has no end to follow. */
export function operationOf({ sent, names, contract = anyContract(sent.route) }: Sending): JudgedOperation | undefined {
  if (contract === undefined) return undefined;
  const keyField = routeOf(contracts[contract], sent.route)?.key;
  return judgedOperation(contracts[contract], sent.route, "bridge", (name) => fieldOf({ sent, names }, name, keyField));
}

/** A field of the question, as the operation's body had it. */
export function fieldOf({ sent, names }: Pick<Sending, "sent" | "names">, name: string, keyField: string | undefined): unknown {
  return (names ?? sent.ask)?.[name] ?? (name === keyField ? sent.key : undefined);
}

/** All that is known of one sending; undefined if its contract has no end to follow. */
export function knownOfOne(sending: Sending, operation = operationOf(sending)): Known | undefined {
  return operation && judge(operation, sending.facts);
}

/**
 * True if a sending may have come to something, or may yet: also one that failed by "there is none", so that what refuses the next one doesn't
 * end it. False if its own answer says that nothing was begun.
 */
export function mayHaveBegun(sending: Sending): boolean {
  const operation = operationOf(sending);
  const at = sending.facts.findIndex(({ is }) => is === "answered");
  if (operation === undefined || at === -1) return true;
  const { end } = judge(operation, sending.facts.slice(0, at + 1));
  return end === undefined || isGoodEnd(end);
}

/** The proven end of one sending. */
export function endOfOne(sending: Sending): OperationEnd | undefined {
  const last = sending.facts.at(-1);
  // What is no operation to follow a person may have settled nonetheless
  if (last?.is === "ended") return last.end;
  if (sending.facts.length < 2) return undefined;
  sending.known ??= knownOfOne(sending);
  return sending.known && provenEnd(sending.known);
}

/** True if its end is what a person recorded. */
export function isPersonsWord({ facts }: Sending): boolean {
  const last = facts.at(-1);
  return last?.is === "ended" && last.by === "operator";
}

/** What all sendings of one operation, of the same service, route, key and body, say together. */
export interface Together {
  /** The proven end; undefined if nothing is proven. */
  readonly end: OperationEnd | undefined;
  /** True if an answer said that the terminal has the operation. */
  readonly isAccepted: boolean;
  /** Sendings that may have come to something: a failed one is as if it had never been. */
  readonly standing: readonly Sending[];
}

/** @param sendings In their order. */
export function togetherOf(sendings: readonly Sending[]): Together {
  const standing = unfailed(sendings);
  const isAccepted = standing.some((each) => (each.known ?? knownOfOne(each))?.isAccepted === true);
  const ends = standing.map(endOfOne);
  // If there are several sendings, the bad end of one says nothing of the others.
  const only = standing.length === 1 ? ends[0] : undefined;
  const nothingLeft = standing.length === 0 && sendings.length > 0 ? "failed" : undefined;
  return { end: ends.find(isGoodEnd) ?? only ?? nothingLeft, isAccepted, standing };
}

/** Sendings that aren't proven to have failed. */
export const unfailed = (sendings: readonly Sending[]) => sendings.filter((each) => endOfOne(each) !== "failed");

/**
 * True after a day: a terminal may have forgotten the operation, and "there is none" would prove nothing. For a sending of an earlier
 * process the box's clock counts as well; if that was ahead by a day, nobody knows how long ago it was.
 */
export function isOld({ sent, place, atMs }: Sending): boolean {
  return nowMs() - atMs >= dayMs || (typeof place === "number" && Math.abs(Date.now() - sent.timeMs) >= dayMs);
}

/** True if the next process will know of the sending: only a journal that can be written tells it. */
export function isRecorded(sending: Sending | undefined): boolean {
  const { place, notes = [] } = sending ?? {};
  return (typeof place === "number" || place?.isWritten === true) && notes.every(({ isWritten }) => isWritten);
}

/** Waits until all known of the sending is on the disk, or that isn't possible in time. Never fails. */
export async function recorded({ notes }: Sending): Promise<void> {
  await Promise.all(notes.map((note) => note.recorded));
}

/**
 * Keeps a record of what was learned of a sending while it is being written. Written ones are dropped, since a sending is kept for a day.
 */
export function noteOn(sending: Sending, record: PendingRecord): void {
  sending.notes = [...sending.notes, record];
  void record.recorded.then(() => {
    sending.notes = sending.notes.filter(({ isWritten }) => !isWritten);
  });
}
