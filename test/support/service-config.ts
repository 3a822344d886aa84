import type { ServiceConfig } from "../../src/config/config.ts";

/** A service's settings as a configuration that sets none resolves them, on any free port. */
export function serviceConfigOf(more: Partial<ServiceConfig> = {}): ServiceConfig {
  return {
    contract: "bank",
    line: "till",
    port: 0,
    host: "127.0.0.1",
    replyTimeoutMs: {},
    bodyBytesMax: 65_536,
    replyBytesMax: 1_048_576,
    check: "envelope",
    allowOrigins: [],
    allowHosts: [],
    ...more,
  };
}
