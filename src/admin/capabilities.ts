import { isObject, type JsonObject } from "../core/json-object.ts";
import { logged } from "../core/log-text.ts";

/**
 * The operations of a service, by the answer to its probe. A terminal wrote that answer, of up to 8 MiB: the kept part is bounded, and says
 * so if something was left out.
 */

/** Operations shown of a service, or of one of its systems: the contracts have thirteen at most. */
const operationsMax = 64;

/** Payment systems shown: the qr contract has seven. */
const systemsMax = 32;

/** Characters shown of a name. */
const nameCharsMax = 64;

/** Operations, and how many were left out. */
export interface OperationList {
  readonly operations: readonly string[];
  /** "9936 of 10000 operations aren't shown: 64 is the limit". */
  readonly leftOut?: string;
}

/** The operations of a service (bank, fiscal), or its payment systems with theirs (qr). */
export type Capabilities =
  | OperationList
  | { readonly systems: readonly ({ readonly name: string } & OperationList)[]; readonly leftOut?: string };

/** Reads the answer to a probe; undefined if it names neither. */
export function readCapabilities(answer: JsonObject): Capabilities | undefined {
  // The fiscal contract has operations at the top level, the bank contract in `data`, and some terminals don't keep to it.
  const data = isObject(answer["data"]) ? answer["data"] : {};
  for (const list of [answer["operations"], data["operations"]]) if (Array.isArray(list)) return boundedOperations(list);
  const all: unknown = data["systems"];
  if (!Array.isArray(all)) return undefined;
  const { kept, leftOut } = firstOf(all, systemsMax, "systems");
  return {
    systems: kept.filter(isObject).map(({ name, operations }) => ({
      name: boundedName(name),
      ...boundedOperations(Array.isArray(operations) ? operations : []),
    })),
    ...leftOut,
  };
}

function boundedOperations(all: readonly unknown[]): OperationList {
  const { kept, leftOut } = firstOf(all, operationsMax, "operations");
  return { operations: kept.map(boundedName), ...leftOut };
}

function firstOf(all: readonly unknown[], max: number, what: string) {
  const leftOut = `${all.length - max} of ${all.length} ${what} aren't shown: ${max} is the limit`;
  return { kept: all.slice(0, max), leftOut: all.length > max ? { leftOut } : {} };
}

/** A copy, since a piece of a text keeps the whole of it in memory. */
function boundedName(value: unknown): string {
  if (typeof value !== "string") return "?";
  // A card number that is cut off here is beyond the shown part anyway.
  const masked = logged(value.slice(0, 4 * nameCharsMax));
  const name = masked.length <= nameCharsMax ? masked : `${masked.slice(0, nameCharsMax - 1)}…`;
  return Buffer.from(name).toString();
}
