import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Client } from "../client/client.ts";
import { createClient } from "../client/http-client.ts";
import { createClient as createLineClient } from "../client/line-client.ts";
import { check } from "../config/check.ts";
import { type Config, ConfigError, type ServiceConfig } from "../config/config.ts";
import { defaultFile, loadConfig } from "../config/load.ts";
import { line as lineSchema } from "../config/schema-line.ts";
import { readAtMost, reason } from "../config/secrets.ts";
import { contracts } from "../contract/contracts.ts";
import { reachableAddress } from "../core/address.ts";
import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
import { UsageError } from "../core/exit.ts";
import { objectIn } from "../core/json-object.ts";
import { nearest } from "../core/nearest.ts";
import { inQuotes } from "../core/shell-text.ts";
import { urlHost } from "../core/url-host.ts";
import type { UnreachableReason } from "../settle/transport.ts";

/** The target of `posline call`: where the service is, its secrets, and the flags that name the same target again. */

export interface CallTarget {
  readonly url?: string | undefined;
  readonly line?: string | undefined;
  readonly baud?: number | undefined;
  readonly config?: string | undefined;
  readonly merchantIdFile?: string | undefined;
  readonly apiKeyFile?: string | undefined;
  /** The settings of a service that the configuration has under a name of its own, by its contract. */
  readonly named?: Config["services"] | undefined;
  /** The running posline follows what is settled. */
  readonly byBridge?: boolean | undefined;
}

async function servicesIn(config: string | undefined): Promise<Config["services"]> {
  return (await loadConfig({ env: process.env, flags: { config } })).config.services;
}

/** A service that is called: by its name, and the contract that it speaks. */
export interface CalledService {
  readonly name: ServiceName;
  readonly contract: ContractName;
}

/** A service that is called, and the flags with what the configuration adds to them. */
export interface Called<T extends CallTarget> {
  readonly service: CalledService;
  readonly args: T;
}

/**
 * The service of a name. One of the configuration's own names is reached at the address that stands there, and that address goes on
 * with the operation: another terminal of the same contract must never be asked for it, nor sell it a second time.
 * @throws UsageError for a name that neither a contract nor the configuration has; ConfigError.
 */
export async function calledService<T extends CallTarget>(name: ServiceName, args: T): Promise<Called<T>> {
  const contract = contractNames.find((each) => each === name);
  if (contract !== undefined) return { service: { name, contract }, args };
  const services = await servicesOrNone(args.config);
  const found = services[name];
  if (found === undefined) throw unknownService(name, services);
  return calledByName(name, found, args);
}

function calledByName<T extends CallTarget>(name: ServiceName, found: ServiceConfig, args: T): Called<T> {
  const { contract, host, port } = found;
  // A line of its own is one terminal, whatever the configuration calls it.
  if (args.line !== undefined) return { service: { name: contract, contract }, args };
  const url = args.url ?? `http://${urlHost(reachableAddress(host))}:${port}`;
  return { service: { name, contract }, args: { ...args, url, named: { [contract]: found } } };
}

/** @param others Other names that are taken for a service's. */
export function unknownService(name: ServiceName, services: Config["services"], others: readonly string[] = []): UsageError {
  const known = [...new Set([...contractNames, ...Object.keys(services), ...others])];
  const meant = nearest(name, known);
  // A number at its end makes it another service's name, not a typing error.
  const isTypo = meant !== undefined && !/\d$/.test(name);
  const advice = isTypo
    ? `did you mean "${meant}"?`
    : `use one of ${known.join(", ")}; a name of the configuration needs --config FILE`;
  return new UsageError(`Unknown service ${inQuotes(name)}: ${advice}`);
}

/**
 * The service that a token's operation was sent to.
 * @throws UsageError where its address isn't known: the operation must not go on at another one.
 */
export async function resumedService<T extends CallTarget>(token: unknown, args: T): Promise<Called<T>> {
  const { service: name, contract: spoken } = objectIn(token);
  const contract = contractNames.find((each) => each === (spoken ?? name));
  // What is wrong with it is said by whoever reads it whole.
  if (typeof name !== "string" || contract === undefined) return { service: { name: "bank", contract: "bank" }, args };
  // An address alone is enough; a configuration that is named beside it has the service's key.
  if (name === contract || (args.url !== undefined && args.config === undefined)) return { service: { name, contract }, args };
  const found = (await servicesOrNone(args.config))[name];
  if (found?.contract === contract) return calledByName(name, found, args);
  if (args.url !== undefined) return { service: { name, contract }, args };
  throw new UsageError(
    `Cannot resume: the token is of the service ${inQuotes(name)}: give its address with --url, or the configuration that has it ` +
      "with --config FILE",
  );
}

/** Those of the configuration; none where no file was named and the usual one isn't there. */
async function servicesOrNone(config: string | undefined): Promise<Config["services"]> {
  const isUsual = config === undefined && process.env["POSLINE_CONFIG"] === undefined;
  return isUsual && !existsSync(defaultFile) ? {} : servicesIn(config);
}

/** A target with what its files, the environment and the configuration say of it. */
export interface Target {
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
  /** The file that the key is in, where it has one of its own. */
  readonly apiKeyFile: string | undefined;
  /**
   * The merchant's id, which signs fiscal requests.
   * @throws UsageError where there is none.
   */
  readonly requireMerchantId: () => string;
  readonly client: () => Client;
}

/** A body, a token or a secret from a file: as much as a service takes. */
const inputBytesMax = 1_048_576;

/**
 * Reads what the flags name.
 * @throws UsageError; ConfigError. `client` throws TypeError for an address that no request can be built of.
 */
export async function readTarget(target: CallTarget, { name: called, contract }: CalledService): Promise<Target> {
  const { config } = target;
  const configured: Config["services"] = target.named ?? (config === undefined ? {} : await servicesIn(config));
  const { merchantId, apiKey } = await secretsFor(target, configured);
  const common = (name: ContractName) => {
    const { replyBytesMax } = configured[name] ?? {};
    return { ...(target.url !== undefined && { url: target.url }), ...(replyBytesMax !== undefined && { replyBytesMax }) };
  };
  const services = {
    fiscal: { ...common("fiscal"), ...(merchantId !== undefined && { merchantId }) },
    bank: { ...common("bank"), ...(apiKey !== undefined && { apiKey }) },
    qr: common("qr"),
  };
  // Under its name, so that its token says where it was sent.
  const own: object = called === contract ? {} : { [called]: { ...services[contract], contract } };
  const settle = target.byBridge === true ? ({ settle: "bridge" } as const) : {};
  const { line: path, baud } = target;
  refuseLine(target);
  // Only the service that is called: a missing one would delay the line.
  const line = path === undefined ? undefined : { path, services: [contract], ...(baud !== undefined && { baudRate: baud }) };
  return {
    url: target.url,
    apiKey,
    apiKeyFile: target.apiKeyFile,
    requireMerchantId: () => {
      if (merchantId !== undefined) return merchantId;
      throw new UsageError(
        "Cannot call fiscal: its requests are signed with the merchant's id: name the file that holds it with --merchant-id-file FILE " +
          "(root may read the service's, /etc/posline/credentials/merchant-id). Nothing was sent",
      );
    },
    client: () =>
      line === undefined ? createClient({ ...services, ...own, ...settle }) : createLineClient({ ...services, line }),
  };
}

/**
 * The flags of a line are checked as in every other command.
 * @throws ConfigError naming the flag.
 */
function refuseLine({ line, baud }: CallTarget): void {
  const problems: string[] = [];
  if (line !== undefined) check(lineSchema.properties.path, line, "--line", problems);
  if (baud !== undefined) check(lineSchema.properties.baudRate, baud, "--baud", problems);
  if (problems.length > 0) throw new ConfigError(problems);
}

/** The client's service that is called; the client was made with it. */
export function clientService(client: Client, { name }: CalledService): Client[ContractName] {
  const found = (client as unknown as Readonly<Record<string, Client[ContractName] | undefined>>)[name];
  if (found === undefined) throw new Error(`the client was made without ${name}`);
  return found;
}

/** What stands in the way of a connection, and what to do. */
export function unreachableText(unreachable: UnreachableReason, { name, contract }: CalledService, target: CallTarget): string {
  const url = new URL(target.url ?? `http://127.0.0.1:${contracts[contract].port}`);
  if (unreachable === "no-address") {
    return `Cannot call ${name}: the host name ${inQuotes(url.hostname)} has no address: check --url`;
  }
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const start =
    "start it with posline serve (as a service: sudo systemctl enable --now posline.socket posline), or name another place with --url";
  return `posline is not running on ${url.hostname}:${port}: ${start}`;
}

/** The flags that name the same target, quoted for a shell. */
export function targetFlags({ url, line, baud, config, merchantIdFile, apiKeyFile }: CallTarget): string {
  const flags = Object.entries({
    "--url": url,
    "--line": line,
    "--baud": baud,
    // Whole paths: the command may be pasted in another folder.
    "--config": wholePath(config),
    "--merchant-id-file": wholePath(merchantIdFile),
    "--api-key-file": wholePath(apiKeyFile),
  });
  return flags.flatMap(([flag, value]) => (value === undefined ? [] : [` ${flag} ${shellQuoted(String(value))}`])).join("");
}

const wholePath = (path: string | undefined) => (path === undefined || path === "-" ? path : resolve(path));

/** A word in single quotes, in which a shell expands nothing. */
export function shellQuoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** The secrets of a call, from files of their own or the bridge's configuration. */
async function secretsFor(
  { merchantIdFile, apiKeyFile }: CallTarget,
  services: Config["services"],
): Promise<Partial<Record<"merchantId" | "apiKey", string>>> {
  const merchantId = (await secretFrom(merchantIdFile)) ?? services.fiscal?.merchantId;
  const apiKey = (await secretFrom(apiKeyFile)) ?? services.bank?.apiKey;
  return { ...(merchantId !== undefined && { merchantId }), ...(apiKey !== undefined && { apiKey }) };
}

export async function secretFrom(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const secret = (await textFrom(file)).replace(/\r?\n$/, "");
  // Checked here, so that no error of a later check quotes the secret.
  if (!/^[\x20-\x7e]+$/.test(secret)) throw new UsageError(`Cannot use ${file}: it must hold one line of printable ASCII`);
  return secret;
}

/**
 * A file's text; `-` is standard input.
 * @param action What can't be done without it, in the message's words.
 * @throws UsageError naming the file.
 */
export async function textFrom(file: string, action = "Cannot read"): Promise<string> {
  try {
    return (file === "-" ? await standardInput() : readAtMost(file, inputBytesMax)).toString("utf8");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${action} ${inQuotes(file)}: ${reason(error, file)}`);
  }
}

async function standardInput(): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of process.stdin) {
    bytes += piece.length;
    if (bytes > inputBytesMax) throw new UsageError(`Cannot read standard input: it is larger than ${inputBytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
