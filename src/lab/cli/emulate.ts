import { sourceFlags } from "../../cli/config.ts";
import { emulatorFlags } from "../../cli/emulator-flags.ts";
import { greeting } from "../../cli/greeting.ts";
import { logFlags, logStart, runUntilStopped } from "../../cli/run-service.ts";
import { type Flags, loadConfig } from "../../config/load.ts";
import { contractNames } from "../../core/call.ts";
import { type ArgumentsOf, defineCommand, type FlagTable } from "../../core/command.ts";
import { exitCodes, UsageError } from "../../core/exit.ts";
import { printable } from "../../core/shell-text.ts";
import { merchantIdOf } from "../../process/served.ts";
import { wireFaultKinds } from "../emulator/faults/wire-fault.ts";

/** `posline emulate`: the services without a terminal, over HTTP, on a line, or both. */

export type EmulateArguments = ArgumentsOf<typeof flags>;

/**
 * Emulates until it is signalled to stop.
 * @returns the exit code: 0, 64 for flags that leave nothing to do, 69 when a port can't be had, 78 when the configuration or the
 * state can't be used.
 */
export async function runEmulate(args: EmulateArguments): Promise<number> {
  const { http = true, admin = true } = args;
  if (args.like !== undefined) return printWorldLike(args, args.like);
  if (args.printWorld === true) return printWorld(args.world);
  return runUntilStopped({
    flags: configFlagsOf(args),
    logFormat: args.logFormat,
    verb: "emulate",
    start: async ({ config: loaded, warnings }, log) => {
      const { devicesOf, startEmulating } = await import("../emulator/emulate.ts");
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
          anySign: merchantIdOf(loaded) === undefined,
        }),
      );
      return emulating;
    },
  });
}

/** Prints a file for --world: that of this one, or of the built-in world. */
async function printWorld(file: string | undefined): Promise<number> {
  const { loadWorld, worldText } = await import("../emulator/world-file.ts");
  process.stdout.write(worldText(loadWorld(file)));
  return exitCodes.ok;
}

/** Prints a file for --world that plays the shop of a real terminal. */
async function printWorldLike(args: EmulateArguments, device: string): Promise<number> {
  const { config } = await loadConfig({ env: process.env, flags: { ...configFlagsOf(args), line: device } });
  const [line] = Object.values(config.lines);
  if (line === undefined) throw new UsageError(`Cannot ask ${device}: the configuration has no line: leave --config out`);
  const merchantId = merchantIdOf(config);
  // Without the merchant's id no fiscal request can be signed.
  const asked = args.service ?? contractNames;
  const services = asked.filter((each) => each !== "fiscal" || merchantId !== undefined);
  if (services.length < asked.length) process.stderr.write("fiscal isn't asked: add --merchant-id-file, to sign with\n");
  const { createClient } = await import("../../client/line-client.ts");
  const { worldLike } = await import("../emulator/world-like.ts");
  const terminal = createClient({ line: { ...line, services }, ...(merchantId !== undefined && { fiscal: { merchantId } }) });
  try {
    const { text, lacking } = await worldLike(terminal, services);
    process.stderr.write(lacking.map((each) => `${printable(each)}\n`).join(""));
    process.stdout.write(text ?? "");
    return text === undefined ? exitCodes.unavailable : exitCodes.ok;
  } finally {
    await terminal.close();
  }
}

function configFlagsOf({ config, line, baud, service, adminPort, merchantIdFile, apiKeyFile }: EmulateArguments): Flags {
  return { config, line, baud, merchantIdFile, emulate: { services: service, adminPort, apiKeyFile } };
}

const { config, baud } = sourceFlags;

const flags = {
  config: {
    ...config,
    describe: "Take services, ports and the line's settings from this file (default: no file is read)",
  },
  line: {
    type: "string",
    example: "/dev/ttyUSB0",
    describe: "Answer on this serial device as well, such as /dev/ttyUSB0 or a pty; tcp:[::1]:7000 listens there",
  },
  baud,
  http: { type: "boolean", default: true, describe: "Answer over HTTP; --no-http answers on the serial line only" },
  service: {
    type: "string",
    repeatable: true,
    example: "bank",
    choices: contractNames,
    describe: "Emulate only these services, such as bank,fiscal (default: all three)",
  },
  ...emulatorFlags,
  "print-world": { type: "boolean", describe: "Print the world that is played, as a file for --world, and nothing else" },
  like: {
    type: "string",
    example: "/dev/ttyUSB0",
    describe: "Ask a real terminal, by questions that change nothing, and print its shop as a file for --world",
  },
  ...logFlags,
  "merchant-id-file": {
    type: "string",
    example: "merchant-id",
    describe: "Check the signs of fiscal requests with the merchant's id in this file (default: any sign is accepted)",
  },
  "api-key-file": {
    type: "string",
    example: "api-key",
    describe: "Require the API key in this file from callers of bank over HTTP",
  },
  admin: { type: "boolean", default: true, describe: "Offer the control API over HTTP; --no-admin turns it off" },
  "admin-port": { type: "whole", example: "8880", describe: "Port of the control API, 0 for any free one (default 8880)" },
} as const satisfies FlagTable;

export const emulateCommand = defineCommand({
  name: "emulate",
  describe: "Emulate the terminal without hardware: the services over HTTP, on a serial line, or both",
  flags,
  epilogue:
    "The services listen on localhost at 8008 (fiscal), 8888 (bank) and 8887 (qr); POSLINE_FISCAL_PORT, POSLINE_BANK_PORT, " +
    `POSLINE_QR_PORT and POSLINE_HOST change that. Faults: ${wireFaultKinds.join(", ")}; late, pieces, twice and unplug take ` +
    "milliseconds, as in late:5000=0.1.",
  examples: [
    ["emulate", "All three services over HTTP"],
    ["emulate --line /dev/ttyUSB0 --no-http", "A terminal at the end of a cable"],
    ["emulate --like /dev/ttyUSB0 >shop.json", "The shop of a terminal, to rehearse with"],
    ["emulate --world shop.json", "A shop of your own; --print-world prints one to begin with"],
    ["emulate --service bank --state bank.json", "One that remembers across restarts"],
    ["emulate --fault corrupt=0.05 --fault late:5000=0.01 --seed 7", "Random faults, repeatable"],
  ],
  run: runEmulate,
});
