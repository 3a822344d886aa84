import { resolve } from "node:path";
import { type ContractName, contractNames } from "../core/call.ts";
import { suggestion } from "../core/nearest.ts";
import { check, type Node } from "./check.ts";
import { emulatedPath } from "./config.ts";
import {
  type Draft,
  draftContract,
  keepJournal,
  type LineDraft,
  leaveJournal,
  putLine,
  putService,
  type ServiceDraft,
} from "./draft.ts";
import { fileSchema } from "./schema.ts";

/**
 * The layers above the file: the environment and the flags. Their values pass the same schema as the file's, under the name
 * that the operator knows them by: `POSLINE_HOST`, `--baud`.
 */

/** The flags that say what to serve, as the commands share them. */
export interface Flags {
  readonly config?: string | undefined;
  readonly line?: string | undefined;
  readonly baud?: number | undefined;
  readonly emulated?: boolean | undefined;
  readonly merchantIdFile?: string | undefined;
  /** Where the payments of an emulated terminal are recorded. */
  readonly playFolder?: string | undefined;
  /** There for `posline emulate` alone: the emulator itself is what is reached, by HTTP and on a line that a flag names. */
  readonly emulate?: EmulateFlags | undefined;
  /** There for `posline gateway` alone: tills are on the lines, and the services are reached over HTTP. */
  readonly gateway?: GatewayFlags | undefined;
}

/** The flags of `posline gateway` that settings of the configuration take. */
export interface GatewayFlags {
  readonly upstreams?: Readonly<Partial<Record<ContractName, string | undefined>>> | undefined;
  readonly apiKeyFile?: string | undefined;
}

/** The flags of `posline emulate` that settings of the configuration take. */
export interface EmulateFlags {
  /** The services to play; all there are when it is left out. */
  readonly services?: readonly ContractName[] | undefined;
  /** 0 means any free port. */
  readonly adminPort?: number | undefined;
  readonly apiKeyFile?: string | undefined;
}

/** What the layers are laid over. */
interface Base {
  readonly draft: Draft;
  readonly problems: string[];
}

/** Sets what a variable or a flag stands for. @param label Its name, as the operator knows it. */
type Applied = (base: Base, label: string, value: string) => void;

/** Where a value came from, by what it is called. */
const originOf = (label: string) => `${label.startsWith("--") ? "flag" : "environment"} ${label}`;

const lineNodes = fileSchema.properties.lines.additionalProperties.properties;
const serviceNodes = fileSchema.properties.services.properties;

/** A number as the environment writes it; other text stays text, which the schema then refuses. */
const number = (value: string): string | number => (/^\d{1,15}$/.test(value) ? Number(value) : value);

/** Sets a key of the only line: a flag can't say which of several lines is meant. */
function setLine<K extends "path" | "baudRate">({ draft, problems }: Base, label: string, key: K, value: unknown): void {
  const names = Object.keys(draft.lines);
  const [name, another] = names;
  if (name === undefined) return;
  if (another !== undefined) {
    problems.push(`${label}: the file has several lines (${names.join(", ")}): set ${key} of each line in the file`);
    return;
  }
  const kept = check(lineNodes[key], value, label, problems);
  // The schema has checked it for this very key.
  if (kept !== undefined) putLine(draft, name, key, kept as LineDraft[K], originOf(label));
}

function setService<K extends keyof ServiceDraft & string>(
  service: ContractName,
  key: K,
  node: Node,
  convert: (value: string) => unknown,
) {
  const apply: Applied = ({ draft, problems }, label, value) => {
    if (draft.services[service] === undefined) {
      problems.push(`${label}: the file has no service ${service}: add services.${service} to it, or remove ${label}`);
      return;
    }
    const kept = check(node, convert(value), label, problems);
    // The schema has checked it for this very key.
    if (kept !== undefined) putService(draft, service, key, kept as ServiceDraft[K], originOf(label));
  };
  return apply;
}

/** In the environment a port may be 0, any free one: tests and supervisors that read the port from the log. */
const port = (service: ContractName) =>
  setService(service, "port", { ...serviceNodes[service].properties.port, minimum: 0 }, number);

const setHosts: Applied = ({ draft, problems }, label, value) => {
  const kept = check(fileSchema.properties.services.properties.qr.properties.host, value, label, problems);
  if (typeof kept !== "string") return;
  for (const name of Object.keys(draft.services)) putService(draft, name, "host", kept, originOf(label));
};

const adminPortNode: Node = { ...fileSchema.properties.admin.properties.port, minimum: 0 };

const setAdminPort: Applied = ({ draft, problems }, label, value) => {
  const kept = check(adminPortNode, number(value), label, problems);
  if (typeof kept !== "number") return;
  draft.admin = { ...draft.admin, port: kept };
  draft.origins.set("admin.port", originOf(label));
};

const asPath = (value: string) => (value === "" ? value : resolve(value));
const text = (value: string) => value;

const setMerchantIdFile = setService("fiscal", "merchantIdFile", serviceNodes.fiscal.properties.merchantIdFile, asPath);
const setApiKeyFile = setService("bank", "apiKeyFile", serviceNodes.bank.properties.apiKeyFile, asPath);

const setUpstream: Readonly<Record<ContractName, Applied>> = {
  fiscal: setService("fiscal", "upstream", serviceNodes.fiscal.properties.upstream, text),
  bank: setService("bank", "upstream", serviceNodes.bank.properties.upstream, text),
  qr: setService("qr", "upstream", serviceNodes.qr.properties.upstream, text),
};

/** Where posline listens: what a container or a second posline on a box needs to change. The rest is the file's, or a flag's. */
const variables: Readonly<Record<string, Applied>> = {
  POSLINE_HOST: setHosts,
  POSLINE_FISCAL_PORT: port("fiscal"),
  POSLINE_BANK_PORT: port("bank"),
  POSLINE_QR_PORT: port("qr"),
  POSLINE_ADMIN_PORT: setAdminPort,
};

/** Every variable that posline reads. */
export const variableNames: readonly string[] = ["POSLINE_CONFIG", ...Object.keys(variables)];

/** Reports variables that were meant for posline and that it doesn't know. */
export function refuseUnknown(env: NodeJS.ProcessEnv, problems: string[]): void {
  for (const name of Object.keys(env)) {
    if (!name.startsWith("POSLINE_") || variableNames.includes(name) || env[name] === undefined) continue;
    problems.push(`${name}: unknown environment variable: ${suggestion(name, variableNames)}`);
  }
}

/** Lays the environment over the draft. */
export function applyEnvironment(draft: Draft, env: NodeJS.ProcessEnv, problems: string[]): void {
  for (const [name, apply] of Object.entries(variables)) {
    const value = env[name];
    if (value !== undefined) apply({ draft, problems }, name, value);
  }
}

/** What the emulated fiscal service signs with when nothing else is configured. */
export const emulatedMerchantId = "MERCHANT-1";

/** Lays the flags over the draft. */
export function applyFlags(draft: Draft, flags: Flags, problems: string[]): void {
  const base = { draft, problems };
  if (flags.emulate !== undefined) applyEmulate(base, flags.emulate);
  if (flags.gateway !== undefined) applyGateway(base, flags.gateway);
  if (flags.line !== undefined && flags.emulated === true) {
    problems.push("--line: cannot be used with --emulated, which replaces every device: use only one of them");
  } else if (flags.line !== undefined) setLine(base, "--line", "path", flags.line);
  const { merchantIdFile } = flags;
  if (merchantIdFile !== undefined) setMerchantIdFile(base, "--merchant-id-file", merchantIdFile);
  if (flags.baud !== undefined) setLine(base, "--baud", "baudRate", flags.baud);
  if (flags.emulated !== true) return;
  for (const name of Object.keys(draft.lines)) putLine(draft, name, "path", emulatedPath, "flag --emulated");
  // Play money must not get into the bridge's journal: it has one of its own, unless the file wants none.
  if (draft.journal === false || flags.playFolder === undefined) leaveJournal(draft, "flag --emulated");
  else keepJournal(draft, flags.playFolder, "flag --emulated");
  for (const [name, service] of Object.entries(draft.services)) {
    if (draftContract(name, service) !== "fiscal") continue;
    if (service.merchantId !== undefined || service.merchantIdFile !== undefined) continue;
    putService(draft, name, "merchantId", emulatedMerchantId, "flag --emulated");
  }
}

function applyEmulate(base: Base, { services, adminPort, apiKeyFile }: EmulateFlags): void {
  // Play money must not get into the bridge's journal.
  leaveJournal(base.draft, "posline emulate");
  if (services !== undefined) pick(base.draft, services, base.problems);
  if (adminPort !== undefined) setAdminPort(base, "--admin-port", String(adminPort));
  if (apiKeyFile !== undefined) setApiKeyFile(base, "--api-key-file", apiKeyFile);
}

function applyGateway(base: Base, { upstreams, apiKeyFile }: GatewayFlags): void {
  for (const name of contractNames) {
    const upstream = upstreams?.[name];
    if (upstream !== undefined) setUpstream[name](base, `--upstream-${name}`, upstream);
  }
  if (apiKeyFile !== undefined) setApiKeyFile(base, "--api-key-file", apiKeyFile);
}

/** Leaves these services, and the lines that they use. */
function pick(draft: Draft, picked: readonly ContractName[], problems: string[]): void {
  for (const name of picked) {
    if (draft.services[name] === undefined)
      problems.push(`--service: the file has no service ${name}: add services.${name} to it`);
  }
  for (const name of Object.keys(draft.services)) if (!picked.some((each) => each === name)) delete draft.services[name];
  const used = Object.values(draft.services).map(({ line }) => line);
  for (const name of Object.keys(draft.lines)) if (!used.includes(name)) delete draft.lines[name];
}

/** No device of the file is for `posline emulate`: it is the bridge's, and the emulator would be on its other end. */
export function leaveDevices(draft: Draft): void {
  for (const name of Object.keys(draft.lines)) putLine(draft, name, "path", emulatedPath, "posline emulate");
}
