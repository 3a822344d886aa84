import type { CommandModule, Options } from "yargs";
import type { Flags, GatewayFlags } from "../config/load.ts";
import { localUpstream } from "../config/upstreams.ts";
import type { ServiceName } from "../core/call.ts";
import { version } from "../core/version.ts";
import { sourceOptions } from "./config.ts";
import { runUntilStopped } from "./run-service.ts";

/** `posline gateway`: tills with a serial port alone, and services that are reached over HTTP. */

export interface GatewayArguments extends Pick<Flags, "config" | "line" | "baud">, Pick<GatewayFlags, "apiKeyFile"> {
  readonly upstreamFiscal?: string | undefined;
  readonly upstreamBank?: string | undefined;
  readonly upstreamQr?: string | undefined;
}

/**
 * Runs the gateway until it is signalled to stop.
 * @returns the exit code: 0, or 78 when the configuration can't be used.
 */
export function runGateway(args: GatewayArguments): Promise<number> {
  return runUntilStopped({
    flags: configFlagsOf(args),
    verb: "relay",
    start: async ({ config: loaded, warnings }, log) => {
      const { startGateway } = await import("../app/gateway.ts");
      const gateway = await startGateway({ config: loaded, log });
      log.process("info", "posline relays", { version });
      for (const warning of warnings) log.process("warn", warning);
      for (const { service, line, upstream } of gateway.asking)
        log.process("info", "asking", { service, line, path: upstream });
      if (gateway.admin !== undefined) {
        log.process("info", "admin listens", { host: gateway.admin.host, port: gateway.admin.port });
      }
      return gateway;
    },
  });
}

function configFlagsOf({ config, line, baud, apiKeyFile, upstreamFiscal, upstreamBank, upstreamQr }: GatewayArguments): Flags {
  const upstreams = { fiscal: upstreamFiscal, bank: upstreamBank, qr: upstreamQr };
  return { config, line, baud, gateway: { upstreams, apiKeyFile } };
}

const { config, baud } = sourceOptions;

const upstream = (service: ServiceName) => {
  const describe = `Where ${service} is reached, by URL (without a file ${localUpstream(service)})`;
  return { type: "string", requiresArg: true, describe } as const;
};

const options = {
  config,
  line: { type: "string", requiresArg: true, describe: "The tills' device, such as /dev/ttyS1; no file is read unless named" },
  baud,
  "upstream-fiscal": upstream("fiscal"),
  "upstream-bank": upstream("bank"),
  "upstream-qr": upstream("qr"),
  "api-key-file": { type: "string", requiresArg: true, describe: "Send the key in this file to bank's upstream" },
} as const satisfies Record<string, Options>;

export const gatewayCommand: CommandModule<object, GatewayArguments> = {
  command: "gateway",
  describe: "Run the gateway: tills on serial lines, services over HTTP",
  builder: (yargs) => yargs.options(options),
  handler: async (args) => {
    process.exitCode = await runGateway(args);
  },
};
