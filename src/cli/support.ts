import { hostname } from "node:os";
import { join } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { type Loaded, loadConfig } from "../config/load.ts";
import { serviceEnvironment } from "../config/service-environment.ts";
import { type ArgumentsOf, defineCommand, type FlagTable, type PositionalTable } from "../core/command.ts";
import { codeOf } from "../core/error-code.ts";
import { exitCodes } from "../core/exit.ts";
import { printable } from "../core/shell-text.ts";
import { tableLines } from "../core/table.ts";
import type { Support, SupportSources } from "../doctor/support.ts";
import { showLog } from "../logs/show-log.ts";
import { renderSettingsJson, sourceFlags } from "./config.ts";

/** `posline support`: one archive with all that is needed to find out what happened on a box. */

/** Lines of the log that go into it: some hours of a till. */
const logLinesMax = 2_000;

export type SupportArguments = ArgumentsOf<typeof flags, typeof positionals>;

/** What is in it and what isn't, as text. */
export function renderManifest({ manifest: { files, missing, leftOut } }: Support): string {
  const table = tableLines([
    ...files.map(({ name, what, bytes }) => [name, printable(`${what}, ${bytes} bytes`)]),
    ...missing.map(({ name, why }) => [name, printable(why)]),
  ]);
  const part = (heading: string, lines: readonly string[]) =>
    lines.length === 0 ? "" : [heading, ...lines.map((line) => `  ${line}`)].map((line) => `${line}\n`).join("");
  const [there, absent] = [table.slice(0, files.length), table.slice(files.length)];
  return part("In the archive:", there) + part("Missing:", absent) + part("Never in it:", leftOut);
}

async function runSupport(args: SupportArguments): Promise<number> {
  const { gatherSupport, recordingFile } = await import("../doctor/support.ts");
  const { writeArchive } = await import("../doctor/support-archive.ts");
  const support = await gatherSupport(await sourcesOf(args));
  process.stdout.write(renderManifest(support));
  if (args.list === true) {
    process.stdout.write("Nothing was written: posline support writes it\n");
    return exitCodes.ok;
  }
  const time = support.manifest.time.replaceAll(/[-:]|\.\d+/g, "");
  const name = `posline-support-${hostname().replaceAll(/[^\w.-]/g, "_")}-${time}`;
  const file = args.file ?? join(process.cwd(), `${name}.tar.gz`);
  try {
    writeArchive(file, name, support.files);
  } catch (error) {
    process.stderr.write(`Cannot write the archive ${printable(file)}: ${whyNot(error)}\n`);
    return exitCodes.unavailable;
  }
  const hasRecording = support.files.some((each) => each.name === recordingFile);
  const replay = hasRecording ? ". posline replay shows its recording" : "";
  process.stdout.write(`Written: ${printable(file)}, which only you can read${replay}\n`);
  return exitCodes.ok;
}

function whyNot(error: unknown): string {
  const code = codeOf(error);
  if (code === "EEXIST") return "there is such a file already: name another one";
  if (code === "EACCES" || code === "EROFS") return "you may not write there: name a file in another folder";
  if (code === "ENOENT" || code === "ENOTDIR") return "there is no such folder: name a file in one that there is";
  if (code === "ENOSPC" || code === "EDQUOT") return "there is no space left: name a file on another disk";
  return String(code ?? error);
}

async function sourcesOf(args: SupportArguments): Promise<SupportSources> {
  const loaded = await loadedOr(args);
  return {
    config: isLoaded(loaded) ? loaded.config : undefined,
    shownConfig: async () =>
      isLoaded(loaded) ? renderSettingsJson(loaded) : `${JSON.stringify({ problems: loaded.message }, undefined, 2)}\n`,
    examine: async () => (await import("../doctor/doctor.ts")).examine({ wanted: { config: args.config } }),
    logLines: () => lastLogLines(args),
  };
}

const isLoaded = (loaded: Loaded | ConfigError): loaded is Loaded & { readonly config: Config } =>
  !(loaded instanceof ConfigError);

/** A configuration that can't be used is a reason to ask for help. */
async function loadedOr({ config }: SupportArguments): Promise<Loaded | ConfigError> {
  try {
    // Its secrets are to be hidden wherever the service has them from.
    const env = config === undefined ? serviceEnvironment(process.env) : process.env;
    return await loadConfig({ env, flags: { config } });
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

async function lastLogLines({ log, unit = "posline" }: SupportArguments): Promise<string> {
  const shown: Buffer[] = [];
  const complaints: string[] = [];
  const place = log === undefined ? { unit } : { file: log };
  const out = (bytes: Buffer) => shown.push(bytes);
  const err = (text: string) => complaints.push(text.trim());
  if (!(await showLog(place, { last: logLinesMax, out, err }, new AbortController().signal)))
    throw new Error(complaints[0] ?? `there is no line in the journal of ${unit}: name the log with --log FILE`);
  return Buffer.concat(shown).toString("utf8");
}

const positionals = {
  file: { describe: "The archive to write (default: posline-support-HOST-TIME.tar.gz in this folder)" },
} as const satisfies PositionalTable;

const flags = {
  list: { type: "boolean", describe: "Show what would be in it, and write nothing" },
  log: { type: "string", example: "posline.log", describe: "Take the log from this file, not from the system journal" },
  unit: { type: "string", example: "posline", describe: "systemd unit whose journal is read (default posline)" },
  config: sourceFlags.config,
} as const satisfies FlagTable;

export const supportCommand = defineCommand({
  name: "support",
  describe: "Pack what is needed to find out what happened: recording, status, settings, findings, log; no secrets",
  positionals,
  flags,
  run: runSupport,
});
