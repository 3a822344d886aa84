import type { CommandModule, Options } from "yargs";
import { createClient } from "../app/client.ts";
import type { Client } from "../client/client.ts";
import { CallError, NotSentError, UnknownError } from "../client/errors.ts";
import { type JsonObject, parseObject, writeObject } from "../client/exact-json.ts";
import type { Settled, SettleEvent } from "../client/settled.ts";
import { loadConfig } from "../config/load.ts";
import { readAtMost, reason } from "../config/secrets.ts";
import { contracts } from "../contract/contracts.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import { exitCodes } from "./exit.ts";
import { Progress } from "./progress.ts";

/** `posline call`: one request to a service, or with `--wait` one operation followed to its end. */

export interface CallArguments {
  readonly service?: ServiceName | undefined;
  readonly route?: string | undefined;
  readonly json?: string | undefined;
  readonly url?: string | undefined;
  readonly line?: string | undefined;
  readonly baud?: number | undefined;
  readonly file?: string | undefined;
  readonly wait?: boolean | undefined;
  readonly window?: number | undefined;
  readonly resume?: string | undefined;
  readonly config?: string | undefined;
  readonly merchantIdFile?: string | undefined;
  readonly apiKeyFile?: string | undefined;
}

/** The exit code of an operation that came to its end, and not to the wanted one. */
const declinedCode = 1;

/** A body, a token or a secret from a file: as much as a service takes. */
const inputBytesMax = 1_048_576;

/** What is wrong with how the command was called. */
class UsageError extends Error {
  readonly exitCode: number = exitCodes.usage;
}

/** @returns the exit code: 0, 1 for declined, 64 usage, 69 not sent, 75 unknown, 78 for a configuration that can't be used. */
export async function runCall(args: CallArguments): Promise<number> {
  const client = await clientFor(args);
  try {
    if (args.resume !== undefined) {
      const token = await tokenIn(args.resume);
      return await follow(client, (options) => client.resume(token, options));
    }
    const { service, route } = routeOf(args);
    const body = await bodyFor(args);
    if (!args.wait) return await ask(client, service, route, body);
    const settle = client[service].settle as (operation: string, body: object, options: object) => Promise<Settled>;
    return await follow(client, (options) => settle(methodOf(route), body ?? {}, { ...options, ...windowOf(args) }));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(error.message);
  } finally {
    await client.close();
  }
}

/** One request; its answer on standard output. */
async function ask(client: Client, service: ServiceName, route: string, body: JsonObject | undefined): Promise<number> {
  const methods = client[service] as unknown as Readonly<Record<string, (body?: object) => Promise<JsonObject>>>;
  const method = methods[methodOf(route)];
  if (method === undefined) throw new UsageError(`Cannot call ${service} ${route}: there is no such route`);
  const takesBody = contracts[service].routes.find(({ path }) => path === route)?.body !== "none";
  try {
    out(writeObject(takesBody ? await method(body ?? {}) : await method()));
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if ("reply" in error) out(writeObject(error.reply as JsonObject));
    process.stderr.write(`${error.message}\n${error.advice}\n`);
    if (error instanceof NotSentError) return exitCodes.unavailable;
    return error instanceof UnknownError ? exitCodes.unknown : declinedCode;
  }
}

type Follow = (options: { onProgress: (event: SettleEvent) => void; signal: AbortSignal }) => Promise<Settled>;

/** Follows an operation; Ctrl-C asks the service to abort it and goes on following, a second one leaves it as it is. */
async function follow(client: Client, run: Follow): Promise<number> {
  const progress = new Progress(process.stderr);
  const leave = new AbortController();
  let latest: SettleEvent | undefined;
  let interrupts = 0;
  const interrupted = () => {
    interrupts++;
    if (interrupts > 1 || latest === undefined) leave.abort();
    else void abort(client, latest, progress);
  };
  process.on("SIGINT", interrupted);
  try {
    const settled = await run({
      signal: leave.signal,
      onProgress: (event) => {
        latest = event;
        progress.show(event);
      },
    });
    progress.end(settled);
    const { result, data, code, message, token } = settled;
    out(
      JSON.stringify({ result, ...(code !== undefined && { code }), ...(message !== undefined && { message }) }).slice(0, -1) +
        `${data === undefined ? "" : `,"data":${writeObject(data)}`}}`,
    );
    if (result === "unknown") process.stderr.write(`Resume it with: posline call --resume '${JSON.stringify(token)}'\n`);
    return codeOf(result);
  } finally {
    process.off("SIGINT", interrupted);
    progress.stop();
  }
}

function codeOf(result: Settled["result"]): number {
  if (result === "unknown") return exitCodes.unknown;
  // What couldn't be printed was sold all the same.
  return result === "approved" || result === "closed" || result === "unprinted" ? exitCodes.ok : declinedCode;
}

/** Asks the service to stop the operation, where it has a route for that, and says what it answered. */
async function abort(client: Client, { token }: SettleEvent, progress: Progress): Promise<void> {
  const body = parseObject(token.body) ?? {};
  const said = (text: string) => progress.say(`${text}; Ctrl-C again stops following`);
  try {
    if (token.service === "bank") await client.bank.abort({ pay_id: String(body["pay_id"]) });
    else if (token.service === "fiscal") await client.fiscal.abort({ documentExtID: String(body["documentExtID"]) });
    else return said("qr has no route that aborts: following on");
    said("asked /abort, which was accepted: following to the end");
  } catch (error) {
    said(`asked /abort: ${error instanceof Error ? error.message : String(error)}: following on`);
  }
}

async function clientFor(args: CallArguments): Promise<Client> {
  const { merchantId, apiKey } = await secretsFor(args);
  const target = args.url === undefined ? {} : { url: args.url };
  const secrets = {
    fiscal: { ...target, ...(merchantId !== undefined && { merchantId }) },
    bank: { ...target, ...(apiKey !== undefined && { apiKey }) },
    qr: target,
  };
  if (args.line === undefined) return createClient(secrets);
  return createClient({ ...secrets, line: { path: args.line, ...(args.baud !== undefined && { baudRate: args.baud }) } });
}

/** From a file of its own, the environment, or the bridge's configuration. */
async function secretsFor({
  merchantIdFile,
  apiKeyFile,
  config,
}: CallArguments): Promise<Partial<Record<"merchantId" | "apiKey", string>>> {
  const { env } = process;
  const services = config === undefined ? undefined : (await loadConfig({ env, flags: { config } })).config.services;
  const merchantId =
    (await secretIn(merchantIdFile ?? env["POSLINE_MERCHANT_ID_FILE"])) ??
    env["POSLINE_MERCHANT_ID"] ??
    services?.fiscal?.merchantId;
  const apiKey =
    (await secretIn(apiKeyFile ?? env["POSLINE_API_KEY_FILE"])) ?? env["POSLINE_API_KEY"] ?? services?.bank?.apiKey;
  return { ...(merchantId !== undefined && { merchantId }), ...(apiKey !== undefined && { apiKey }) };
}

function routeOf({ service, route }: CallArguments): { readonly service: ServiceName; readonly route: string } {
  if (service === undefined) throw new UsageError(`Cannot call: name a service (${serviceNames.join(", ")}) and a route`);
  const { routes } = contracts[service];
  const path = route?.startsWith("/") ? route : `/${route ?? ""}`;
  if (routes.some((each) => each.path === path)) return { service, route: path };
  throw new UsageError(`Cannot call ${service} ${route ?? ""}: it has ${routes.map((each) => each.path.slice(1)).join(", ")}`);
}

/** `/check_status` as the client names it, checkStatus. */
function methodOf(route: string): string {
  return route.slice(1).replaceAll(/[_-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

async function bodyFor({ json, file }: CallArguments): Promise<JsonObject | undefined> {
  if (json !== undefined && file !== undefined)
    throw new UsageError("Cannot call: the body is given twice, as JSON and --file");
  const text = file === undefined ? json : await fileText(file);
  if (text === undefined || text.trim() === "") return undefined;
  const body = parseObject(text);
  if (body === undefined) throw new UsageError("Cannot call: the body is no JSON object");
  return body;
}

/** `-` is standard input. */
async function fileText(file: string): Promise<string> {
  try {
    return (file === "-" ? await standardInput() : readAtMost(file, inputBytesMax)).toString("utf8");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot read ${file}: ${reason(error, file)}`);
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

async function secretIn(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : (await fileText(file)).replace(/\r?\n$/, "");
}

async function tokenIn(text: string): Promise<unknown> {
  try {
    return JSON.parse(text.startsWith("@") ? await fileText(text.slice(1)) : text);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError("Cannot resume: the token is no JSON: give it as it was printed, in single quotes, or @FILE");
  }
}

const windowOf = ({ window }: CallArguments) => (window === undefined ? {} : { windowMs: window * 1_000 });

function out(text: string): void {
  process.stdout.write(`${text}\n`);
}

const options = {
  url: { type: "string", requiresArg: true, describe: "Where the service is (default: its own port on 127.0.0.1)" },
  line: {
    type: "string",
    requiresArg: true,
    conflicts: "url",
    describe: "Speak to the terminal on this device, without a bridge",
  },
  baud: { type: "number", requiresArg: true, describe: "The line's speed in baud (default 115200)" },
  file: { type: "string", requiresArg: true, describe: "Read the body from this file; - is standard input" },
  wait: { type: "boolean", describe: "Follow the operation to its end, by the contract's recovery rules" },
  window: { type: "number", requiresArg: true, describe: "With --wait, follow it for so many seconds (default 180)" },
  resume: { type: "string", requiresArg: true, describe: "Follow an operation on, by the token that was printed, or @FILE" },
  config: { type: "string", requiresArg: true, describe: "Take merchantId and apiKey from this configuration file" },
  "merchant-id-file": {
    type: "string",
    requiresArg: true,
    describe: "Sign fiscal requests with the merchant's id in this file",
  },
  "api-key-file": { type: "string", requiresArg: true, describe: "Send bank the key in this file" },
} as const satisfies Record<string, Options>;

export const callCommand: CommandModule<object, CallArguments> = {
  command: "call [service] [route] [json]",
  describe: "Call a service once, or follow an operation to its end",
  builder: (yargs) =>
    yargs
      .positional("service", { choices: serviceNames, describe: "The service" })
      .positional("route", { type: "string", describe: "The route, such as sale or check_status" })
      .positional("json", { type: "string", describe: "The body" })
      .options(options)
      .epilogue("Exit codes: 0 done, 1 declined, 64 usage, 69 not sent, 75 unknown (a token to resume with is printed).")
      .example("$0 call bank terminals", "One request")
      .example(`$0 call bank sale '{"amount":1500,"currency_name":"EUR"}' --wait`, "A sale, followed to its end"),
  handler: async (args) => {
    try {
      process.exitCode = await runCall(args);
    } catch (error) {
      if (!(error instanceof Error) || !("exitCode" in error) || typeof error.exitCode !== "number") throw error;
      process.stderr.write(`${error.message}\n`);
      process.exitCode = error.exitCode;
    }
  },
};

/** What may follow on the command line, for the shell's completion. */
export function completionsOf(words: readonly string[]): readonly string[] {
  const [, service, ...rest] = words;
  const known = serviceNames.find((name) => name === service);
  if (known === undefined) return serviceNames;
  return rest.length > 1 ? [] : contracts[known].routes.map(({ path }) => path.slice(1));
}
