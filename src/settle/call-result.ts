import type { FaultReason } from "../core/fault.ts";
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
