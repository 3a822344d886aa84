import type { Route } from "../contract/contract.ts";
import { adviceWhenUnknown, contracts } from "../contract/contracts.ts";
import type { Call } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import type { SentRecord } from "../journal/record.ts";

/**
 * Requests that were on the line when the process before ended: for a minute a call that isn't followed doesn't send them once more.
 * Browsers, libcurl and Java repeat a POST by themselves when a kept connection ends without an answer; a person takes longer, and has
 * looked.
 */
export class Copies {
  readonly #sinceMs = nowMs();
  #cutOff: readonly SentRecord[];

  constructor(cutOff: readonly SentRecord[] = []) {
    this.#cutOff = cutOff;
  }

  has(call: Call, route: Route, recordOf: () => SentRecord): boolean {
    const isOver = this.#cutOff.length === 0 || nowMs() - this.#sinceMs > resentMs;
    if (call.followMs !== undefined || route.urgent || isOver) return false;
    const record = recordOf();
    return this.#cutOff.some((each) => isSameRequest(each, record));
  }

  /** Lets an operation be sent again at once: it is proven to have failed. */
  failed(sent: SentRecord): void {
    this.#cutOff = this.#cutOff.filter((each) => !isSameRequest(each, sent));
  }
}

const resentMs = 60_000;

const isSameRequest = (one: SentRecord, other: SentRecord) =>
  one.service === other.service && one.route === other.route && one.digest === other.digest;

/** The fault that answers such a copy. */
export function resent({ contract, key }: Call, route: Route): Fault {
  const state = "the same request was on the line when posline stopped a moment ago, and its answer is lost";
  const advice = adviceWhenUnknown(contracts[contract], route, key);
  return new Fault("broken", `Cannot send ${route.path} once more: ${state}. ${advice}`, { reason: "sent-before" });
}
