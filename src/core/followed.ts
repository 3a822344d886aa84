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

/** Fields of a question, as they stand in the body of the operation. */
export type QuestionFields = Readonly<Record<string, string | number>>;
