import { existsSync } from "node:fs";
import { unknownService } from "../../cli/call-target.ts";
import type { Config } from "../../config/config.ts";
import { adminDefaults } from "../../config/limits.ts";
import { defaultFile, loadConfig } from "../../config/load.ts";
import { contracts } from "../../contract/contracts.ts";
import { contractNames } from "../../core/call.ts";
import {
  type ArgumentsOf,
  type CommandIo,
  defineCommand,
  type FlagTable,
  type PositionalTable,
  processIo,
} from "../../core/command.ts";
import { exitCodes, UsageError } from "../../core/exit.ts";
import type { JsonObject } from "../../core/json-object.ts";

/** `posline openapi`: a service's port, or the admin port, as an OpenAPI document. */

export type OpenApiArguments = ArgumentsOf<typeof flags, typeof positionals>;

type OpenApiIo = Omit<CommandIo, "err">;

/**
 * Runs the command.
 * @throws UsageError for a name that isn't a service's; ConfigError.
 */
export async function runOpenApi({ service: name, config: named }: OpenApiArguments, io: OpenApiIo): Promise<number> {
  if (name === undefined) {
    const names = [...contractNames, "admin"].join(", ");
    throw new UsageError(
      `No service was given: write posline openapi bank; the names are ${names}, and those of the configuration`,
    );
  }
  const document = name === "admin" ? await ofAdmin(named, io) : await ofService(name, named, io);
  io.out(`${JSON.stringify(document, undefined, 2)}\n`);
  return exitCodes.ok;
}

/** A contract's own name needs no configuration: a till is written long before there is a box. */
async function ofService(name: string, named: string | undefined, io: OpenApiIo): Promise<JsonObject> {
  const { describedService, serviceDocument, usualService } = await import("../openapi/service.ts");
  const contract = contractNames.find((each) => each === name);
  const services = (await configOf(named, contract === undefined, io))?.services ?? {};
  const found = services[name];
  if (found !== undefined) return serviceDocument(describedService(name, found));
  if (contract !== undefined) return serviceDocument(usualService(contracts[contract]));
  throw unknownService(name, services, ["admin"]);
}

async function ofAdmin(named: string | undefined, io: OpenApiIo): Promise<JsonObject> {
  const { adminDocument, usualAdmin } = await import("../openapi/admin.ts");
  const config = await configOf(named, false, io);
  return adminDocument(config === undefined ? usualAdmin : { ...usualAdmin, ...(config.admin ?? adminDefaults) });
}

/** @param usual Whether the usual file is read, if it is there, where none is named. */
async function configOf(config: string | undefined, usual: boolean, { env, file }: OpenApiIo): Promise<Config | undefined> {
  const isNamed = config !== undefined || env["POSLINE_CONFIG"] !== undefined;
  if (!isNamed && !(usual && existsSync(file ?? defaultFile))) return undefined;
  return (await loadConfig({ file, env, flags: { config } })).config;
}

const positionals = {
  service: { describe: "fiscal, bank, qr, admin, or a service's name in the configuration" },
} as const satisfies PositionalTable;

const flags = {
  config: {
    type: "string",
    example: "posline.json",
    describe: "Describe the services of this configuration file, with their names and ports",
  },
} as const satisfies FlagTable;

export const openApiCommand = defineCommand({
  name: "openapi",
  describe: "Print the OpenAPI document of a service, or of the admin port",
  flags,
  positionals,
  run: (args: OpenApiArguments) => runOpenApi(args, processIo),
});
