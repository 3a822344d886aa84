import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import type { ServiceName } from "../../../core/call.ts";
import { type EmulatedOutcome, magicAmountOf } from "./magic-amounts.ts";
import type { WireFault } from "./wire-fault.ts";

/**
 * The plan of faults: an effect that a test forced takes precedence over the magic amount, and that over chance. The same seed gives the
 * same chances in the same order.
 */

export interface FaultPlanOptions {
  /** Seed of the chances. */
  readonly seed?: number;
  /** True if amounts decide nothing: every one takes its normal course. */
  readonly plainAmounts?: boolean;
  readonly chances?: readonly FaultChance[];
}

/** A fault and the share of the answers, from 0 to 1, that it is injected into. */
export interface FaultChance {
  readonly fault: WireFault;
  readonly share: number;
}

/** An effect on the next operation, or the next answer, of a service. */
export interface ForcedEffect {
  readonly service: ServiceName;
  /** The route that the effect is for; any if absent. */
  readonly route?: string;
  readonly effect: { readonly outcome: EmulatedOutcome } | { readonly fault: WireFault };
}

/** Forced effects that may wait: more than a test has steps. */
export const forcedEffectsMax = 1024;

const defaultSeed = 1;

export class FaultPlan {
  chances: readonly FaultChance[];
  readonly #options: FaultPlanOptions;
  #random: ReturnType<typeof xoroshiro128plus>;
  #forced: ForcedEffect[] = [];
  /** The fault of the answer that is under way. */
  #fault: WireFault | undefined;

  constructor(options: FaultPlanOptions) {
    this.#options = options;
    this.#random = xoroshiro128plus(options.seed ?? defaultSeed);
    this.chances = options.chances ?? [];
  }

  /** The forced effects that wait. */
  get forced(): readonly ForcedEffect[] {
    return this.#forced;
  }

  /** @throws RangeError if too many wait. */
  force(forced: ForcedEffect): void {
    if (this.#forced.length >= forcedEffectsMax)
      throw new RangeError(`Cannot force another effect: ${forcedEffectsMax} are pending, which is the limit`);
    this.#forced.push(forced);
  }

  /** Returns to the beginning. */
  reset(): void {
    this.#random = xoroshiro128plus(this.#options.seed ?? defaultSeed);
    this.chances = this.#options.chances ?? [];
    this.#forced = [];
  }

  /** A request comes. */
  begin(service: ServiceName, route: string): void {
    this.#fault = undefined;
    const effect = this.#take(service, route, "fault");
    if (effect !== undefined && "fault" in effect) this.#fault = effect.fault;
  }

  /** The outcome of an operation that begins now; the fault of its answer is kept for `fault`. */
  outcomeOf(service: ServiceName, route: string, amount: bigint): EmulatedOutcome | undefined {
    const forced = this.#take(service, route, "outcome");
    const effect = forced ?? (this.#options.plainAmounts ? undefined : magicAmountOf(amount)?.effect);
    if (effect === undefined) return undefined;
    if ("outcome" in effect) return effect.outcome;
    this.#fault ??= effect.fault;
    return undefined;
  }

  /** The fault of the answer under way. */
  fault(): WireFault | undefined {
    // A share is drawn for every answer, so that forced effects don't change the later ones.
    const drawn = uniformFloat64(this.#random);
    return this.#fault ?? this.#byChance(drawn);
  }

  #byChance(drawn: number): WireFault | undefined {
    let from = 0;
    for (const { fault, share } of this.chances) {
      if (drawn < from + share) return fault;
      from += share;
    }
    return undefined;
  }

  #take(service: ServiceName, route: string, kind: "outcome" | "fault"): ForcedEffect["effect"] | undefined {
    const index = this.#forced.findIndex(
      (each) => each.service === service && (each.route ?? route) === route && kind in each.effect,
    );
    return index === -1 ? undefined : this.#forced.splice(index, 1)[0]?.effect;
  }
}
