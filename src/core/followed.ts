/**
 * How an operation ended that posline followed to its end on the box (`Prefer: wait`): one word, which is all that a simple till
 * reads. `approved`, `closed`, `declined`, `reversed`, `unprinted`: as the contract has it, by the terminal's own answer. `failed`:
 * it is proven that nothing was carried out, and the same call may be sent again. `pending`: it goes on. `unknown`: nothing is
 * proven yet. After the last two the same call is sent again, which only asks.
 */
export const operationResults = [
  "approved",
  "closed",
  "declined",
  "failed",
  "reversed",
  "unprinted",
  "pending",
  "unknown",
] as const;

export type OperationResult = (typeof operationResults)[number];

/** The results that are proven, and stay. */
export type OperationEnd = Exclude<OperationResult, "pending" | "unknown">;

/** Ends that stay, whatever becomes of the same request sent once more. */
export function isGoodEnd(end: OperationResult | "not-sent" | undefined): boolean {
  return end === "approved" || end === "closed" || end === "unprinted";
}

export function isOperationEnd(word: unknown): word is OperationEnd {
  return word !== "pending" && word !== "unknown" && operationResults.some((each) => each === word);
}

/** What the answer to a followed call says beside the terminal's bytes. */
export interface Followed {
  readonly result: OperationResult;
  /** The route whose answer is given, where it is not the call's own. */
  readonly answerOf: string | undefined;
  /** How many questions were asked. */
  readonly polls: number;
  /** Whether the same call is recognised when it comes again: not without a journal that can be read. */
  readonly isGuarded: boolean;
  /** The name that only the terminal's answer gives (qr: `trans`), where it is proven: its till needs it to give the payment back. */
  readonly trans?: string | undefined;
}

/** An operation that was sent before, as far as the journal has it. */
export interface PastOperation {
  /** When it was sent, as milliseconds since 1970 by the box's clock. */
  readonly sentMs: number;
  /** Of its body: another digest is another operation under the same key. */
  readonly digest: string;
  /** How it is proven to have ended; undefined where nothing is proven. */
  readonly end: OperationEnd | undefined;
  /** An answer said that the terminal has it: that it knows of none later proves nothing. */
  readonly isAccepted: boolean;
  /** It was aborted since. */
  readonly isStopped: boolean;
  /** Its answer is awaited. */
  readonly isInFlight: boolean;
  /** Its record is on the disk: the process after this one will know of it. */
  readonly isRecorded: boolean;
  /** It was closed, and its printing failed. */
  readonly isUnprinted: boolean;
  /** The name by which alone the contract asks about it, which the answer to its sending gave (qr: `trans`). */
  readonly learned: string | undefined;
  /**
   * It was sent several times: an earlier one ended well, or the last one, less than a minute ago, may be carried out yet. So a bad end
   * that is found isn't the operation's.
   */
  readonly mayEndWell: boolean;
  /** It was sent several times, and may have been given another name as well. */
  readonly hasOtherNames: boolean;
  /** What the contract's question names it by, beside a key that is a string; undefined where it can't be asked by this alone. */
  readonly ask: QuestionFields | undefined;
  /** The mark of the device that it was sent over, where it is known. */
  readonly device?: string | undefined;
  /** Nothing was known under its key when it was sent, and nothing else was sent under it: what is known there is its own. */
  readonly isFresh: boolean;
  /** Nothing else was sent under its key since, nor may be carried out after it: an answer about the key is about this operation. */
  readonly isLast: boolean;
  /**
   * A batch or shift was closed since, or records since are missing: the terminal may have it no more, or have said that it has it. That it
   * knows of none proves nothing.
   */
  readonly mayBeCleared: boolean;
}

/** An operation of another service, whose terminal this one has by now. */
export interface OthersOperation extends Pick<PastOperation, "sentMs"> {
  readonly service: string;
  /** In the order of all that is sent. */
  readonly order: number;
}

/** Fields of a question, as they stand in the body of the operation. */
export type QuestionFields = Readonly<Record<string, string | number>>;

/**
 * The journal, as the following of operations sees it. Several operations of a route may stand under one key, as what is given back of a
 * payment in parts: `amount` names one of them then.
 */
export interface OperationHistory {
  /** False while it can't be read, and for a day after records that are missing from it: what isn't found may have been sent. */
  readonly isWhole: boolean;
  /** The last operation of this service and route under this key; undefined where there is none. */
  find(service: string, route: string, key: string, amount?: number): PastOperation | undefined;
  /** The order of what this process sent last under this key, on any route; 0 where it sent nothing, or what it sent is proven undone. */
  lastOrder(service: string, key: string): number;
  /**
   * Whether another operation under this key, of another route, has no known end: what is found under the key may be that one's.
   * `recent`: less than a minute after its sending, or in flight, so that it may be carried out yet.
   */
  othersOpen(service: string, route: string, key: string): "recent" | "old" | undefined;
  /** Whether the terminal is known to have had an operation under this key: that it knows of none now proves nothing of another one. */
  hadAny(service: string, key: string): boolean;
  /**
   * Whether another service may have sent something by the contract that is spoken over this device, so that its terminal may have an
   * operation of that service under the same key: tills number their operations each for itself.
   */
  mayHaveOthers(service: string, device: string): boolean;
  /** What another service sent last under this key over this device, unless it is proven that nothing was carried out. */
  findOthers(service: string, key: string, device: string): OthersOperation | undefined;
  /** The last operation of this service and route under this key is followed: its till sends it again to learn how it ended. */
  followed(service: string, route: string, key: string, amount?: number): void;
  /**
   * The answer to a question said that the terminal has the last operation of this service and route under this key.
   * @param order As `lastOrder` was: nothing is noted where more was sent since.
   */
  accepted(service: string, route: string, key: string, order: number): void;
  /**
   * The last operation of this service and route under this key is proven to have ended: that is recorded, unless another end was before
   * ("failed" gives way to any other), and it is no longer listed as unknown. Never fails.
   * @param order As `lastOrder` was: nothing is recorded where more was sent since.
   */
  settled(service: string, route: string, key: string, end: OperationEnd, order: number): void;
  /**
   * Waits until what is known of the last operation of this service and route under this key is on the disk, so that a word that is told of it
   * outlives a power cut; or until that isn't possible in time, and `isRecorded` says so. Never fails.
   */
  recorded(service: string, route: string, key: string, amount?: number): Promise<void>;
}
