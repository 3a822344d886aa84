import { isDeepStrictEqual } from "node:util";
import type { Config } from "../config/config.ts";
import type { ServiceName } from "../core/call.ts";
import { printable } from "../core/shell-text.ts";
import type { SentRecord } from "../journal/record.ts";

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

/**
 * Refuses a configuration without a service of which an operation has no known end: its operations are known by its name, and under
 * another one the repetition of a sale would be sent again.
 * @param before The services' names until now.
 * @param unended Operations without a known end.
 * @throws Error naming the service and one of them; nothing of the configuration is applied.
 */
export function refuseForgotten(
  before: readonly ServiceName[],
  now: readonly ServiceName[],
  unended: readonly Pick<SentRecord, "service" | "route" | "key">[],
): void {
  for (const service of before) {
    const last = now.includes(service) ? undefined : unended.findLast((each) => each.service === service);
    if (last === undefined) continue;
    const operation = [last.route, last.key].filter((each) => each !== undefined).join(" ");
    const state = `services.${service} was taken away or renamed, and how ${printable(operation)} of it ended is unknown`;
    throw new Error(
      `Cannot reload: ${state}: wait for its end, settle it (sudo posline journal --unknown), or look at the terminal and restart posline`,
    );
  }
}
