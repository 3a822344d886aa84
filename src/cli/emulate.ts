import type { CommandModule, Options } from "yargs";
import type { EmulationFlags } from "../app/emulation.ts";
import type { EmulateFlags, Flags } from "../config/load.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import { wireFaultKinds } from "../emulator/faults/wire-fault.ts";
import { sourceOptions } from "./config.ts";
import { emulatorOptions, lastOfEach, withRepeatableFlags } from "./emulator-flags.ts";
import { UsageError } from "./exit.ts";
import { greeting } from "./greeting.ts";
import { logStart, runUntilStopped } from "./run-service.ts";

/** `posline emulate`: the services without a terminal, over HTTP, on a line, or both. */

export interface EmulateArguments
  extends EmulationFlags,
    Pick<Flags, "config" | "line" | "baud">,
    Pick<EmulateFlags, "adminPort" | "merchantIdFile" | "apiKeyFile"> {
  readonly service?: readonly ServiceName[] | undefined;
  readonly http?: boolean | undefined;
  readonly admin?: boolean | undefined;
}

/**
 * Emulates until it is signalled to stop.
 * @returns the exit code: 0, 64 for flags that leave nothing to do, 69 when a port can't be had, 78 when the configuration or the
 * state can't be used.
 */
export function runEmulate(args: EmulateArguments): Promise<number> {
  const { http = true, admin = true } = args;
  return runUntilStopped({
    flags: configFlagsOf(args),
    verb: "emulate",
    start: async ({ config: loaded, warnings }, log) => {
      const { devicesOf, startEmulating } = await import("../app/emulate.ts");
      if (!http && devicesOf(loaded).length === 0) {
        throw new UsageError("Cannot emulate: --no-http leaves no way to reach it: name a device with --line");
      }
      const emulating = await startEmulating({ config: loaded, log, flags: args, http, admin });
      logStart(log, "posline emulates", warnings, emulating);
      process.stderr.write(
        greeting({
          title: "posline plays a terminal",
          listening: emulating.listening,
          admin: emulating.admin,
          devices: emulating.devices.map(({ path }) => path),
          services: loaded.services,
          anySign: loaded.services.fiscal?.merchantId === undefined,
        }),
      );
      return emulating;
    },
  });
}

function configFlagsOf({ config, line, baud, service, adminPort, merchantIdFile, apiKeyFile }: EmulateArguments): Flags {
  return { config, line, baud, emulate: { services: service, adminPort, merchantIdFile, apiKeyFile } };
}

const { config, baud } = sourceOptions;

const options = {
  config: { ...config, describe: "Take services, ports and the line's settings from this file; none is read unless named" },
  line: { type: "string", requiresArg: true, describe: "Answer on this device too, such as /dev/ttyUSB0 or a pty" },
  baud,
  http: { type: "boolean", default: true, describe: "Answer over HTTP; --no-http answers on the line alone" },
  service: {
    type: "array",
    string: true,
    nargs: 1,
    choices: serviceNames,
    describe: "Play this service; may be repeated (default: all three)",
  },
  ...emulatorOptions,
  "merchant-id-file": { type: "string", requiresArg: true, describe: "Check fiscal signs with the merchant's id in this file" },
  "api-key-file": { type: "string", requiresArg: true, describe: "Demand the key in this file of bank's callers over HTTP" },
  admin: { type: "boolean", default: true, describe: "Have a control API; --no-admin has none" },
  "admin-port": { type: "number", requiresArg: true, describe: "Its port, 0 for any free one (default 8880)" },
} as const satisfies Record<string, Options>;

export const emulateCommand: CommandModule<object, EmulateArguments> = {
  command: "emulate",
  describe: "Play the terminal: the services over HTTP, on a line, or both, without hardware",
  builder: (yargs) =>
    withRepeatableFlags(yargs)
      .options(lastOfEach(options))
      .epilogue(
        "Ports are those of the services, 8008, 8888 and 8887 on 127.0.0.1, or POSLINE_FISCAL_PORT, POSLINE_BANK_PORT, " +
          `POSLINE_QR_PORT and POSLINE_HOST. Faults: ${wireFaultKinds.join(", ")}; late, pieces, twice and unplug take milliseconds.`,
      )
      .example("$0 emulate", "All three services over HTTP")
      .example("$0 emulate --line /dev/ttyUSB0 --no-http", "A terminal at the end of a cable")
      .example("$0 emulate --service bank --state bank.json", "One that remembers across restarts")
      .example("$0 emulate --fault corrupt=0.05 --fault late:5000=0.01 --seed 7", "A bad day, the same each time"),
  handler: async (args) => {
    process.exitCode = await runEmulate(args);
  },
};
