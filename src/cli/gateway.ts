import type { Flags } from "../config/load.ts";
import { localUpstream } from "../config/upstreams.ts";
import type { ContractName } from "../core/call.ts";
import { type ArgumentsOf, defineCommand, type FlagTable } from "../core/command.ts";
import { sourceFlags } from "./config.ts";
import { loadLab } from "./lab.ts";
import { logFlags, logStart, runUntilStopped } from "./run-service.ts";

/** `posline gateway`: tills with a serial port alone, and services that are reached over HTTP. */

export type GatewayArguments = ArgumentsOf<typeof flags>;

/**
 * Runs the gateway until it is signalled to stop.
 * @returns the exit code: 0, or 78 when the configuration can't be used.
 */
export function runGateway(args: GatewayArguments): Promise<number> {
  return runUntilStopped({
    flags: configFlagsOf(args),
    logFormat: args.logFormat,
    verb: "relay",
    identifier: "posline-gateway",
    start: async ({ config: loaded, warnings }, log) => {
      const { startGateway } = await import("../gateway/gateway.ts");
      const gateway = await startGateway({ config: loaded, log, lab: loadLab });
      logStart(log, "posline relays", warnings, { listening: [], admin: gateway.admin });
      for (const { service, line, upstream } of gateway.asking)
        log.process("info", "asking", { service, line, path: upstream });
      return gateway;
    },
  });
}

function configFlagsOf({ config, line, baud, apiKeyFile, upstreamFiscal, upstreamBank, upstreamQr }: GatewayArguments): Flags {
  const upstreams = { fiscal: upstreamFiscal, bank: upstreamBank, qr: upstreamQr };
  return { config, line, baud, gateway: { upstreams, apiKeyFile } };
}

const { config, baud } = sourceFlags;

const upstream = (service: ContractName) =>
  ({
    type: "string",
    example: localUpstream(service),
    describe: `URL at which ${service} is reached (default without a file: ${localUpstream(service)})`,
  }) as const;

const flags = {
  config,
  line: {
    type: "string",
    example: "/dev/ttyS1",
    describe:
      "Serial device that the till is on, such as /dev/ttyS1, or tcp:HOST:PORT; then no file is read unless --config names one",
  },
  baud,
  "upstream-fiscal": upstream("fiscal"),
  "upstream-bank": upstream("bank"),
  "upstream-qr": upstream("qr"),
  "api-key-file": { type: "string", example: "api-key", describe: "Send the API key in this file to the bank service" },
  ...logFlags,
} as const satisfies FlagTable;

export const gatewayCommand = defineCommand({
  name: "gateway",
  describe: "Run the gateway: tills on serial lines reach services over HTTP",
  flags,
  run: runGateway,
});
