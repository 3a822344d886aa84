import { type ContractName, contractNames } from "../core/call.ts";
import { askAgain, checkFirst } from "../core/fault.ts";
import { quotedName } from "../core/log-text.ts";
import { nearest } from "../core/nearest.ts";
import { bank } from "./bank.ts";
import type { Contract, Route } from "./contract.ts";
import { fiscal } from "./fiscal.ts";
import { qr } from "./qr.ts";
import { adviceToLook } from "./settling.ts";

/** The three contracts by their service. Plain data: loading them costs no schema library. */
export const contracts: Readonly<Record<ContractName, Contract>> = { fiscal, bank, qr };

/** The contract of a service by its name: as the configuration has it, else the contract's own name. */
export function contractOf(
  service: string,
  services?: Readonly<Record<string, { readonly contract: ContractName }>>,
): ContractName | undefined {
  return services?.[service]?.contract ?? contractNames.find((name) => name === service);
}

/** A service's contract on its line, where the terminal may want another port before the route than the contract's own. */
export function contractOnLine({
  contract: name,
  linePort,
}: {
  readonly contract: ContractName;
  readonly linePort?: number;
}): Contract {
  const contract = contracts[name];
  const linePrefix = linePort === undefined ? contract.linePrefix : `:${linePort}`;
  return linePrefix === contract.linePrefix ? contract : { ...contract, linePrefix };
}

/** The prefix that selects a service in a length frame (qr.md, Endpoints); bank is also asked by a route without one. */
export function selectorOf({ linePrefix, port }: Contract): string {
  return linePrefix === "" ? `:${port}` : linePrefix;
}

/** Routes by contract, so that a contract made in a test is indexed too, and forgotten with it. */
const indexes = new WeakMap<Contract, ReadonlyMap<string, Route>>();

/**
 * The route of a path with its leading slash, or undefined if the contract has none. A map answers, not a plain object, so that a path such
 * as `/__proto__` finds nothing.
 */
export function routeOf(contract: Contract, path: string): Route | undefined {
  let index = indexes.get(contract);
  if (index === undefined) {
    index = new Map(contract.routes.map((route) => [route.path, route]));
    indexes.set(contract, index);
  }
  return index.get(path);
}

/** The state in a fault about a path that the contract doesn't have, with the route that was probably meant. */
export function noSuchRoute({ service, routes }: Contract, path: string): string {
  const meant = nearest(
    path,
    routes.map((route) => route.path),
  );
  const others = Object.values(contracts).filter((each) => routeOf(each, path) !== undefined);
  const elsewhere =
    others.length === 0
      ? ""
      : `: ${others.map((each) => each.service).join(" and ")} ${others.length > 1 ? "have it, on other ports" : "has it, on another port"}`;
  const advice = meant !== undefined ? `: did you mean ${meant}?` : elsewhere;
  return `${service} has no route ${quotedName(path)}${advice}`;
}

/**
 * Advice to a call's sender if the outcome is unknown.
 * @param key The sender's name of the operation, if known.
 */
export function adviceWhenUnknown({ service }: Contract, route: Route, key: string | undefined): string {
  if (route.effect === "none") return askAgain;
  return adviceToLook(service, route, key) ?? checkFirst[service];
}
