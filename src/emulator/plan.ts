import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import type { ServiceName } from "../core/call.ts";
import { endingOf, type Outcome } from "./outcomes.ts";
import type { WireFault } from "./wire-fault.ts";

/**
 * What goes wrong, and when: what a test forced goes before the amount's ending, and that before chance. The same seed gives the
 * same chances in the same order.
 */

export interface PlanOptions {
  /** Where the chances begin. */
  readonly seed?: number;
  /** True when amounts decide nothing: every one takes its normal course. */
  readonly plainAmounts?: boolean;
  readonly chances?: readonly Chance[];
}

/** A share of the answers, from 0 to 1, that this befalls. */
export interface Chance {
  readonly fault: WireFault;
  readonly share: number;
}

/** What is to befall the next operation, or the next answer, of a service. */
export interface Forced {
  readonly service: ServiceName;
  /** Only that route's; any when it is left out. */
  readonly route?: string;
  readonly course: { readonly outcome: Outcome } | { readonly fault: WireFault };
}

/** Forced courses that may wait: more than a test has steps. */
export const forcedMax = 1024;

const defaultSeed = 1;

export class Plan {
  readonly #options: PlanOptions;
  #random: ReturnType<typeof xoroshiro128plus>;
  #chances: readonly Chance[];
  #forced: Forced[] = [];
  /** What befalls the answer that is under way. */
  #fault: WireFault | undefined;

  constructor(options: PlanOptions) {
    this.#options = options;
    this.#random = xoroshiro128plus(options.seed ?? defaultSeed);
    this.#chances = options.chances ?? [];
  }

  /** What waits to befall somebody. */
  get forced(): readonly Forced[] {
    return this.#forced;
  }

  get chances(): readonly Chance[] {
    return this.#chances;
  }

  set chances(chances: readonly Chance[]) {
    this.#chances = chances;
  }

  /** @throws RangeError when too many wait. */
  force(forced: Forced): void {
    if (this.#forced.length >= forcedMax) throw new RangeError(`Cannot force more: ${forcedMax} courses wait already`);
    this.#forced.push(forced);
  }

  /** Back to how it began. */
  reset(): void {
    this.#random = xoroshiro128plus(this.#options.seed ?? defaultSeed);
    this.#chances = this.#options.chances ?? [];
    this.#forced = [];
  }

  /** A request comes. */
  begin(service: ServiceName, route: string): void {
    this.#fault = undefined;
    const course = this.#take(service, route, "fault");
    if (course !== undefined && "fault" in course) this.#fault = course.fault;
  }

  /** What becomes of an operation that begins now; what befalls its answer is kept for `fault`. */
  outcomeOf(service: ServiceName, route: string, amount: bigint): Outcome | undefined {
    const forced = this.#take(service, route, "outcome");
    const course = forced ?? (this.#options.plainAmounts ? undefined : endingOf(amount)?.course);
    if (course === undefined) return undefined;
    if ("outcome" in course) return course.outcome;
    this.#fault ??= course.fault;
    return undefined;
  }

  /** What befalls the answer under way. */
  fault(): WireFault | undefined {
    // Drawn for every answer, so that what was forced before doesn't change what comes after.
    const drawn = uniformFloat64(this.#random);
    return this.#fault ?? this.#byChance(drawn);
  }

  #byChance(drawn: number): WireFault | undefined {
    let from = 0;
    for (const { fault, share } of this.#chances) {
      if (drawn < from + share) return fault;
      from += share;
    }
    return undefined;
  }

  #take(service: ServiceName, route: string, kind: "outcome" | "fault"): Forced["course"] | undefined {
    const index = this.#forced.findIndex(
      (each) => each.service === service && (each.route ?? route) === route && kind in each.course,
    );
    return index === -1 ? undefined : this.#forced.splice(index, 1)[0]?.course;
  }
}
