import { writeFileSync } from "node:fs";
import { isatty } from "node:tty";
import type { Config } from "../config/config.ts";
import { type Flags, type Loaded, loadConfig } from "../config/load.ts";
import type { FlagTable } from "../core/command.ts";
import { deletedFolderText, exitCodeOf, exitCodes } from "../core/exit.ts";
import { type Log, openLog } from "../core/log.ts";
import { debuggingOf, printingVariable, switchOffDebugging } from "../core/node-debugging.ts";
import { hasColours, printableLines } from "../core/shell-text.ts";
import { urlHost } from "../core/url-host.ts";
import { version } from "../core/version.ts";
import type { Admin } from "../process/admin.ts";
import type { Listening } from "../process/served.ts";
import { type Supervised, Supervision } from "../process/supervision.ts";
import type { ListeningSocket } from "../systemd/descriptors.ts";

/** How `serve`, `emulate` and `gateway` write their log. */
export type LogFormat = "json" | "text";

/** The flag for it; without it the log is text at a terminal, and NDJSON elsewhere. */
export const logFlags = {
  "log-format": {
    type: "string",
    example: "json",
    choices: ["json", "text"],
    describe: "Write the log as NDJSON or as readable text (default: text at a terminal, NDJSON elsewhere)",
  },
} as const satisfies FlagTable;

/** The commands that run until they are signalled to stop: load the configuration, start, reload, stop. */

/** Logs what started, and where it is reached. */
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

/** A started service: how it stops, how it reloads where it can, and what its supervisor may know. */
export interface RunningService extends Supervised {
  stop(): Promise<void>;
  /**
   * Takes another configuration.
   * @throws Error when it can't be taken; then all is as before.
   */
  reload?(config: Config): Promise<void>;
}

/** A command that runs until it is signalled to stop. */
export interface ServiceCommand {
  readonly flags: Flags;
  /** How the log is written; readable text at a terminal and NDJSON elsewhere unless given. */
  readonly logFormat: LogFormat | undefined;
  /** The action that an error message names: "serve". */
  readonly verb: string;
  /** What journald calls its lines, as its unit has it; posline unless given. */
  readonly identifier?: string;
  /** Starts it, and says so. `sockets` are those that systemd listens on for it, and `tap` one of its descriptors. */
  readonly start: (
    loaded: Loaded,
    log: Log,
    sockets: readonly ListeningSocket[],
    tap: number | undefined,
  ) => Promise<RunningService>;
}

/**
 * Loads the configuration, starts, and runs until a signal to stop; SIGHUP reloads, and stops what reads its file once.
 * @returns the exit code: 0, 69 when something can't be had, 78 when the configuration can't be used, or the error's own.
 */
export async function runUntilStopped(command: ServiceCommand): Promise<number> {
  const { flags, logFormat, verb, identifier, start } = command;
  await switchOffDebugging();
  const printing = printingVariable(process.env);
  if (printing !== undefined) {
    process.stderr.write(
      `Cannot ${verb}: ${printing} is set, by which Node prints what passes through, card data too: take it out of the environment\n`,
    );
    return exitCodes.config;
  }
  const loaded = await loadConfig({ env: process.env, flags });
  nameProcess();
  const format = logFormat ?? (isatty(1) ? "text" : "json");
  const log = openLog(loaded.config.log.level, {
    render: await renderOf(format),
    ...(identifier === undefined ? {} : { identifier }),
  });
  logWarningsOfNode(log);
  let supervision: Supervision | undefined;
  try {
    supervision = supervisionFrom(log);
    const signals = new ProcessSignals();
    const running = await start(loaded, log, supervision?.sockets ?? [], supervision?.tap);
    await supervision?.ready(running);
    await signals.stop(() => reload(flags, log, running, supervision));
    log.process("info", "stopping: what is in flight may end, what waits is refused");
    await supervision?.stopping();
    await running.stop();
    log.process("info", "stopped");
    return exitCodes.ok;
  } catch (error) {
    // Where both are one terminal, a person would read it twice.
    if (!(format === "text" && isatty(1) && isatty(2)))
      log.process("error", `cannot ${verb}`, { error: startErrorText(error) });
    process.stderr.write(`${printableLines(startErrorText(error))}\n`);
    return exitCodeOf(error) ?? exitCodes.unavailable;
  } finally {
    supervision?.end();
    log.flush();
  }
}

/** What Node would print on standard error by itself, between the log's lines. */
function logWarningsOfNode(log: Log): void {
  const debugging = debuggingOf(process.env, process.execArgv);
  if (debugging.length > 0)
    log.process("warn", `Node was started with ${debugging.join(", ")}: take it out: posline has closed what can be closed`);
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message }) => log.process("warn", "a warning of Node's", { error: `${name}: ${message}` }));
}

/** What turns log lines into text, as `posline logs` shows them; undefined for NDJSON. Loaded only where a person reads. */
async function renderOf(format: LogFormat): Promise<((line: string) => string) | undefined> {
  if (format === "json") return undefined;
  const [{ LogRenderer }, { readEvent }, { coloured, uncoloured }] = await Promise.all([
    import("../logs/render.ts"),
    import("../logs/event.ts"),
    import("../logs/terminal-text.ts"),
  ]);
  const colour = hasColours(process.env, isatty(1)) ? coloured : uncoloured;
  const renderer = new LogRenderer({ colour, dates: "change" });
  return (line) => renderer.next(readEvent(line));
}

/** Names the process, in place of Node's name: the list of a device's holders and `systemctl status` show it. */
function nameProcess(): void {
  try {
    writeFileSync("/proc/self/comm", "posline");
  } catch {
    // Without /proc there is no reader of the name either.
  }
}

/** undefined unless systemd started the process. */
function supervisionFrom(log: Log): Supervision | undefined {
  const { env } = process;
  if (env["NOTIFY_SOCKET"] === undefined && env["LISTEN_FDS"] === undefined) return undefined;
  return new Supervision(env, log);
}

/** A configuration that can't be used is logged with its reason, and the one in use stays. */
async function reload(flags: Flags, log: Log, running: RunningService, supervision: Supervision | undefined): Promise<void> {
  if (running.reload === undefined) {
    process.kill(process.pid, "SIGINT");
    return;
  }
  await supervision?.reloading();
  let refused = false;
  try {
    const loaded = await loadConfig({ env: process.env, flags });
    await running.reload(loaded.config);
    log.process("info", "the configuration was reloaded");
    for (const warning of loaded.warnings) log.process("warn", warning);
  } catch (error) {
    refused = true;
    log.process("error", "the configuration was not reloaded: the one in use stays", { error: startErrorText(error) });
  }
  await supervision?.reloaded(refused);
}

/**
 * The signals of the process: SIGTERM, SIGINT and SIGQUIT to stop, and a second one to stop now, when what is in flight has an unknown
 * outcome; SIGHUP to reload. But at a terminal SIGHUP says that its window was closed, and a bridge that nobody sees any more
 * must not keep the device. Listens from its construction, so that no signal is lost while the process starts.
 */
class ProcessSignals {
  #reload: (() => Promise<void>) | undefined;
  #reloaded = Promise.resolve();
  /** SIGHUP came while the process started, which had read its file by then. */
  #isReloadAsked = false;
  #stopped = false;
  readonly #stop: Promise<void>;

  constructor() {
    let resolve = () => {};
    this.#stop = new Promise((done) => {
      resolve = done;
    });
    const stop = () => {
      if (this.#stopped) process.exit(exitCodes.unknown);
      this.#stopped = true;
      resolve();
    };
    for (const signal of ["SIGTERM", "SIGINT", "SIGQUIT"] as const) process.on(signal, stop);
    // Once the window is closed, it is no terminal any more.
    const isAtTerminal = isatty(0) || isatty(2);
    process.on("SIGHUP", () => {
      // The shell of a closed window passes its own on, so a second one says nothing new.
      if (this.#stopped) return;
      if (isAtTerminal) stop();
      // Reloads run one after the other, so that the last one has the file's last state.
      else if (this.#reload === undefined) this.#isReloadAsked = true;
      else this.#reloaded = this.#reloaded.then(this.#reload);
    });
  }

  /** Resolves on a signal to stop; until then SIGHUP reloads. */
  stop(reload: () => Promise<void>): Promise<void> {
    this.#reload = reload;
    if (this.#isReloadAsked && !this.#stopped) this.#reloaded = this.#reloaded.then(reload);
    // A reload under way ends first, or it would restart what was just stopped.
    return this.#stop.then(() => this.#reloaded);
  }
}

/** Why a command could not start, and what to do. */
function startErrorText(error: unknown): string {
  const deleted = deletedFolderText(error);
  if (deleted !== undefined) return deleted;
  if (!(error instanceof Error)) return String(error);
  if (!("code" in error) || !("address" in error) || !("port" in error)) return error.message;
  const where = `${urlHost(String(error.address))}:${String(error.port)}`;
  if (error.code === "EADDRINUSE") {
    return `Cannot listen on ${where}: another process has it: stop that one (ss -ltnp shows it), or configure another port`;
  }
  if (error.code === "EADDRNOTAVAIL")
    return `Cannot listen on ${where}: this box has no such address: correct host in the configuration`;
  if (error.code === "EACCES")
    return `Cannot listen on ${where}: no permission: ports under 1024 need it, configure a higher one`;
  return `Cannot listen on ${where}: ${error.message}`;
}
