import { askAgain, type FaultReason, nothingSent } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { FollowedAnswer, UnreachableReason } from "./transport.ts";

/** What became of one call, without an error thrown: `call` throws it, `settle` judges it. */
export type CallResult =
  | { readonly outcome: "answered"; readonly success: boolean; readonly reply: JsonObject; readonly summary: AnswerSummary }
  | {
      readonly outcome: "not-sent";
      /** True when waiting helps, false when the request has to be fixed. */
      readonly passing: boolean;
      readonly retryAfterMs: number | undefined;
      readonly unreachable?: UnreachableReason | undefined;
      readonly summary: AnswerSummary;
    }
  | { readonly outcome: "unknown"; readonly summary: AnswerSummary };

/** What an answer says of itself, beside its data. */
export interface AnswerSummary {
  readonly code: number | undefined;
  readonly message: string | undefined;
  readonly httpStatus: number | undefined;
  readonly reason: FaultReason | undefined;
  /** How the operation stands, where the bridge followed it. */
  readonly followed?: FollowedAnswer | undefined;
}

/** Of an answer that says nothing of itself. */
export const emptySummary: AnswerSummary = { code: undefined, message: undefined, httpStatus: undefined, reason: undefined };

/**
 * What is said of an operation that may have begun and isn't known to have ended. A call that wasn't sent, or a question without an answer, says
 * of itself alone that nothing was sent or changed: of the operation a till would take that for "not paid".
 * @param isQuestion The call didn't send the operation.
 */
export function summaryOfOpen(result: CallResult, isQuestion: boolean): AnswerSummary {
  const speaksOfItself = result.outcome === "not-sent" || (result.outcome === "unknown" && isQuestion);
  return speaksOfItself
    ? summaryOfFailed(result, "it may have been carried out, and the last request about it failed")
    : result.summary;
}

/** What is said of an open operation whose last answer is another operation's, or proves no end though it states one: those words would mislead. */
export function summaryOfUnproven({ summary }: CallResult): AnswerSummary {
  const why = "the last answer is about another operation, or doesn't prove how this one ended";
  return { ...summary, code: undefined, message: `it may have been carried out, and ${why}` };
}

/** The result of a closed document whose copy was to be printed. */
export function summaryOfCopy(result: CallResult): AnswerSummary {
  return result.outcome === "not-sent"
    ? summaryOfFailed(result, "it is closed, and its copy was not asked for")
    : result.summary;
}

function summaryOfFailed({ outcome, summary }: CallResult, state: string): AnswerSummary {
  const said = summary.message ?? summary.reason ?? outcome;
  const advice = [nothingSent, askAgain].find((each) => said.endsWith(`. ${each}`));
  const why = advice === undefined ? said : said.slice(0, -advice.length - 2);
  return { ...summary, message: `${state}: ${why}` };
}
