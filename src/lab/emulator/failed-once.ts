import { createHash } from "node:crypto";
import type { EmulatedOutcome } from "./faults/magic-amounts.ts";
import { rememberedMax, type ServiceContext } from "./service-context.ts";

/**
 * The requests that failed by the outcome "internal-error", the oldest first: each succeeds when it comes again, whatever its amount asks
 * for. Kept as digests, which are short whatever the key.
 */
export class FailedOnce {
  readonly #context: ServiceContext;
  readonly #digests: Set<string>;

  constructor(context: ServiceContext, digests: readonly string[] = []) {
    this.#context = context;
    this.#digests = new Set(digests);
  }

  /**
   * The outcome of a new request: to be asked once, when nothing can refuse the request any more.
   * @param key Tells the request from others.
   */
  outcomeOf(route: string, amount: bigint, key: string): EmulatedOutcome | undefined {
    const outcome = this.#context.outcomeOf(route, amount);
    const request = createHash("sha256").update(key).digest("base64");
    const failedBefore = this.#digests.delete(request);
    if (failedBefore) this.#context.changed();
    if (outcome?.name !== "internal-error") return outcome;
    if (failedBefore) return undefined;
    this.#digests.add(request);
    for (const oldest of this.#digests) {
      if (this.#digests.size <= rememberedMax) break;
      this.#digests.delete(oldest);
    }
    this.#context.changed();
    return outcome;
  }

  saved(): readonly string[] {
    return [...this.#digests];
  }
}
