import { createHash } from "node:crypto";
import type { DocumentKind } from "./fiscal-document.ts";
import type { Keys } from "./fiscal-request.ts";
import type { Saved } from "./saved.ts";
import { rememberedMax } from "./world.ts";

/**
 * The requests that were rolled back, the oldest first: each succeeds when it comes again, whatever its amount asks for. Kept
 * as digests, which are short whatever the key.
 */
export class RolledBack {
  readonly #digests: Set<string>;

  constructor(digests: readonly string[] = []) {
    this.#digests = new Set(digests);
  }

  add(request: string): void {
    this.#digests.add(request);
    for (const oldest of this.#digests) {
      if (this.#digests.size <= rememberedMax) break;
      this.#digests.delete(oldest);
    }
  }

  /** Whether this request was rolled back before; it is only once. */
  take(request: string): boolean {
    return this.#digests.delete(request);
  }

  saved(): readonly string[] {
    return [...this.#digests];
  }

  static restored(saved: Saved): RolledBack {
    return new RolledBack(saved.list(rememberedMax).map((each) => each.text()));
  }
}

/** Tells a request from others. One without a key is told by its amount: more can't be known of it. */
export function requestDigest(kind: DocumentKind, { extId, id }: Keys, sum: bigint): string {
  const key = extId !== undefined ? `documentExtID ${extId}` : id !== undefined ? `documentID ${id}` : `sum ${sum}`;
  return createHash("sha256").update(`${kind} ${key}`).digest("base64");
}
