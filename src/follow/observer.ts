import type { Contract } from "../contract/contract.ts";
import type { Call, Handler } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { Doubts } from "./doubts.ts";

/** How an observed handler's calls go. */
export interface ObservedWay {
  readonly contract: Contract;
  /** The mark of its line's device, where it is known. */
  readonly device?: string | undefined;
}

/**
 * Sees the answers to the contract's questions, no matter who asks them, for the operations whose outcome the journal doesn't know. Other
 * calls pass as they are, and where nothing is unknown nothing is read.
 * @param error Something failed that should not: a bug, which must not cost the caller its answer.
 */
export function observed(
  handler: Handler,
  { contract, device }: ObservedWay,
  doubts: Pick<Doubts, "answered">,
  error: (error: unknown) => void,
): Handler {
  const questions = new Set(contract.routes.flatMap(({ polling }) => (polling === undefined ? [] : [polling.route])));
  return (call: Call) => {
    if (!questions.has(call.route)) return handler(call);
    const askedMs = nowMs();
    return handler(call).then((reply) => {
      try {
        doubts.answered(call, reply, askedMs, device);
      } catch (bug) {
        error(bug);
      }
      return reply;
    });
  };
}
