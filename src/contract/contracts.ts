import type { ServiceName } from "../core/call.ts";
import { bank } from "./bank.ts";
import type { Contract, Route } from "./contract.ts";
import { fiscal } from "./fiscal.ts";
import { qr } from "./qr.ts";

/** The three contracts by their service. Plain data: loading them costs no schema library. */
export const contracts: Readonly<Record<ServiceName, Contract>> = { fiscal, bank, qr };

/** By contract, so that one made in a test is indexed too, and forgotten with it. */
const indexes = new WeakMap<Contract, ReadonlyMap<string, Route>>();

/**
 * The route of a path with its leading slash, or undefined where the contract has none. A map answers, not a plain object, so
 * that a path such as `/__proto__` finds nothing.
 */
export function routeOf(contract: Contract, path: string): Route | undefined {
  let index = indexes.get(contract);
  if (index === undefined) {
    index = new Map(contract.routes.map((route) => [route.path, route]));
    indexes.set(contract, index);
  }
  return index.get(path);
}
