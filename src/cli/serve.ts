import { parseArgs } from "node:util";
import type { CommandModule } from "yargs";
import type { Bridge } from "../app/bridge.ts";
import { ConfigError } from "../config/config.ts";
import { type Flags, type Loaded, loadConfig } from "../config/load.ts";
import { emulatedMerchantId } from "../config/overrides.ts";
import { openLog } from "../core/log.ts";
import { version } from "../core/version.ts";
import { sourceOptions } from "./config.ts";
import { exitCodes } from "./exit.ts";

/** `posline serve`: the bridge. */

/**
 * Reads the flags of `serve` without loading yargs, which would double the time to listening.
 * @returns undefined when something is asked that yargs words better: help, or a flag that isn't right.
 */
export function serveFlags(args: readonly string[]): Flags | undefined {
  const options = {
    config: { type: "string" },
    line: { type: "string" },
    baud: { type: "string" },
    emulated: { type: "boolean" },
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false });
    const baud = values.baud === undefined ? undefined : Number(values.baud);
    if (baud !== undefined && !Number.isInteger(baud)) return undefined;
    if (values.line !== undefined && values.emulated === true) return undefined;
    return { ...values, baud };
  } catch {
    return undefined;
  }
}

/**
 * Serves until it is told to stop.
 * @returns the exit code: 0, 69 when a port can't be had, 78 when the configuration can't be used.
 */
export async function runServe(flags: Flags): Promise<number> {
  let loaded: Loaded;
  try {
    loaded = await loadConfig({ env: process.env, flags });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return error.exitCode;
  }
  const log = openLog(loaded.config.log.level);
  try {
    const { startBridge } = await import("../app/bridge.ts");
    const bridge = await startBridge({ config: loaded.config, log, emulated: loaded.emulated });
    log.process("info", "posline serves", { version });
    for (const warning of loaded.warnings) log.process("warn", warning);
    for (const { service, host, port, line } of bridge.listening)
      log.process("info", "listening", { service, host, port, line });
    if (loaded.emulated) await greet(loaded, bridge);
    await stopSignal();
    log.process("info", "stopping: the exchange in flight may end, what waits is refused");
    await bridge.stop();
    log.process("info", "stopped");
    return exitCodes.ok;
  } catch (error) {
    log.process("error", "cannot serve", { error: reasonOf(error) });
    process.stderr.write(`${reasonOf(error)}\n`);
    return exitCodes.unavailable;
  } finally {
    log.flush();
  }
}

/** On standard error, beside the log: what a person who tries posline may paste. */
async function greet({ config }: Loaded, bridge: Bridge): Promise<void> {
  const { greeting } = await import("./greeting.ts");
  const merchantId = config.services.fiscal?.merchantId;
  // A real merchant's id is a secret, and a sign made with it would be one too.
  process.stderr.write(greeting(bridge.listening, merchantId === emulatedMerchantId ? merchantId : undefined));
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

export const serveCommand: CommandModule<object, Flags> = {
  command: "serve",
  describe: "Run the bridge: HTTP services relayed over serial lines",
  builder: (yargs) => yargs.options(sourceOptions),
  handler: async (args) => {
    process.exitCode = await runServe(args);
  },
};
