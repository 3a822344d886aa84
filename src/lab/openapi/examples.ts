import { readFileSync } from "node:fs";
import type { ContractName } from "../../core/call.ts";
import type { JsonObject } from "../../core/json-object.ts";

/**
 * A story for each service, told to the emulator from its first request to its last, with the answers. A test sends each request to a
 * bridge with an emulated terminal and compares. `node --import tsx test/e2e/openapi-examples.ts` writes the file anew.
 */

/** A request of a story. */
export interface Example {
  readonly method: string;
  readonly route: string;
  /** Unique among those of its route and method. */
  readonly name: string;
  readonly summary: string;
  /** The emulator's orders with this request, as `next` of its control API. */
  readonly forced?: JsonObject;
  /** True if the line's device is absent in place of emulated. */
  readonly absent?: boolean;
  /** The business payload; absent if there is no body. */
  readonly request?: JsonObject;
  readonly httpStatus: number;
  readonly outcome: string;
  readonly reason?: string;
  readonly answer: JsonObject;
}

/** The merchant id that signs the emulator's fiscal requests. */
export const exampleMerchantId = "MERCHANT-1";

/** The file stands beside this module, and beside the bundle. */
const file = new URL("./examples.json", import.meta.url);

let examples: Readonly<Record<ContractName, readonly Example[]>> | undefined;

/** A service's story, in its order. */
export function examplesOf(service: ContractName): readonly Example[] {
  // test/e2e/openapi-examples.ts wrote it of these very types.
  examples ??= JSON.parse(readFileSync(file, "utf8")) as Readonly<Record<ContractName, readonly Example[]>>;
  return examples[service];
}
