import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Bridge } from "../bridge/bridge.ts";
import type { Loaded } from "../config/load.ts";
import { type ArgumentsOf, defineCommand, type FlagTable } from "../core/command.ts";
import { messageOf } from "../core/error-code.ts";
import { UsageError } from "../core/exit.ts";
import type { EmulationFlags } from "../process/lab.ts";
import { sourceFlags } from "./config.ts";
import { emulatorFlags } from "./emulator-flags.ts";
import { loadLab } from "./lab.ts";
import { logFlags, logStart, runUntilStopped } from "./run-service.ts";

/** `posline serve`: the bridge. */

export type ServeArguments = ArgumentsOf<typeof flags>;

/**
 * Serves until it is signalled to stop.
 * @returns the exit code: 0, 64 for flags that don't go together, 69 when a port can't be had, 78 when the configuration or the
 * emulator's state can't be used.
 */
export async function runServe(flags: ServeArguments): Promise<number> {
  const emulatorFlag = emulatorOnlyFlag(flags);
  if (emulatorFlag !== undefined && flags.emulated !== true) {
    throw new UsageError(
      `Cannot serve: ${emulatorFlag} is for the emulator only: add --emulated, or leave ${emulatorFlag} out`,
    );
  }
  const play = flags.emulated === true ? playFolder(flags.state) : {};
  return runUntilStopped({
    flags: { ...flags, playFolder: play.path },
    logFormat: flags.logFormat,
    verb: "serve",
    start: async (loaded, log, sockets, tap) => {
      const { startBridge } = await import("../bridge/bridge.ts");
      const emulated = loaded.emulated ? flags : undefined;
      const bridge = await startBridge({
        config: loaded.config,
        log,
        emulated,
        lab: loadLab,
        sockets,
        tap,
        setupSocket: flags.setupSocket,
      });
      logStart(log, "posline serves", loaded.warnings, bridge);
      if (play.error !== undefined) log.process("warn", "no journal is kept: its folder can't be made", play);
      if (loaded.emulated) await greet(loaded, bridge, flags.state !== undefined);
      return bridge;
    },
  });
}

/** On standard error, beside the log: what a person who tries posline may paste. */
async function greet({ config }: Loaded, bridge: Bridge, isKept: boolean): Promise<void> {
  const { greeting } = await import("./greeting.ts");
  const title = "posline serves an emulated terminal, and no device is used";
  const { listening, admin } = bridge;
  const folder = config.journal === false ? undefined : config.journal.folder;
  const journal = folder === undefined ? undefined : `${folder}, which ${isKept ? "stays" : "is removed at the end"}`;
  process.stderr.write(greeting({ title, listening, admin, devices: [], journal, services: config.services, anySign: false }));
}

/**
 * A folder for the journal of an emulated terminal, so that a till meets what it meets in a shop: beside the emulator's state, or gone with
 * the process, as the terminal's memory is.
 */
function playFolder(state: string | undefined): { readonly path?: string; readonly error?: string } {
  try {
    const path = state === undefined ? mkdtempSync(join(tmpdir(), "posline-emulated-")) : resolve(`${state}.journal`);
    if (state === undefined) process.on("exit", () => rmSync(path, { recursive: true, force: true }));
    else mkdirSync(path, { recursive: true });
    return { path };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** The first flag that only the emulator has. */
function emulatorOnlyFlag({ world, state, seed, fault, plainAmounts }: EmulationFlags): string | undefined {
  const given = { "--world": world, "--state": state, "--seed": seed, "--fault": fault, "--plain-amounts": plainAmounts };
  return Object.entries(given).find(([, value]) => value !== undefined && value !== false)?.[0];
}

const flags = {
  ...sourceFlags,
  ...logFlags,
  "setup-socket": {
    type: "string",
    example: "/run/posline/setup.sock",
    describe: "Let the status page set a terminal up: posline setup --json runs for each connection to this socket",
  },
  ...emulatorFlags,
} as const satisfies FlagTable;

export const serveCommand = defineCommand({
  name: "serve",
  describe: "Run the bridge: tills reach the terminal on its serial line over HTTP",
  flags,
  epilogue: "--world, --state, --seed, --fault and --plain-amounts need --emulated; posline emulate --help lists the faults.",
  run: runServe,
});
