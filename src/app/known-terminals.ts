import type { ContractName } from "../core/call.ts";
import type { KnownAnswers } from "../recovery/probe-account.ts";

/** How a service answers its probes, by the contract that it was asked by. */
export interface KnownService extends KnownAnswers {
  readonly contract: ContractName;
}

/** Paths and nodes that are kept: of more lines than a box has, each changed several times. */
const placesMax = 256;

/**
 * How the terminals of this process answer posline's probes, for the lines that will have them later: by the device's path in the
 * configuration, and by its real node, since either may change by a reload while the cable stays. What a terminal does is its own affair
 * and no service's: so a service goes by its contract, whatever it is called.
 *
 * A line that knows too much waits for longer than it would have to; one that knows too little gives a late answer to another call.
 */
export class KnownTerminals {
  readonly #known = new Map<string, readonly KnownService[]>();

  /** What a line knew when it ended. Who isn't on it any more may come back. */
  learn(places: readonly string[], known: readonly KnownService[]): void {
    for (const place of places) {
      const others = this.at([place]).filter(({ contract }) => !known.some((each) => each.contract === contract));
      this.#known.delete(place);
      this.#known.set(place, [...others, ...known]);
    }
    for (const place of this.#known.keys()) {
      if (this.#known.size <= placesMax) break;
      this.#known.delete(place);
    }
  }

  /** All that is known at any of these places. */
  at(places: readonly string[]): readonly KnownService[] {
    return places.flatMap((place) => this.#known.get(place) ?? []);
  }
}
