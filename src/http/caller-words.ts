import type { Contract, Route } from "../contract/contract.ts";
import { askAgain, checkFirst, Fault } from "../core/fault.ts";

/** How the faults of one route are worded: each says whether it was sent, and what to do. */
export interface Words {
  readonly contract: Contract;
  readonly route: Route;
  /** Nothing was sent. */
  unsent(state: string): Fault;
  /** It was sent, and nobody knows what became of it. */
  unknown(kind: "timeout" | "broken", state: string): Fault;
}

export function wordsFor(contract: Contract, route: Route): Words {
  const { path } = route;
  const advice = route.effect === "none" ? askAgain : checkFirst[contract.service];
  return {
    contract,
    route,
    unsent: (state) => new Fault("unavailable", `Cannot send ${path}: ${state}: nothing was sent, it is safe to send again`),
    unknown: (kind, state) => new Fault(kind, `No answer to ${path}: ${state}: ${advice}`),
  };
}
