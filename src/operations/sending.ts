import { type SettlingRules, settlingRules } from "../contract/settling.ts";
import { contractNames } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { OutcomeRecord, SentRecord, UnknownOperation } from "../journal/record.ts";
import type { PendingRecord } from "../journal/write-queue.ts";
import type { SettleState } from "../settle/state.ts";

/** One sending of an operation, with the facts about it: what its own answer said, what was answered about it, how it is proven to have ended. */
export interface Sending {
  readonly sent: SentRecord;
  /** Where its record stands: to be written by this process, or written by an earlier one under this number; undefined where there is none. */
  place: PendingRecord | number | undefined;
  /** Greater than of all that was sent before: what earlier processes sent has its record's number, whatever the box's clock was. */
  readonly order: number;
  /** When it was sent, on `nowMs`'s scale, as far as the box's clock can be believed for what an earlier process sent. */
  readonly atMs: number;
  /** When it came to an end, or was found in the journal, on `nowMs`'s scale; undefined while it is in flight. */
  endedMs: number | undefined;
  /** What its own answer said. */
  said: Said;
  /** An answer to a question said that the terminal has it. */
  isFound: boolean;
  /** How it is proven to have ended, by answers to questions or by the person who looked. */
  settled: OperationEnd | undefined;
  /** What stands under its key was aborted since. */
  isStopped: boolean;
  /** Its till has it followed by this process, and sends it again to learn how it ended. */
  isFollowed: boolean;
  /** Why it is listed as unknown; undefined where it isn't. */
  cause: UnknownOperation["cause"] | undefined;
  /** The fields of its body that name it in a question, to the digit, where more of them is known than its record has. */
  names: JsonObject | undefined;
  /** All that was answered about it, as the settle machine has it; undefined where that is no more than the facts above. */
  state: SettleState | undefined;
  /** Records of what was learned of it, as far as they may not be on the disk yet. */
  notes: readonly PendingRecord[];
}

/** What an operation's own answer said of it. */
export interface Said {
  /** True: the terminal has it. False: it was refused before anything was begun. */
  readonly begun: boolean | undefined;
  readonly end: OperationEnd | undefined;
  /** The name by which the contract asks about it (qr: `trans`). */
  readonly learned: string | undefined;
  /** It was closed, and not printed. */
  readonly isUnprinted: boolean;
}

export const nothingSaid: Said = { begun: undefined, end: undefined, learned: undefined, isUnprinted: false };

/** For how long an operation is remembered, in milliseconds: a shop's day. */
export const dayMs = 24 * 60 * 60 * 1_000;

type Sent = Pick<Sending, "place" | "order" | "atMs" | "endedMs"> &
  Partial<Pick<Sending, "said" | "isFound" | "settled" | "names">>;

// Field by field: put together of others V8 makes it twice as large, and a full journal is read in twice the time.
export function newSending(sent: SentRecord, of: Sent): Sending {
  return {
    sent,
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

/** How one sending is proven to have ended. That it failed is no end any more once the terminal says that it has it. */
export function endOfOne({ settled, said, isFound }: Sending): OperationEnd | undefined {
  return settled ?? (isFound && said.end === "failed" ? undefined : said.end);
}

/**
 * After a day a terminal may have forgotten it, and "there is none" would prove nothing. The box's clock counts as well, for what an earlier
 * process sent; where that was ahead by a day, nobody knows how long ago it was.
 */
export function isOld({ sent, place, atMs }: Sending): boolean {
  return nowMs() - atMs >= dayMs || (typeof place === "number" && Math.abs(Date.now() - sent.timeMs) >= dayMs);
}

/** What the record of an operation's answer says, for the process that finds the record in the journal. */
export function saidInRecord(
  { route }: Pick<SentRecord, "route">,
  { outcome, code, begun, end, learned }: Pick<OutcomeRecord, "outcome" | "code" | "begun" | "end" | "learned">,
): Said {
  if (outcome !== "answered") return nothingSaid;
  const isUnprinted = code !== undefined && rulesOfRoute(route).some(({ print }) => print?.code === code);
  return { begun, end, learned, isUnprinted };
}

/** The rules of all contracts that have the route: a record doesn't say which contract its service has. */
const rulesOfRoute = (route: string): readonly SettlingRules[] =>
  contractNames.flatMap((name) => settlingRules[name].filter((each) => each.route === route));

/** Whether the process after this one will know of it: not without a journal that can be written. */
export function isRecorded(sending: Sending | undefined): boolean {
  const { place, notes = [] } = sending ?? {};
  return (typeof place === "number" || place?.isWritten === true) && notes.every(({ isWritten }) => isWritten);
}

/** Waits until what is known of it is on the disk, or that isn't possible in time. Never fails. */
export async function recorded({ notes }: Sending): Promise<void> {
  await Promise.all(notes.map((note) => note.recorded));
}
