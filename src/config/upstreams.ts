import { contracts } from "../contract/contracts.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import type { Config } from "./config.ts";
import { type Draft, putService } from "./draft.ts";
import { gatewayMarginMs } from "./limits.ts";

/** The rules of `posline gateway`: where each service is reached, and for how long it may be waited for. */

/** Where a service is when it runs on this very box, as its contract has it. */
export const localUpstream = (service: ServiceName) => `http://127.0.0.1:${contracts[service].port}`;

/** Without a file the services are on this box by default. */
export function supposeUpstreams(draft: Draft): void {
  for (const name of serviceNames) {
    if (draft.services[name] !== undefined) putService(draft, name, "upstream", localUpstream(name), "default");
  }
}

/** Reports an upstream that isn't a URL after all: the schema checks only its form. */
export function refuseUpstreams(config: Config, problems: string[]): void {
  for (const name of serviceNames) {
    const upstream = config.services[name]?.upstream;
    if (upstream !== undefined && !URL.canParse(upstream)) {
      problems.push(`services.${name}.upstream: ${JSON.stringify(upstream)} is not a URL: write it as ${localUpstream(name)}`);
    }
  }
}

/** Reports services without an upstream. */
export function requireUpstreams(config: Config, problems: string[]): void {
  for (const name of serviceNames) {
    const service = config.services[name];
    if (service === undefined || service.upstream !== undefined) continue;
    problems.push(
      `services.${name}.upstream: missing: add the URL at which posline gateway reaches the service, such as "${localUpstream(name)}", ` +
        `or use --upstream-${name}`,
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
  return protocol === "http:" && hostname !== "localhost" && hostname !== "[::1]" && !/^127\.\d+\.\d+\.\d+$/.test(hostname);
}
