import { type SettlingRules, settlingRules } from "../contract/settling.ts";
import { contractNames } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { OutcomeRecord, SentRecord, UnknownOperation } from "../journal/record.ts";
import type { PendingRecord } from "../journal/write-queue.ts";
import type { SettleState } from "../settle/state.ts";

/** A sending of an operation, with the facts about it: what its own answer said, what was answered about it, and its proven end. */
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
  /** Facts from its own answer. */
  said: Said;
  /** True if an answer to a question said that the terminal has it. */
  isFound: boolean;
  /** The proven end, by answers to questions or by the person who looked. */
  settled: OperationEnd | undefined;
  /** True if the operation under its key was aborted since. */
  isStopped: boolean;
  /** True if a till of this process follows it, and sends it again to learn how it ended. */
  isFollowed: boolean;
  /** Why it is listed as unknown; undefined if it isn't. */
  cause: UnknownOperation["cause"] | undefined;
  /** The body's fields that name it in a question, to the digit, if more of them is known than the record has. */
  names: JsonObject | undefined;
  /** All answers about it, as the settle machine has them; undefined if that is no more than the facts above. */
  state: SettleState | undefined;
  /** Records of what was learned of it that may not be on the disk yet. */
  notes: readonly PendingRecord[];
}

/** Facts from an operation's own answer. */
export interface Said {
  /** True: the terminal has it. False: it was refused before anything was begun. undefined: not known. */
  readonly begun: boolean | undefined;
  readonly end: OperationEnd | undefined;
  /** The name by which the contract asks about it (qr: `trans`). */
  readonly learned: string | undefined;
  /** True if a receipt was closed, and not printed. */
  readonly isUnprinted: boolean;
  /** The error that was answered, if the contract has no question by which more could be learned. */
  readonly error: ErrorSaid | undefined;
}

/** An error's code, and the terminal's own words. */
export interface ErrorSaid {
  readonly code?: number | undefined;
  readonly message?: string | undefined;
}

export const nothingSaid: Said = { begun: undefined, end: undefined, learned: undefined, isUnprinted: false, error: undefined };

/** Milliseconds for which an operation is remembered: a shop's day. */
export const dayMs = 24 * 60 * 60 * 1_000;

type Sent = Pick<Sending, "place" | "order" | "atMs" | "endedMs"> &
  Partial<Pick<Sending, "callId" | "said" | "isFound" | "settled" | "names">>;

// Built field by field: a spread of other objects makes V8 use twice the memory, and a full journal is read in twice the time.
export function newSending(sent: SentRecord, of: Sent): Sending {
  return {
    sent,
    callId: of.callId,
    place: of.place,
    order: of.order,
    atMs: of.atMs,
    endedMs: of.endedMs,
    said: of.said ?? nothingSaid,
    isFound: of.isFound ?? false,
    settled: of.settled,
    isStopped: false,
    isFollowed: false,
    cause: undefined,
    names: of.names,
    state: undefined,
    notes: [],
  };
}

/** The proven end of one sending. A failure isn't one any more once the terminal says that it has the operation. */
export function endOfOne({ settled, said, isFound }: Sending): OperationEnd | undefined {
  return settled ?? (isFound && said.end === "failed" ? undefined : said.end);
}

/**
 * True after a day: a terminal may have forgotten the operation, and "there is none" would prove nothing. For a sending of an earlier
 * process the box's clock counts as well; if that was ahead by a day, nobody knows how long ago it was.
 */
export function isOld({ sent, place, atMs }: Sending): boolean {
  return nowMs() - atMs >= dayMs || (typeof place === "number" && Math.abs(Date.now() - sent.timeMs) >= dayMs);
}

/** Facts that the record of an operation's answer has, for the process that finds it in the journal. */
export function saidInRecord(
  { route }: Pick<SentRecord, "route">,
  {
    outcome,
    code,
    begun,
    end,
    learned,
    message,
  }: Pick<OutcomeRecord, "outcome" | "code" | "begun" | "end" | "learned" | "message">,
): Said {
  const error = message === undefined ? undefined : { code, message };
  if (outcome !== "answered") return error === undefined ? nothingSaid : { ...nothingSaid, error };
  const isUnprinted = code !== undefined && rulesOfRoute(route).some(({ print }) => print?.code === code);
  return { begun, end, learned, isUnprinted, error };
}

/** The rules of all contracts that have the route: a record doesn't say which contract its service has. */
const rulesOfRoute = (route: string): readonly SettlingRules[] =>
  contractNames.flatMap((name) => settlingRules[name].filter((each) => each.route === route));

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
