import { contracts } from "../contract/contracts.ts";
import { settlingRules } from "../contract/settling.ts";
import { contractNames } from "../core/call.ts";
import { isGoodEnd, type OperationEnd, type PastOperation } from "../core/followed.ts";
import type { OutcomeRecord, SentRecord } from "./record.ts";
import type { PendingRecord } from "./write-queue.ts";

/**
 * One sending of an operation with all that was said of it, and what several of them say together. What is known is always read from
 * the sendings in their order: so it is the same whenever each of them was learned of, and after a restart.
 */

/** Where an operation's `sent` stands: to be written by this process, or written by an earlier one under this number. */
export type PlaceInJournal = PendingRecord | number;

export interface Sending extends Pick<PastOperation, "sentMs" | "digest" | "ask" | "device" | "isFresh"> {
  readonly route: string;
  /** undefined where its record has none that can be read. */
  readonly amount: number | undefined;
  readonly place: PlaceInJournal;
  /** Greater than of all that was sent before: what earlier processes sent has its record's number, whatever the box's clock was. */
  readonly order: number;
  /** When it was sent, on `nowMs`'s scale, as far as the box's clock can be believed for what an earlier process sent. */
  readonly atMs: number;
  /** Its till has it followed by this process, and sends it again to learn how it ended. */
  isFollowed: boolean;
  /** When it came to an end, or was found, on `nowMs`'s scale; undefined while it is in flight. */
  endedMs: number | undefined;
  /** Records of what was learned of it, as far as they may not be on the disk yet. */
  notes: readonly PendingRecord[];
  /** What its own answer said. */
  said: SaidByAnswer;
  /** An answer to a question said that the terminal has it. */
  isFound: boolean;
  /** How it is proven to have ended, by answers to questions or by the person who looked. */
  settled: OperationEnd | undefined;
  /** What stands under its key was aborted since. */
  isStopped: boolean;
}

/** What is known of an operation, by all its sendings. */
export interface Known
  extends Pick<PastOperation, "end" | "isAccepted" | "isStopped" | "isUnprinted" | "learned" | "hasOtherNames"> {
  /** How often it was sent. */
  readonly times: number;
  /** An earlier sending ended well. */
  readonly hadGoodEnd: boolean;
}

/** What an answer said of an operation. */
export interface SaidByAnswer {
  /** True: the terminal has it. False: it was refused before anything was begun. */
  readonly begun: boolean | undefined;
  /** The name that it gave. */
  readonly learned: string | undefined;
  /**
   * Whose that name is: the answer gave it, or gave none, so that it is the till's own; `none` after an error without one, which shows no
   * code; `unknown` where the answer is lost.
   */
  readonly naming: "given" | "own" | "none" | "unknown";
  readonly end: OperationEnd | undefined;
  /** It was closed, and not printed. */
  readonly isUnprinted: boolean;
}

export const nothingSaid: SaidByAnswer = {
  begun: undefined,
  learned: undefined,
  naming: "unknown",
  end: undefined,
  isUnprinted: false,
};

const nothing: Known = {
  end: undefined,
  isAccepted: false,
  isStopped: false,
  isUnprinted: false,
  learned: undefined,
  hasOtherNames: false,
  times: 0,
  hadGoodEnd: false,
};

type Ending = Pick<OutcomeRecord, "outcome" | "status" | "code" | "begun" | "learned" | "end">;

type NamedSending = Pick<SentRecord, "route" | "key" | "ask">;

/** Reads it from how a sending ended. */
export function saidBy(sent: NamedSending, { outcome, status, code, begun, learned, end }: Ending): SaidByAnswer {
  if (outcome !== "answered") return nothingSaid;
  const naming = learned !== undefined ? namingOf(sent, learned) : status === "error" ? "none" : "unknown";
  const isUnprinted = code !== undefined && rulesOf(sent.route).some(({ recovery }) => recovery.print?.code === code);
  return { begun: begun ?? undefined, learned, naming, end, isUnprinted };
}

function namingOf({ route, key, ask }: NamedSending, learned: string): "given" | "own" {
  const learns = rulesOf(route).find(({ recovery }) => recovery.learns !== undefined)?.recovery.learns;
  const own = (learns === undefined ? undefined : ask?.[learns]) ?? key;
  return learned === String(own) ? "own" : "given";
}

/** Reads it from a record, which an earlier version may have written: that one has no `begun`, so status and code say it. */
export function saidInRecord(sent: NamedSending, ending: Ending): SaidByAnswer {
  const { route } = sent;
  const said = saidBy(sent, ending);
  if (ending.outcome !== "answered" || ending.begun !== undefined || said.end !== undefined) return said;
  const { status, code = 0 } = ending;
  const isPending = rulesOf(route).some(({ contract }) => contract.finals.pendingCodes.includes(code));
  return status === "success" || isPending || said.isUnprinted ? { ...said, begun: true } : said;
}

/** Whether the service's "there is none" proves of an operation that it had that nothing is left of it. */
export const mayBeRolledBack = (route: string): boolean =>
  rulesOf(route).some(({ recovery }) => recovery.absentWhenAccepted === "refused");

/** Whether the service may take an operation back that it had, and find an older one under its key then. */
export const mayBeForgotten = (route: string, contract?: string): boolean =>
  rulesOf(route).some(
    (each) =>
      (contract === undefined || each.contract.service === contract) &&
      (each.recovery.absentWhenAccepted === "refused" || each.recovery.absentWhenAborted === "refused"),
  );

/** Whether what stands under its key is asked before it is sent: then what the terminal says later is compared with that. */
export const isAskedBefore = (route: string): boolean => rulesOf(route).some(({ recovery }) => recovery.baseline);

/** The rules of all contracts that have the route: a record doesn't say which contract its service has. */
const rulesOf = (route: string) =>
  contractNames.flatMap((name) =>
    settlingRules[name].filter((each) => each.route === route).map((recovery) => ({ contract: contracts[name], recovery })),
  );

/**
 * What all sendings of one route under one key say of the last one.
 *
 * The same request once more is the same operation, so what an answer said of the first holds; unless it is proven that nothing was
 * carried out, for what is sent then begins anew. A good end stays too, where the key is the operation's own.
 */
export function knownOf(sendings: readonly Sending[]): Known {
  const last = sendings.at(-1);
  if (last === undefined) return nothing;
  const hasOwnKey = rulesOf(last.route).every(({ recovery }) => recovery.ownKey);
  // One with another body may have been given another name, and be alive under that.
  const hasOthers = sendings.some(({ digest, said, settled }) => digest !== last.digest && (settled ?? said.end) !== "failed");
  let known = nothing;
  // Of the first one that may have been given a name; its `learned` is undefined where that isn't known.
  let firstNamed: SaidByAnswer | undefined;
  let wasRefused = false;
  let hasOtherNames = hasOthers;
  for (const { digest, said, isFound, isStopped, settled } of sendings) {
    if (digest !== last.digest) continue;
    if (known.end === "failed") {
      known = nothing;
      firstNamed = undefined;
      wasRefused = false;
      hasOtherNames = hasOthers;
    }
    if (said.naming === "none") wasRefused = true;
    else {
      // What a refusal had begun all the same, its repetition may leave unnamed.
      const isFirst = firstNamed === undefined;
      const isOther = said.learned === undefined || said.learned !== firstNamed?.learned;
      hasOtherNames ||= isFirst ? wasRefused && said.naming === "own" : isOther;
      firstNamed ??= said;
    }
    const hadGoodEnd = hasOwnKey && (known.hadGoodEnd || isGoodEnd(known.end));
    // What was aborted before this one was sent may be gone.
    const wasAccepted = known.isAccepted && !known.isStopped;
    // What the terminal answered as begun it took for a new one.
    const before = hasOwnKey && said.begun !== true && isGoodEnd(known.end) ? known.end : undefined;
    const own = settled ?? said.end;
    // A bad end of this one alone undoes neither a good end nor that the terminal has the one before.
    const isUndone = (own === "failed" && wasAccepted) || ((own === "failed" || own === "declined") && hadGoodEnd);
    known = {
      end: isUndone ? before : (own ?? before),
      isAccepted: wasAccepted || said.begun === true || isFound,
      isStopped,
      isUnprinted: known.isUnprinted || said.isUnprinted,
      learned: said.learned ?? known.learned,
      hasOtherNames,
      times: known.times + 1,
      hadGoodEnd,
    };
  }
  return known;
}
