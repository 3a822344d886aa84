import type { ContractName } from "../core/call.ts";
import type { JsonObject } from "../core/json-object.ts";
import examplesJson from "./examples.json" with { type: "json" };

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

const examples: Readonly<Record<ContractName, readonly Example[]>> = examplesJson;

/** A service's story, in its order. */
export const examplesOf = (service: ContractName): readonly Example[] => examples[service];
