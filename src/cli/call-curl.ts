import type { Route } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import type { ContractName } from "../core/call.ts";
import type { JsonObject } from "../core/json-object.ts";
import { signedForm } from "../envelope/signed-form.ts";
import { writeExactObject } from "../settle/exact-json.ts";
import { shellQuoted, type Target } from "./call-target.ts";

/** `posline call --curl`: the request as a curl command. Nothing is sent. */

export interface CurlRequest {
  readonly service: ContractName;
  readonly route: Route;
  readonly body: JsonObject | undefined;
  readonly target: Target;
}

/**
 * The command line of one request. The API key stays out of it, since a command line ends up in histories and tickets.
 * @throws UsageError where the merchant's id is needed and isn't known.
 */
export async function curlCommand({ service, route, body, target }: CurlRequest): Promise<string> {
  const words = ["curl -s -w '\\n'"];
  const url = `${(target.url ?? `http://127.0.0.1:${contracts[service].port}`).replace(/\/+$/, "")}${route.path}`;
  if (service === "bank") words.push(...keyHeader(target));
  if (route.body === "none") {
    if (!route.methods.includes("GET")) words.push("-X POST");
  } else if (contracts[service].envelope === "form") {
    words.push(`-d ${shellQuoted(await signedForm(writeExactObject(body ?? {}), target.requireMerchantId()))}`);
  } else {
    words.push("-H 'Content-Type: application/json'", `-d ${shellQuoted(writeExactObject(body ?? {}))}`);
  }
  return [...words, shellQuoted(url)].join(" ");
}

/** What stands for an API key that has no file of its own. */
export const apiKeyVariable = "$BANK_API_KEY";

function keyHeader({ apiKey, apiKeyFile }: Target): readonly string[] {
  if (apiKeyFile !== undefined) return [`-H "X-API-Key: $(cat ${shellQuoted(apiKeyFile)})"`];
  return apiKey === undefined ? [] : [`-H "X-API-Key: ${apiKeyVariable}"`];
}
