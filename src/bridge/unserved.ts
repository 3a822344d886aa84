import { serviceDefaults } from "../config/limits.ts";
import { contracts } from "../contract/contracts.ts";
import { contractNames } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import type { HttpListenerOptions } from "../http/listener.ts";

/**
 * What is answered on a port of systemd's that no service of the configuration has: that it isn't there, in the envelope of the service
 * whose usual port it is, so that a till's own handling of errors shows it.
 */
export function unserved(port: number, report: HttpListenerOptions["report"]): HttpListenerOptions {
  const usual = contractNames.find((name) => contracts[name].port === port);
  const what =
    usual === undefined
      ? `no service is configured on port ${port}: check services in the configuration`
      : `${usual} is not configured: add services.${usual} to the configuration`;
  return {
    contract: contracts[usual ?? "bank"],
    config: {
      ...serviceDefaults,
      contract: usual ?? "bank",
      line: "",
      port,
      allowOrigins: [],
      allowHosts: [],
      replyTimeoutMs: {},
    },
    // The handler refuses whatever comes, so there is nothing to judge.
    rules: { check: "none", merchantId: undefined, validate: undefined },
    handler: () => Promise.reject(new Fault("unavailable", `Cannot send the request: ${what}`, { reason: "not-configured" })),
    report,
  };
}
