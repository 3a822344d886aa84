import type { Admin } from "../app/admin.ts";
import type { Listening } from "../app/bridge.ts";
import { type Flags, type Loaded, loadConfig } from "../config/load.ts";
import { type Log, openLog } from "../core/log.ts";
import { version } from "../core/version.ts";
import { exitCodeOf, exitCodes } from "./exit.ts";

/** What the commands share that run until they are told to stop. */

/** Writes into the log what runs now, and where it is reached. */
export function logStart(
  log: Log,
  what: string,
  warnings: readonly string[],
  { listening, admin }: { readonly listening: readonly Listening[]; readonly admin: Admin | undefined },
): void {
  log.process("info", what, { version });
  for (const warning of warnings) log.process("warn", warning);
  for (const each of listening) log.process("info", "listening", each);
  if (admin !== undefined) log.process("info", "admin listens", { host: admin.host, port: admin.port });
}

/** A command that runs until it is told to stop. */
export interface Run {
  readonly flags: Flags;
  /** What can't be done when it fails: "serve". */
  readonly verb: string;
  /** Starts it, and says so; gives what stops it. */
  readonly start: (loaded: Loaded, log: Log) => Promise<{ stop(): Promise<void> }>;
}

/**
 * Loads the configuration, starts, and runs until SIGTERM or SIGINT.
 * @returns the exit code: 0, 69 when something can't be had, 78 when the configuration can't be used, or the error's own.
 */
export async function runUntilStopped({ flags, verb, start }: Run): Promise<number> {
  let loaded: Loaded;
  try {
    loaded = await loadConfig({ env: process.env, flags });
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === undefined) throw error;
    process.stderr.write(`${reasonOf(error)}\n`);
    return code;
  }
  const log = openLog(loaded.config.log.level);
  try {
    const running = await start(loaded, log);
    await stopSignal();
    log.process("info", "stopping: what is in flight may end, what waits is refused");
    await running.stop();
    log.process("info", "stopped");
    return exitCodes.ok;
  } catch (error) {
    log.process("error", `cannot ${verb}`, { error: reasonOf(error) });
    process.stderr.write(`${reasonOf(error)}\n`);
    return exitCodeOf(error) ?? exitCodes.unavailable;
  } finally {
    log.flush();
  }
}

/** Waits for SIGTERM or SIGINT. A second one means now: what is in flight then has an unknown outcome. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let told = false;
    const stop = () => {
      if (told) process.exit(exitCodes.unknown);
      told = true;
      resolve();
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  });
}

/** Why a command could not start, and what to do. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!("code" in error) || !("port" in error)) return error.message;
  const where = `port ${String(error.port)}`;
  if (error.code === "EADDRINUSE") {
    return `Cannot listen on ${where}: another process has it: stop that one (ss -ltnp shows it), or configure another port`;
  }
  if (error.code === "EADDRNOTAVAIL")
    return `Cannot listen on ${where}: this box has no such address: mend host in the configuration`;
  if (error.code === "EACCES")
    return `Cannot listen on ${where}: no permission: ports under 1024 need it, configure a higher one`;
  return `Cannot listen on ${where}: ${error.message}`;
}
