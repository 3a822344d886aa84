import { contracts } from "../contract/contracts.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import type { Config } from "./config.ts";
import { type Draft, putService } from "./draft.ts";
import { gatewayMarginMs } from "./limits.ts";

/** The rules of `posline gateway`: where each service is reached, and for how long it may be waited for. */

/** Where a service is when it runs on this very box, as its contract has it. */
export const localUpstream = (service: ServiceName) => `http://127.0.0.1:${contracts[service].port}`;

/** Without a file the services are on this box, unless said otherwise. */
export function supposeUpstreams(draft: Draft): void {
  for (const name of serviceNames) {
    if (draft.services[name] !== undefined) putService(draft, name, "upstream", localUpstream(name), "default");
  }
}

/** Tells an upstream that is no URL after all: the schema sees its form alone. */
export function refuseUpstreams(config: Config, problems: string[]): void {
  for (const name of serviceNames) {
    const upstream = config.services[name]?.upstream;
    if (upstream !== undefined && !URL.canParse(upstream)) {
      problems.push(`services.${name}.upstream: ${JSON.stringify(upstream)} is no URL: write it as ${localUpstream(name)}`);
    }
  }
}

/** Tells the services that the gateway doesn't know where to ask. */
export function requireUpstreams(config: Config, problems: string[]): void {
  for (const name of serviceNames) {
    const service = config.services[name];
    if (service === undefined || service.upstream !== undefined) continue;
    problems.push(
      `services.${name}.upstream: missing, and posline gateway asks the service there: add it, such as "${localUpstream(name)}", ` +
        `or give --upstream-${name}`,
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
  for (const name of serviceNames) {
    const service = config.services[name];
    if (service === undefined) continue;
    for (const { path, replyTimeoutMs: tillMs } of name === "fiscal" ? [] : contracts[name].routes) {
      const ms = service.replyTimeoutMs[path] ?? 0;
      if (ms < tillMs) continue;
      warnings.push(
        `services.${name}.replyTimeoutMs: ${ms} for ${path} is no less than the ${tillMs} after which a till gives up by its contract, ` +
          `and an answer that comes then is kept back or, worse, taken for another's: ${tillMs - gatewayMarginMs} or less is safe`,
      );
      break;
    }
    if (service.apiKey !== undefined && service.upstream !== undefined && isOpenToEavesdroppers(service.upstream)) {
      warnings.push(
        `services.${name}.upstream: the API key crosses the network in the clear: use https, or a network of its own`,
      );
    }
  }
  return warnings;
}

function isOpenToEavesdroppers(upstream: string): boolean {
  const { protocol, hostname } = new URL(upstream);
  return protocol === "http:" && hostname !== "localhost" && hostname !== "[::1]" && !/^127\.\d+\.\d+\.\d+$/.test(hostname);
}
