import { isGoodEnd, type OperationEnd } from "../core/followed.ts";
import { endOfOne, knownOfOne, type Sending } from "./sending.ts";

/** What all sendings of one operation, of the same service, route, key and body, say together. */
export interface Together {
  /** The proven end; undefined if nothing is proven. */
  readonly end: OperationEnd | undefined;
  /** True if an answer said that the terminal has the operation. */
  readonly isAccepted: boolean;
  /** Sendings that may have come to something: a failed one is as if it had never been. */
  readonly standing: readonly Sending[];
}

/** @param sendings In their order. */
export function knownOf(sendings: readonly Sending[]): Together {
  const standing = standingOf(sendings);
  const isAccepted = standing.some((each) => (each.known ?? knownOfOne(each))?.isAccepted === true);
  const ends = standing.map(endOfOne);
  // If there are several sendings, the bad end of one says nothing of the others.
  const only = standing.length === 1 ? ends[0] : undefined;
  const nothingLeft = standing.length === 0 && sendings.length > 0 ? "failed" : undefined;
  return { end: ends.find(isGoodEnd) ?? only ?? nothingLeft, isAccepted, standing };
}

export const standingOf = (sendings: readonly Sending[]) => sendings.filter((each) => endOfOne(each) !== "failed");
