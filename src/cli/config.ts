import { type Config, ConfigError, secretKeys } from "../config/config.ts";
import { type Loaded, loadConfig } from "../config/load.ts";
import { fileSchema } from "../config/schema.ts";
import { serviceEnvironment } from "../config/service-environment.ts";
import { type ArgumentsOf, type CommandIo, defineCommand, type FlagTable, processIo } from "../core/command.ts";
import { printable, printableJson, printableLines } from "../core/shell-text.ts";
import { tableLines } from "../core/table.ts";

/** `posline config`: what every setting is and where it came from, or the schema of the file. */

/** The flags that say what to serve; every command that loads the configuration takes them. */
export const sourceFlags = {
  config: {
    type: "string",
    example: "posline.json",
    describe: "Read this configuration file (default /etc/posline/posline.json)",
  },
  line: {
    type: "string",
    example: "/dev/ttyUSB0",
    conflicts: "emulated",
    describe: "Use the terminal on this serial device, such as /dev/ttyUSB0 (posline ports lists them), or at tcp:HOST:PORT",
  },
  baud: { type: "whole", example: "9600", describe: "Speed of that device in baud (default 115200)" },
  "merchant-id-file": {
    type: "string",
    example: "merchant-id",
    describe: "Serve fiscal with the merchant's id in this file; with --line alone, fiscal is served only with it",
  },
  emulated: { type: "boolean", describe: "Use an emulated terminal in place of every device" },
} as const satisfies FlagTable;

export type ConfigArguments = ArgumentsOf<typeof flags>;

/** A setting as it is listed. */
interface Row {
  readonly path: string;
  readonly value: string;
  readonly origin: string;
}

/** What stands for a secret: nothing of it, not even its length. */
const secretMask = "****";

/** The settings as a table, in the order of the file, each with where it came from. */
export function renderSettings(loaded: Loaded): string {
  // A control character in a path or a name must not reach the terminal.
  const table = tableLines(rowsOf(loaded).map(({ path, value, origin }) => [path, value, origin].map(printable)));
  const warnings = loaded.warnings.map((warning) => `warning: ${printable(warning)}`);
  return `${[...table, ...(warnings.length > 0 ? ["", ...warnings] : [])].join("\n")}\n`;
}

/** All settings as a JSON object, with every secret masked. */
export function renderSettingsJson(loaded: Loaded): string {
  const { config, origins, file, emulated, warnings } = loaded;
  const shown = { file: file ?? null, emulated, config, origins: Object.fromEntries(origins), warnings };
  return `${printableJson(JSON.stringify(shown, (key, value: unknown) => (isSecret(key, value) ? secretMask : value), 2))}\n`;
}

/** A secret is known by its key; an object under such a key is a line that happens to be called so. */
function isSecret(key: string, value: unknown): boolean {
  return secretKeys.has(key) && typeof value === "string";
}

function rowsOf({ config, origins }: Loaded): Row[] {
  const rows: Row[] = [];
  const add = (path: string, settings: object) => {
    for (const [key, value] of Object.entries(settings)) {
      const full = `${path}.${key}`;
      if (key === "replyTimeoutMs") rows.push(...timeoutRows(full, value, origins));
      else rows.push({ path: full, value: settingText(key, value), origin: origins.get(full) ?? "default" });
    }
  };
  for (const [name, line] of Object.entries(config.lines)) add(`lines.${name}`, line);
  for (const [name, service] of Object.entries(config.services)) add(`services.${name}`, service);
  if (config.admin !== undefined) add("admin", config.admin);
  const { journal } = config;
  if (journal !== false) add("journal", { ...journal, folder: journal.folder ?? "none" });
  else rows.push({ path: "journal", value: "false", origin: origins.get("journal") ?? "default" });
  add("log", config.log);
  return rows;
}

function settingText(key: string, value: unknown): string {
  if (isSecret(key, value)) return secretMask;
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  return String(value);
}

/** What most routes have stands in one row under the setting's own name; the others follow, by route. */
function timeoutRows(
  path: string,
  timeouts: NonNullable<Config["services"]["bank"]>["replyTimeoutMs"],
  origins: Loaded["origins"],
): Row[] {
  const rows = Object.entries(timeouts).map(([route, ms]) => {
    const full = `${path}.${route}`;
    return { path: full, value: String(ms), origin: origins.get(full) ?? "default" };
  });
  const alike = (one: Row, other: Row) => one.value === other.value && one.origin === other.origin;
  const count = (row: Row) => rows.filter((other) => alike(row, other)).length;
  const commonest = rows.reduce<Row | undefined>(
    (best, row) => (best !== undefined && count(best) >= count(row) ? best : row),
    undefined,
  );
  if (commonest === undefined) return [];
  return [{ ...commonest, path }, ...rows.filter((row) => !alike(row, commonest))];
}

/**
 * Runs the command.
 * @returns the exit code: 0, or 78 when the configuration can't be used.
 */
export async function runConfig(args: ConfigArguments, { env, file, out, err }: CommandIo): Promise<number> {
  if (args.schema === true) {
    out(`${JSON.stringify(fileSchema, undefined, 2)}\n`);
    return 0;
  }
  try {
    const loaded = await loadConfig({ file, env, flags: args });
    out(args.json === true ? renderSettingsJson(loaded) : renderSettings(loaded));
    return 0;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    err(`${printableLines(error.message)}\n`);
    return error.exitCode;
  }
}

const flags = {
  ...sourceFlags,
  schema: { type: "boolean", describe: "Print the JSON Schema of the configuration file and nothing else" },
  json: { type: "boolean", describe: "Print one JSON object in place of a table" },
} as const satisfies FlagTable;

export const configCommand = defineCommand({
  name: "config",
  describe: "Show every setting, its value and where it was set",
  flags,
  run: (args: ConfigArguments) =>
    runConfig(args, {
      ...processIo,
      // Without a flag it is about the file that the installed service reads.
      env:
        args.config === undefined && args.line === undefined && args.emulated !== true
          ? serviceEnvironment(process.env)
          : process.env,
    }),
});
