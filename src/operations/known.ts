import type { SettlingRules } from "../contract/settling.ts";
import { isGoodEnd, type OperationEnd } from "../core/followed.ts";
import { scalarText } from "../settle/exact-json.ts";
import { freshState, type SettleState } from "../settle/state.ts";
import { endOfOne, isOld, type Sending } from "./sending.ts";

/** Facts about one operation: all its sendings of the same service, route, key and body. */
export interface Known {
  /** The proven end; undefined if nothing is proven. */
  readonly end: OperationEnd | undefined;
  /** True if an answer said that the terminal has the operation. */
  readonly isAccepted: boolean;
  /** Sendings that may have come to something: a failed one is as if it had never been. */
  readonly standing: readonly Sending[];
}

/** @param sendings In their order. */
export function knownOf(sendings: readonly Sending[]): Known {
  const standing = standingOf(sendings);
  const isAccepted = standing.some(({ said, isFound }) => said.begun === true || isFound);
  const ends = standing.map(endOfOne);
  // If there are several sendings, the bad end of one says nothing of the others.
  const only = standing.length === 1 ? ends[0] : undefined;
  const nothingLeft = standing.length === 0 && sendings.length > 0 ? "failed" : undefined;
  return { end: ends.find(isGoodEnd) ?? only ?? nothingLeft, isAccepted, standing };
}

export const standingOf = (sendings: readonly Sending[]) => sendings.filter((each) => endOfOne(each) !== "failed");

/**
 * The operation's state for the settle machine, which only asks: nothing is printed because of it.
 * @param isRepeated True if it was sent several times, and may have been given several names.
 */
export function stateOf(sending: Sending, rules: SettlingRules, isRepeated: boolean): SettleState {
  const { said, isFound, isStopped, sent } = sending;
  const known = sending.state ?? {
    ...startOf(sending, rules),
    phase: "lost" as const,
    doubt: true,
    baseline: rules.baseline !== undefined && sent.fresh !== true ? undefined : "",
    learned: said.learned ?? nameOf(sending, rules),
    learnedProven: said.learned !== undefined && !isRepeated,
  };
  const phase = said.begun === true || isFound ? "accepted" : known.phase;
  return {
    ...known,
    // What came to nothing isn't there: only an answer that says so anew takes that back
    phase: phase === "accepted" && endOfOne(sending) === "failed" ? "lost" : phase,
    unprinted: known.unprinted || said.isUnprinted,
    hasOtherNames: known.hasOtherNames || isRepeated,
    isAborted: isStopped,
    isOld: isOld(sending),
  };
}

/** The operation's state when it goes out. */
export function startOf(sending: Sending, rules: SettlingRules): SettleState {
  return { ...freshState, copied: true, isSentOnce: true, learned: nameOf(sending, rules) };
}

/** The name under which the operation is asked about until an answer gives one. */
function nameOf({ sent, names }: Sending, { learns }: SettlingRules): string | undefined {
  if (learns === undefined) return undefined;
  return scalarText((names ?? sent.ask)?.[learns]) ?? sent.key;
}
