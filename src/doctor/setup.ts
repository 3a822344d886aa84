import { join } from "node:path";
import { check } from "../config/check.ts";
import { type Config, ConfigError, emulatedPath, type LineConfig } from "../config/config.ts";
import { isConfigured } from "../config/drop-ins.ts";
import { type Loaded, loadConfig } from "../config/load.ts";
import { line as lineSchema } from "../config/schema-line.ts";
import { serviceEnvironment } from "../config/service-environment.ts";
import { type Finding, finding } from "./finding.ts";
import type { Host } from "./host.ts";

/** The parts to look at, as flags name them. */
export interface DoctorTarget {
  readonly config?: string | undefined;
  /** A line's name, or a device. */
  readonly line?: string | undefined;
  readonly baud?: number | undefined;
}

/** The configuration as it is looked at, and what it says of itself. */
export interface ConfigToCheck {
  readonly findings: readonly Finding[];
  /** The configuration; undefined if it can't be used. */
  readonly config: Config | undefined;
  /** True if only something given on the command line is wrong. */
  readonly isUsageError: boolean;
  readonly file: string | undefined;
  /** True if the installed service has this configuration. */
  readonly isInstalled: boolean;
  /** The lines to look at, by name. */
  readonly lines: Readonly<Record<string, LineConfig>>;
}

export const isDevice = (line: string) => /^(?:\/|usb:|tcp:)/i.test(line);

/** Loads the configuration as the service would, and picks the lines that are meant. */
export async function loadConfigToCheck(wanted: DoctorTarget, host: Host): Promise<ConfigToCheck> {
  // The service's own environment counts only for the file that the service reads.
  const env = wanted.config === undefined ? serviceEnvironment(host.env, host) : host.env;
  const file = join(host.etc, "posline", "posline.json");
  try {
    const loaded = await load(wanted, { env, file, groups: join(host.etc, "group") });
    const lines = withBaud(pick(wanted, loaded.config), wanted.baud);
    const isInstalled = loaded.file === undefined || loaded.file === file;
    return { findings: findingsOf(loaded), config: loaded.config, isUsageError: false, file: loaded.file, isInstalled, lines };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      findings: error.problems.map(problem),
      config: undefined,
      isUsageError: error.exitCode === 64,
      file: undefined,
      isInstalled: wanted.config === undefined,
      lines: {},
    };
  }
}

type LoadSources = { readonly env: Host["env"]; readonly file: string; readonly groups: string };

/** A device that a line of the file has is that line; another one is a line of its own. */
async function load({ config, line }: DoctorTarget, places: LoadSources): Promise<Loaded> {
  const isName = line !== undefined && !isDevice(line);
  const hasFile = config !== undefined || places.env["POSLINE_CONFIG"] !== undefined || isConfigured(places.file);
  if (isName && !hasFile) throw new ConfigError([noDeviceOf(line, places.file)]);
  if (isName || line === undefined) return loadConfig({ ...places, flags: { config } });
  const loaded = await loadConfig({ ...places, flags: { config } }).catch((error: unknown) => {
    if (error instanceof ConfigError) return undefined;
    throw error;
  });
  const configured = loaded !== undefined && Object.values(loaded.config.lines).some(({ path }) => path === line);
  return configured ? loaded : loadConfig({ ...places, flags: { config, line } });
}

/** posline may have been started with a device or another file, of which a shell knows nothing. */
function noDeviceOf(line: string, file: string): string {
  return (
    `--line: there is no file ${file} that says which device line ${line} has: name the device that posline was started with ` +
    "(sudo posline doctor --line /dev/ttyUSB0), or its file (sudo posline doctor --config FILE)"
  );
}

function pick({ line }: DoctorTarget, { lines }: Config): Readonly<Record<string, LineConfig>> {
  if (line === undefined) return lines;
  const picked = Object.entries(lines).filter(([name, { path }]) => (isDevice(line) ? path === line : name === line));
  if (picked.length === 0) {
    throw new ConfigError([`--line: there is no line ${line}: its lines are ${Object.keys(lines).join(", ")}`]);
  }
  return Object.fromEntries(picked);
}

/** Another speed than the configured one, to try it out. */
function withBaud(lines: Readonly<Record<string, LineConfig>>, baud: number | undefined): Readonly<Record<string, LineConfig>> {
  if (baud === undefined) return lines;
  const problems: string[] = [];
  check(lineSchema.properties.baudRate, baud, "--baud", problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(Object.entries(lines).map(([name, line]) => [name, { ...line, baudRate: baud }]));
}

function findingsOf({ config, file, emulated, warnings }: Loaded): Finding[] {
  const lines = Object.entries(config.lines);
  const isEmulated = emulated || lines.every(([, { path }]) => path === emulatedPath);
  const served = Object.keys(config.services).join(", ");
  const where = file === undefined ? "no file: one line for all services" : `${file} can be used`;
  const what = `${where}; lines ${lines.map(([name]) => name).join(", ")}; services ${served}${isEmulated ? "; emulated" : ""}`;
  return [finding("config", "ok", what), ...warnings.map((warning) => finding("config", "warn", warning))];
}

/** The finding for a configuration's problem, whose text holds its fix. */
function problem(text: string): Finding {
  const denied = /permission denied/i.test(text);
  return finding("config", "bad", text, denied ? { cure: "sudo posline doctor" } : {});
}
