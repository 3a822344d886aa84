import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bridge } from "../app/bridge.ts";
import type { EmulationFlags } from "../app/emulation.ts";
import type { Flags, Loaded } from "../config/load.ts";
import { messageOf } from "../core/error-code.ts";
import { defineCommand } from "./command.ts";
import { sourceFlags } from "./config.ts";
import { emulatorFlags } from "./emulator-flags.ts";
import { exitCodes } from "./exit.ts";
import { type LogFormat, logFlags, logStart, runUntilStopped } from "./run-service.ts";

/** `posline serve`: the bridge. */

export interface ServeArguments extends Flags, EmulationFlags {
  readonly logFormat?: LogFormat | undefined;
}

/**
 * Serves until it is signalled to stop.
 * @returns the exit code: 0, 64 for flags that don't go together, 69 when a port can't be had, 78 when the configuration or the
 * emulator's state can't be used.
 */
export async function runServe(flags: ServeArguments): Promise<number> {
  const emulatorFlag = emulatorOnlyFlag(flags);
  if (emulatorFlag !== undefined && flags.emulated !== true) {
    process.stderr.write(
      `Cannot serve: ${emulatorFlag} is for the emulator only: add --emulated, or leave ${emulatorFlag} out\n`,
    );
    return exitCodes.usage;
  }
  const play = flags.emulated === true ? playFolder() : {};
  return runUntilStopped({
    flags: { ...flags, playFolder: play.path },
    logFormat: flags.logFormat,
    verb: "serve",
    start: async (loaded, log, sockets, tap) => {
      const { startBridge } = await import("../app/bridge.ts");
      const emulated = loaded.emulated ? flags : undefined;
      const bridge = await startBridge({ config: loaded.config, log, emulated, sockets, tap });
      logStart(log, "posline serves", loaded.warnings, bridge);
      if (play.error !== undefined) log.process("warn", "no journal is kept: there is no temporary folder for it", play);
      if (loaded.emulated) await greet(loaded, bridge);
      return bridge;
    },
  });
}

/** On standard error, beside the log: what a person who tries posline may paste. */
async function greet({ config }: Loaded, bridge: Bridge): Promise<void> {
  const { greeting } = await import("./greeting.ts");
  const title = "posline serves an emulated terminal, and no device is used";
  const { listening, admin } = bridge;
  const journal = config.journal === false ? undefined : config.journal.folder;
  process.stderr.write(greeting({ title, listening, admin, devices: [], journal, services: config.services, anySign: false }));
}

/** A folder that is gone with the process, for the journal of an emulated terminal: a till meets what it meets in a shop. */
function playFolder(): { readonly path?: string; readonly error?: string } {
  try {
    const path = mkdtempSync(join(tmpdir(), "posline-emulated-"));
    process.on("exit", () => rmSync(path, { recursive: true, force: true }));
    return { path };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** The first flag that only the emulator has. */
function emulatorOnlyFlag({ state, seed, fault, plainAmounts }: EmulationFlags): string | undefined {
  if (state !== undefined) return "--state";
  if (seed !== undefined) return "--seed";
  if (fault !== undefined) return "--fault";
  return plainAmounts === true ? "--plain-amounts" : undefined;
}

export const serveCommand = defineCommand({
  name: "serve",
  describe: "Run the bridge: tills reach the terminal on its serial line over HTTP",
  flags: { ...sourceFlags, ...logFlags, ...emulatorFlags },
  epilogue: "--state, --seed, --fault and --plain-amounts need --emulated; posline emulate --help lists the faults.",
  run: (args: ServeArguments) => runServe(args),
});
