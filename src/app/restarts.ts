import { isDeepStrictEqual } from "node:util";
import type { Config } from "../config/config.ts";

/**
 * Refuses a configuration that changes what is set up once: the journal holds its folder, and the admin port answers whoever looks on.
 * @throws Error naming what was changed; nothing of the configuration is taken.
 */
export function refuseRestarts(before: Config, now: Config, keys: readonly ("journal" | "admin")[]): void {
  for (const key of keys) {
    if (isDeepStrictEqual(before[key], now[key])) continue;
    throw new Error(`Cannot reload: ${key} was changed, which takes effect at a start alone: restart posline, or set it back`);
  }
}
