import { isDeepStrictEqual } from "node:util";
import type { Config } from "../config/config.ts";

/**
 * Refuses a configuration that changes what is set up only at the start: the journal holds its folder, and the admin port stays open.
 * @throws Error naming the changed key; nothing of the configuration is applied.
 */
export function refuseRestarts(before: Config, now: Config, keys: readonly ("journal" | "admin")[]): void {
  for (const key of keys) {
    if (isDeepStrictEqual(before[key], now[key])) continue;
    throw new Error(`Cannot reload: ${key} was changed, which needs a restart: restart posline, or undo the change`);
  }
}
