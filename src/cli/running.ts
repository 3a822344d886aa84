import type { Admin } from "../app/admin.ts";
import type { Listening } from "../app/bridge.ts";
import type { Log } from "../core/log.ts";
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

/** Waits for SIGTERM or SIGINT. A second one means now: what is in flight then has an unknown outcome. */
export function stopSignal(): Promise<void> {
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

/** The exit code for an error that kept a command from starting: its own, or that something can't be had. */
export function startExitCode(error: unknown): number {
  return exitCodeOf(error) ?? exitCodes.unavailable;
}

/** Why a command could not start, and what to do. */
export function reasonOf(error: unknown): string {
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
