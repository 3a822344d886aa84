import { isObject } from "./json-object.ts";

/**
 * The end of an operation that posline followed on the box (`Prefer: wait`): one word, enough for a simple till. `approved`, `closed`,
 * `declined`, `reversed`, `unprinted`: as the contract has it, by the terminal's own answer. `failed`: it is proven that nothing was
 * carried out, and the same call may be sent again. `pending`: it goes on. `unknown`: nothing is proven yet. After the last two the same
 * call is sent again, which only asks.
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

/** True of ends that stay, whatever becomes of the same request sent once more. */
export function isGoodEnd(end: string | undefined): boolean {
  return end === "approved" || end === "closed" || end === "unprinted";
}

export function isOperationEnd(word: unknown): word is OperationEnd {
  return word !== "pending" && word !== "unknown" && operationResults.some((each) => each === word);
}

/** Facts that the answer to a followed call has beside the terminal's bytes. */
export interface Followed {
  readonly result: OperationResult;
  /** The route whose answer is given, if it is not the call's own. */
  readonly answerOf: string | undefined;
  /** How many questions were asked. */
  readonly polls: number;
  /** True if the same call is recognised when it comes again: not without a journal that can be read. */
  readonly isGuarded: boolean;
  /** True if the result is unknown and will stay so: the contract has no question about the operation, so only a person can tell. */
  readonly isLasting?: true | undefined;
  /** The name that only the terminal's answer gives (qr: `trans`), if it is proven: its till needs it to give the payment back. */
  readonly trans?: string | undefined;
}

/** What tells one transaction or document from another, as texts: `{}` where there is none. */
export type Ids = Readonly<Record<string, string>>;

export const isIds = (value: unknown): value is Ids =>
  isObject(value) && Object.values(value).every((text) => typeof text === "string");

/** True if it is known that there is none. */
export const isNothing = (ids: Ids | undefined): boolean => ids !== undefined && Object.keys(ids).length === 0;

/** Fields of a question, as the body of the operation has them. */
export type QuestionFields = Readonly<Record<string, string | number>>;
