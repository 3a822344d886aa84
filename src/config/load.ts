import { resolve } from "node:path";
import { codeOf } from "../core/error-code.ts";
import { isObject } from "../core/json-object.ts";
import { check } from "./check.ts";
import { type Config, ConfigError } from "./config.ts";
import { applyCredentials } from "./credentials.ts";
import { type Draft, draftOf, draftOfOneLine } from "./draft.ts";
import { dropInsOf, laidOver } from "./drop-ins.ts";
import { deniedFile, exposedAdmin, readableSecrets } from "./exposure.ts";
import { gatewayMarginMs } from "./limits.ts";
import { applyEnvironment, applyFlags, type Flags, leaveDevices, refuseUnknown } from "./overrides.ts";
import { resolveDraft } from "./resolve.ts";
import { lineWarnings, refuseCrossed, warningsOf } from "./rules.ts";
import { type FileShape, fileSchema } from "./schema.ts";
import { reason } from "./secrets.ts";
import { gatewayWarnings, requireUpstreams, supposeUpstreams } from "./upstreams.ts";
import { parseWritten, readText } from "./written-file.ts";

export type { EmulateFlags, Flags, GatewayFlags } from "./overrides.ts";

/** Read when neither `--config` nor `POSLINE_CONFIG` names another. */
export const defaultFile = "/etc/posline/posline.json";

/** Where to load from. `file` is the path to read when no flag and no variable names one. */
export interface Sources {
  readonly file?: string | undefined;
  /** A drop-in of the file as it is to be written. */
  readonly dropIn?: WrittenText | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly flags: Flags;
  /** The box's groups; the tests have files of their own. */
  readonly groups?: string | undefined;
}

/** A file with what it holds. */
interface WrittenText {
  readonly path: string;
  readonly text: string;
}

/** A configuration that can be used, and where it came from. */
export interface Loaded {
  readonly config: Config;
  /**
   * By path, `lines.till.baudRate`: `default`, `file /etc/posline/posline.json`, `environment POSLINE_HOST` or `flag --baud`.
   * A secret that stands in a file of its own names that file.
   */
  readonly origins: ReadonlyMap<string, string>;
  /** The file that was read; with drop-ins it need not be there. */
  readonly file: string | undefined;
  /** Every line is emulated in place of its device. */
  readonly emulated: boolean;
  /** What works, but not as its operator may think. */
  readonly warnings: readonly string[];
}

/**
 * Loads the configuration: defaults ← file ← its drop-ins ← environment ← flags.
 * @throws ConfigError with every problem there is.
 */
export async function loadConfig({ file: fallback = defaultFile, dropIn, env, flags, groups }: Sources): Promise<Loaded> {
  const problems: string[] = [];
  refuseUnknown(env, problems);
  const named = flags.config ?? env["POSLINE_CONFIG"];
  if (named === "") {
    const label = flags.config === undefined ? "POSLINE_CONFIG" : "--config";
    throw new ConfigError([...problems, `${label}: must not be empty: name a file`]);
  }
  const path = resolve(named ?? fallback);
  // An emulator beside a bridge doesn't read the bridge's file unless it is named, nor does a gateway on a line of its own.
  const beside = flags.emulate !== undefined || (flags.gateway !== undefined && flags.line !== undefined);
  const unasked = named === undefined && beside;
  const files = unasked ? [] : filesOf(path, named !== undefined, dropIn, problems);
  const file = files.length === 0 ? undefined : path;
  const { draft, dropInOf } =
    file === undefined
      ? { draft: draftWithoutFile(path, flags, problems), dropInOf: new Map<string, string>() }
      : draftOfFiles(files, path, problems);

  if (flags.emulate !== undefined) leaveDevices(draft);
  if (flags.gateway !== undefined && file === undefined) supposeUpstreams(draft);
  applyEnvironment(draft, env, problems);
  applyFlags(draft, flags, problems);
  if (flags.emulate === undefined) applyCredentials(draft, env);
  const isAsking = flags.emulate === undefined && flags.gateway === undefined;
  const left = isAsking && file === undefined ? leaveUnsigned(draft) : [];
  const marginMs = flags.gateway === undefined ? 0 : gatewayMarginMs;
  const config = resolveDraft(draft, { file, marginMs, stateFolders: env["STATE_DIRECTORY"] }, problems);
  refuseCrossed(config, problems);
  if (flags.gateway !== undefined) requireUpstreams(config, problems);
  if (problems.length > 0)
    throw new ConfigError(
      problems.map((problem) => withDropIn(problem, dropInOf)),
      file,
    );
  const warnings =
    flags.gateway === undefined
      ? warningsOf(config, flags.emulate !== undefined)
      : [...lineWarnings(config), ...gatewayWarnings(config), ...exposedAdmin(config)];
  warnings.push(
    ...left,
    ...(file !== undefined && files[0]?.path !== file ? [`there is no file ${file}: its drop-ins are all there is`] : []),
    ...readableSecrets(config, draft.origins, groups),
  );
  return { config, origins: draft.origins, file, emulated: flags.emulated === true, warnings };
}

/**
 * Leaves fiscal out where only a device was named and no merchant's id: posline couldn't ask it, so each start would wait for a silence, and
 * the first calls of the services that are there.
 * @returns what to say of it.
 */
function leaveUnsigned(draft: Draft): readonly string[] {
  const { fiscal } = draft.services;
  if (fiscal === undefined || fiscal.merchantId !== undefined || fiscal.merchantIdFile !== undefined) return [];
  delete draft.services["fiscal"];
  return [
    "services.fiscal: not served, since no file names the merchant's id: add --merchant-id-file FILE to serve fiscal too",
  ];
}

/** The file's text; undefined when it doesn't exist and wasn't named. */
function textOf(path: string, named: boolean, problems: readonly string[]): string | undefined {
  try {
    return readText({ path, what: "configuration" }, problems);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const code = codeOf(error);
    const missing = code === "ENOENT" || code === "ENOTDIR";
    if (missing && !named) return undefined;
    const denied = code === "EACCES" || code === "EPERM";
    throw new ConfigError([...problems, denied ? deniedFile(path) : reason(error, path)], path);
  }
}

/** The configuration's file, if there is one, and its drop-ins. @param written Takes the place of the drop-in of its path. */
function filesOf(path: string, named: boolean, written: WrittenText | undefined, problems: readonly string[]) {
  const dropIns = new Set([...dropInsOf(path), ...(written === undefined ? [] : [written.path])]);
  const main = textOf(path, named && dropIns.size === 0, problems);
  const files: WrittenText[] = main === undefined ? [] : [{ path, text: main }];
  for (const each of [...dropIns].sort()) {
    // Each was listed just now, so one that is missing is a link to nothing.
    files.push(each === written?.path ? written : { path: each, text: textOf(each, true, problems) ?? "" });
  }
  return files;
}

/** The draft of all files, and by the path of a setting the last drop-in that has it. */
function draftOfFiles(files: readonly WrittenText[], main: string, problems: string[]) {
  const dropInOf = new Map<string, string>();
  let value: unknown = {};
  for (const { path, text } of files) {
    const known = problems.length;
    const parsed = parseWritten({ path, what: "configuration" }, text, problems);
    const repeated = problems.splice(known);
    problems.push(...repeated.map((each) => (path === main ? each : `${each} (in ${path})`)));
    if (path !== main && !isObject(parsed)) throw new ConfigError([...problems, "it must be a JSON object"], path);
    value = path === main ? parsed : laidOver(value, parsed, (setting) => dropInOf.set(setting, path));
  }
  // The schema has the file's shape; what was wrong is left out, and is among the problems.
  const checked = (check(fileSchema, value, "", problems) ?? {}) as Partial<FileShape>;
  return { draft: draftOf(checked, (setting) => `file ${dropInOf.get(setting) ?? main}`), dropInOf };
}

/** A problem of a setting, with the drop-in that has it. */
function withDropIn(problem: string, dropInOf: ReadonlyMap<string, string>): string {
  const [, setting = ""] = /^(.*?)(?:\[\d+\])?: /s.exec(problem) ?? [];
  const file = dropInOf.get(setting);
  return file === undefined ? problem : `${problem} (in ${file})`;
}

function draftWithoutFile(path: string, flags: Flags, problems: readonly string[]): Draft {
  if (flags.emulated === true || flags.emulate !== undefined) return draftOfOneLine("emulated");
  if (flags.line !== undefined) return draftOfOneLine("till");
  throw new ConfigError([
    ...problems,
    `there is no file ${path}, and no line is named: name the device with --line /dev/ttyUSB0 (posline ports lists the devices), ` +
      `${flags.gateway === undefined ? "try posline without hardware with --emulated, " : ""}or write the file (posline config ` +
      "--schema describes it)",
  ]);
}
