import { contracts } from "../contract/contracts.ts";
import { isLoopback } from "../core/address.ts";
import { type ContractName, contractNames } from "../core/call.ts";
import type { Config } from "./config.ts";
import { type Draft, draftContract, putService } from "./draft.ts";
import { gatewayMarginMs } from "./limits.ts";

/** The rules of `posline gateway`: where each service is reached, and for how long it may be waited for. */

/** Where a service is when it runs on this very box, as its contract has it. */
export const localUpstream = (contract: ContractName) => `http://127.0.0.1:${contracts[contract].port}`;

/** Without a file the services are on this box by default. */
export function supposeUpstreams(draft: Draft): void {
  for (const [name, service] of Object.entries(draft.services)) {
    putService(draft, name, "upstream", localUpstream(draftContract(name, service)), "default");
  }
}

/** Reports an upstream that isn't a URL after all: the schema checks only its form. */
export function refuseUpstreams(config: Config, problems: string[]): void {
  for (const [name, { contract, upstream }] of Object.entries(config.services)) {
    if (upstream !== undefined && !URL.canParse(upstream)) {
      problems.push(
        `services.${name}.upstream: ${JSON.stringify(upstream)} is not a URL: write it as ${localUpstream(contract)}`,
      );
    }
  }
}

/** Reports services without an upstream. */
export function requireUpstreams(config: Config, problems: string[]): void {
  for (const [name, { contract, upstream }] of Object.entries(config.services)) {
    if (upstream !== undefined) continue;
    const flag = contractNames.some((each) => each === name) ? `, or use --upstream-${name}` : "";
    problems.push(
      `services.${name}.upstream: missing: add the URL at which posline gateway reaches the service, such as "${localUpstream(contract)}"${flag}`,
    );
  }
}

/**
 * What works in a gateway, but not as its operator may think.
 *
 * A till takes the next frame for its answer, so an answer that comes after the till gave up is taken for the answer to what it
 * asks next. The bank and qr contracts (Limits) have it give up after 30 s; the fiscal one names no time.
 */
export function gatewayWarnings(config: Config): string[] {
  const warnings: string[] = [];
  for (const [name, service] of Object.entries(config.services)) {
    const { contract } = service;
    for (const { path, replyTimeoutMs: tillMs } of contract === "fiscal" ? [] : contracts[contract].routes) {
      const ms = service.replyTimeoutMs[path] ?? 0;
      if (ms < tillMs) continue;
      warnings.push(
        `services.${name}.replyTimeoutMs: ${ms} for ${path} is too long: by its contract a till gives up after ${tillMs}, and may take a later ` +
          `answer for the answer to its next request: set it to ${tillMs - gatewayMarginMs} or less`,
      );
      break;
    }
    if (service.apiKey !== undefined && service.upstream !== undefined && isOpenToEavesdroppers(service.upstream)) {
      warnings.push(`services.${name}.upstream: the API key crosses the network unencrypted: use https, or a separate network`);
    }
  }
  return warnings;
}

function isOpenToEavesdroppers(upstream: string): boolean {
  const { protocol, hostname } = new URL(upstream);
  return protocol === "http:" && !isLoopback(hostname.replace(/^\[|\]$/g, ""));
}
