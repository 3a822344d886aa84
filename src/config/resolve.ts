import { dirname, resolve } from "node:path";
import { contracts } from "../contract/contracts.ts";
import type { ContractName, ServiceName } from "../core/call.ts";
import type { AdminConfig, Config, JournalConfig, LineConfig, ServiceConfig } from "./config.ts";
import { type Draft, draftContract, draftServices, type LineDraft, type ServiceDraft } from "./draft.ts";
import { adminDefaults, journalDefaults, lineDefaults, logDefaults, serviceDefaults } from "./limits.ts";
import { adminToken, fileSchema } from "./schema.ts";
import { readSecret } from "./secrets.ts";

/** What defaults hang on, beside the settings. */
export interface Resolving {
  /** The file that was read: relative paths start at its folder. */
  readonly file: string | undefined;
  /** Milliseconds that a reply's time-out is below the contract's, where nobody set it. */
  readonly marginMs: number;
  /** systemd's STATE_DIRECTORY: folders for what the service keeps, separated by colons. */
  readonly stateFolders: string | undefined;
}

/** Fills in the defaults, and reads the secrets that stand in files. */
export function resolveDraft(draft: Draft, resolving: Resolving, problems: string[]): Config {
  const lines: [string, LineConfig][] = [];
  for (const [name, line] of Object.entries(draft.lines)) lines.push([name, resolveLine(draft, name, line)]);
  const services: Record<ServiceName, ServiceConfig> = {};
  for (const [name, service] of draftServices(draft))
    services[name] = resolveService(draft, name, service, resolving, problems);
  const admin = draft.admin === undefined ? undefined : resolveAdmin(draft, draft.admin, resolving.file, problems);
  const log = { ...logDefaults, ...draft.log };
  noteDefaults(draft, "log", log);
  const journal = resolveJournal(draft, resolving.stateFolders);
  return { lines: Object.fromEntries(lines), services, ...(admin === undefined ? {} : { admin }), journal, log };
}

function resolveAdmin(
  draft: Draft,
  settings: NonNullable<Draft["admin"]>,
  file: string | undefined,
  problems: string[],
): AdminConfig {
  const { tokenFile, ...others } = settings;
  let admin: AdminConfig = { ...adminDefaults, ...others };
  if (tokenFile !== undefined) {
    const where = resolve(folderOf(file), tokenFile);
    const token = readSecret(adminToken, where, "admin.tokenFile", problems);
    draft.origins.set("admin.token", `file ${where}`);
    admin = { ...admin, tokenFile: where, ...(token === undefined ? {} : { token }) };
  }
  noteDefaults(draft, "admin", admin);
  return admin;
}

function resolveJournal(draft: Draft, stateFolders: string | undefined): false | JournalConfig {
  if (draft.journal === false) return false;
  const [own] = (stateFolders ?? "").split(":");
  const given = own === undefined || own === "" ? undefined : own;
  const journal: JournalConfig = { folder: given, ...journalDefaults, ...draft.journal };
  if (given !== undefined && draft.journal?.folder === undefined) {
    draft.origins.set("journal.folder", "environment STATE_DIRECTORY");
  }
  noteDefaults(draft, "journal", journal);
  return journal;
}

function noteDefaults(draft: Draft, path: string, settings: object): void {
  for (const key of Object.keys(settings)) {
    const full = `${path}.${key}`;
    if (!draft.origins.has(full)) draft.origins.set(full, "default");
  }
}

function resolveLine(draft: Draft, name: string, line: LineDraft): LineConfig {
  // A path that is missing or wrong is already among the problems, and the draft goes no further.
  const resolved: LineConfig = { path: "", ...lineDefaults, ...line };
  noteDefaults(draft, `lines.${name}`, resolved);
  return resolved;
}

function resolveService(
  draft: Draft,
  name: ServiceName,
  service: ServiceDraft,
  { file, marginMs }: Pick<Resolving, "file" | "marginMs">,
  problems: string[],
): ServiceConfig {
  const path = `services.${name}`;
  const contract = draftContract(name, service);
  const resolved: ServiceConfig = {
    line: "",
    // A name of its own has no default; a missing port is among the problems.
    port: name === contract ? contracts[contract].port : 0,
    ...serviceDefaults,
    ...(contract === "qr" ? { linePort: contracts.qr.port } : {}),
    allowOrigins: [],
    allowHosts: [],
    ...service,
    contract,
    replyTimeoutMs: timeouts(draft, name, service, contract, marginMs),
    ...secrets(draft, name, service, file, problems),
  };
  noteDefaults(draft, path, resolved);
  return resolved;
}

/** Milliseconds for every route: the number of all, or the route's own, or the contract's less a margin. */
function timeouts(
  draft: Draft,
  name: ServiceName,
  service: ServiceDraft,
  contract: ContractName,
  marginMs: number,
): Record<string, number> {
  const path = `services.${name}.replyTimeoutMs`;
  const set = service.replyTimeoutMs;
  const whole = draft.origins.get(path);
  // One number for all; from here on each route has an origin of its own.
  draft.origins.delete(path);
  const resolved: Record<string, number> = {};
  for (const route of contracts[contract].routes) {
    const own = typeof set === "object" ? set[route.path] : set;
    resolved[route.path] = own ?? route.replyTimeoutMs - marginMs;
    const full = `${path}.${route.path}`;
    if (!draft.origins.has(full)) draft.origins.set(full, whole ?? "default");
  }
  return resolved;
}

/** Where relative paths of a configuration start. */
const folderOf = (file: string | undefined) => (file === undefined ? "." : dirname(file));

/** The values that stand in files; a relative path starts at the folder of the configuration file. */
function secrets(
  draft: Draft,
  name: ServiceName,
  service: ServiceDraft,
  file: string | undefined,
  problems: string[],
): { merchantId?: string; merchantIdFile?: string; apiKey?: string; apiKeyFile?: string } {
  const folder = folderOf(file);
  const { fiscal, bank } = fileSchema.properties.services.properties;
  const read = (key: "merchantId" | "apiKey", node: typeof fiscal.properties.merchantId | typeof bank.properties.apiKey) => {
    const from = service[`${key}File`];
    if (from === undefined) return {};
    const path = `services.${name}.${key}`;
    if (service[key] !== undefined) {
      problems.push(`${path}File: ${key} is set too: keep only one of them`);
      return {};
    }
    const where = resolve(folder, from);
    const value = readSecret(node, where, `${path}File`, problems);
    draft.origins.set(path, `file ${where}`);
    return { [`${key}File`]: where, ...(value === undefined ? {} : { [key]: value }) };
  };
  return { ...read("merchantId", fiscal.properties.merchantId), ...read("apiKey", bank.properties.apiKey) };
}
