import type { ContractName, ServiceName } from "../core/call.ts";

/** What a line knew when it ended: the contracts that it served, and those of them that owe a call's answer. */
export interface Owed {
  readonly served: readonly ContractName[];
  readonly owing: readonly ContractName[];
}

/** Paths and nodes that are kept: of more lines than a box has, each changed several times. */
const placesMax = 256;

/**
 * Terminals of this process that owe a call's answer, for the lines that will have them later: by the device's path in the configuration,
 * and by its real node, since either may change by a reload while the cable stays; and by contract, since a service may be renamed.
 */
export class OwedCalls {
  readonly #owing = new Map<string, readonly ContractName[]>();

  /** A line has ended that had its device at these places. While one of its services owes an answer, so do those that weren't on it any more. */
  learn(places: readonly string[], { served, owing }: Owed): void {
    for (const place of places) {
      const others = owing.length === 0 ? [] : this.at([place]).filter((contract) => !served.includes(contract));
      this.#owing.delete(place);
      this.#owing.set(place, [...others, ...owing]);
    }
    for (const place of this.#owing.keys()) {
      if (this.#owing.size <= placesMax) break;
      this.#owing.delete(place);
    }
  }

  /** Who owes an answer at any of these places. */
  at(places: readonly string[]): readonly ContractName[] {
    return places.flatMap((place) => this.#owing.get(place) ?? []);
  }
}

/** Who owes a call's answer. While one does that isn't on the line, none of those that are can be known by a short silence. */
export function owingAmong(
  services: readonly { readonly service: ServiceName; readonly contract: ContractName }[],
  owing: readonly ContractName[],
): readonly ServiceName[] {
  const isGone = owing.some((each) => services.every(({ contract }) => contract !== each));
  return services.flatMap(({ service, contract }) => (isGone || owing.includes(contract) ? [service] : []));
}
