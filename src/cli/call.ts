import { resolve } from "node:path";
import type { Client } from "../client/client.ts";
import { CallError, NotSentError, RejectedError, UnknownError } from "../client/errors.ts";
import { methodName } from "../client/remote-service.ts";
import type { Settled } from "../client/settle-types.ts";
import { TokenFile, targetOfHeld } from "../client/token-file.ts";
import type { Route } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import { type ContractName, contractNames } from "../core/call.ts";
import { type ArgumentsOf, defineCommand, type FlagTable, type PositionalTable } from "../core/command.ts";
import { messageOf } from "../core/error-code.ts";
import { exitCodeOf, exitCodes, UsageError } from "../core/exit.ts";
import type { JsonObject } from "../core/json-object.ts";
import { nearest } from "../core/nearest.ts";
import { inQuotes, printableLines } from "../core/shell-text.ts";
import { parseExactObject, scalarText } from "../settle/exact-json.ts";
import { goesOn, isQuestion } from "../settle/proof.ts";
import { offerText, testTerminal } from "../trial/terminal-test.ts";
import { apiKeyVariable, type CurlRequest, curlCommand } from "./call-curl.ts";
import { CallFollower, declinedCode } from "./call-follow.ts";
import { printReply } from "./call-print.ts";
import {
  type CalledService,
  type CallTarget,
  calledService,
  clientService,
  readTarget,
  resumedService,
  type Target,
  textFrom,
  unreachableText,
} from "./call-target.ts";

/** `posline call`: one request to a service, or with `--wait` one operation followed to its end. */

export type CallArguments = CallTarget & ArgumentsOf<typeof flags, typeof positionals>;

/**
 * @returns the exit code: 0, 1 declined, failed or refused, 64 usage, 69 not sent, 75 unknown or not ended, 78 a configuration that can't
 * be used.
 */
export async function runCall(args: CallArguments): Promise<number> {
  const follower = new CallFollower(args);
  try {
    refuseWithoutWait(args);
    refuseCurl(args);
    return args.resume === undefined ? await runNew(args, follower) : await runResumed(args, args.resume, follower);
  } catch (error) {
    const code =
      exitCodeOf(error) ?? (error instanceof TypeError || error instanceof RangeError ? exitCodes.usage : exitCodes.bug);
    process.stderr.write(`${printableLines(messageOf(error))}\n`);
    // An error here doesn't end an operation that was begun.
    return follower.mayHaveBegun ? exitCodes.unknown : code;
  }
}

/**
 * Flags that say how an operation is followed have no meaning for one request.
 * @throws UsageError naming the flag.
 */
function refuseWithoutWait({ wait, resume, window, tokenFile, byBridge, line }: CallArguments): void {
  if (byBridge === true && (wait !== true || line !== undefined)) {
    throw new UsageError(
      "Cannot call: --by-bridge is only for an operation that is followed over HTTP: add --wait, without --line",
    );
  }
  if (wait === true || resume !== undefined) return;
  const flags = Object.entries({ "--window": window, "--token-file": tokenFile });
  const flag = flags.find(([, value]) => value !== undefined)?.[0];
  if (flag === undefined) return;
  throw new UsageError(`Cannot call: ${flag} is only for an operation that is followed: add --wait, or leave ${flag} out`);
}

/** @throws UsageError naming what can't be written as one curl command. */
function refuseCurl({ curl, wait, resume, line }: CallArguments): void {
  if (curl !== true) return;
  const flag = wait === true ? "--wait" : resume !== undefined ? "--resume" : line !== undefined ? "--line" : undefined;
  if (flag !== undefined) throw new UsageError(`Cannot call: --curl prints one HTTP request: leave ${flag} out`);
}

/** The file that a token is resumed from: it goes stale when the operation goes on, and is kept up to date like `--token-file`. */
function resumedFile({ resume }: CallArguments): string | undefined {
  return resume?.startsWith("@") === true && resume !== "@-" ? resume.slice(1) : undefined;
}

async function runNew(given: CallArguments, follower: CallFollower): Promise<number> {
  if (given.service === undefined)
    throw new UsageError(`Cannot call: name a service (${contractNames.join(", ")}) and a route`);
  const { service: called, args } = await calledService(given.service, given);
  if (args.route === testWord || args.route === `/${testWord}`) return runTest(called, args);
  const { contract: service } = called;
  const route = routeIn(service, args.route);
  const body = await bodyFor(args);
  const options = args.timeout === undefined ? {} : { timeoutMs: msOf("--timeout", args.timeout) };
  if (args.wait !== true) requireKey(service, route, body, args.curl === true);
  const file = args.tokenFile === undefined ? undefined : TokenFile.forNew(args.tokenFile);
  const target = await readTarget(args, called);
  if (args.curl === true) return printCurl({ service, route, body, target });
  if (needsMerchantId(args, service, route)) target.requireMerchantId();
  return withClient(target, async (client) => {
    if (!args.wait) return ask(client, { called, route, body, options }, args);
    // The operation's name is checked by settle, which knows all of them.
    const settle = clientService(client, called).settle as (
      operation: string,
      body: object,
      options: object,
    ) => Promise<Settled>;
    return follower.follow(client, args, file, (following) =>
      settle(methodName(route.path), body ?? {}, { ...following, ...windowOf(args) }),
    );
  });
}

/** Makes a client, which is closed when all is done. */
async function withClient(target: Target, run: (client: Client) => Promise<number>): Promise<number> {
  const client = target.client();
  return run(client).finally(() => client.close());
}

/** In place of a route: the contract's own harmless question, by which a terminal says what it offers. */
const testWord = "test";

async function runTest(called: CalledService, args: CallArguments): Promise<number> {
  const { body, file, wait, curl, json } = args;
  if (body !== undefined || file !== undefined || wait === true || curl === true) {
    throw new UsageError(
      `Cannot test ${called.name}: it is one question without a body: leave body, --file, --wait and --curl out`,
    );
  }
  const target = await readTarget(args, called);
  if (args.line !== undefined && called.contract === "fiscal") target.requireMerchantId();
  return withClient(target, async (client) => {
    try {
      const answer = await testTerminal(client, called);
      const text = `${called.name} answered in ${answer.ms} ms. It offers ${offerText(answer.offer)}`;
      if (json === true || process.stdout.isTTY !== true) printReply({ ...answer }, args);
      else process.stdout.write(`${printableLines(text)}\n`);
      return exitCodes.ok;
    } catch (error) {
      return failedCall(error, called, args);
    }
  });
}

async function printCurl(request: CurlRequest): Promise<number> {
  // Refuses an address that no request can be built of; it opens nothing
  await request.target.client().close();
  const command = await curlCommand(request);
  process.stdout.write(`${command}\n`);
  if (command.includes(apiKeyVariable) && process.env[apiKeyVariable.slice(1)] === undefined) {
    process.stderr.write(`Set ${apiKeyVariable.slice(1)} to the API key of bank before you run it\n`);
  }
  return exitCodes.ok;
}

/** Over HTTP what has no body isn't signed; on a line all of fiscal is. */
function needsMerchantId({ line }: CallArguments, service: ContractName, { body }: Route): boolean {
  return service === "fiscal" && (line !== undefined || body !== "none");
}

async function runResumed(given: CallArguments, text: string, follower: CallFollower): Promise<number> {
  if (given.service !== undefined || given.file !== undefined)
    throw new UsageError("Cannot resume: the token names service, route and body: leave them (and --file) out");
  const { token, placed, file } = await resumedFrom(text, given);
  const { service: called, args } = await resumedService(token, placed);
  const target = await readTarget(args, called);
  if (called.contract === "fiscal") target.requireMerchantId();
  return withClient(target, (client) =>
    follower.follow(client, args, file, (options) => client.resume(token, { ...options, ...windowOf(args) })),
  );
}

/**
 * Refuses a request that moves money and has no name to ask for it by.
 * @throws UsageError
 */
function requireKey(
  service: ContractName,
  { path, effect, key }: Route,
  body: JsonObject | undefined,
  isPrinted: boolean,
): void {
  if (effect !== "money" || key === undefined || scalarText(body?.[key]) !== undefined) return;
  throw new UsageError(
    `Cannot call ${service} ${path}: the body has no ${key}: give one${isPrinted ? "" : ", or --wait, which makes one"}`,
  );
}

/** A single request, which is not followed. */
interface OneRequest {
  readonly called: CalledService;
  readonly route: Route;
  readonly body: JsonObject | undefined;
  /** Milliseconds for the whole call. */
  readonly options: { readonly timeoutMs?: number };
}

/** Sends it, and prints its answer on standard output. */
async function ask(client: Client, { called, route, body, options }: OneRequest, args: CallArguments): Promise<number> {
  // Made of the same table whose routes these are.
  const methods = clientService(client, called) as unknown as Readonly<
    Record<string, (...given: readonly (object | undefined)[]) => Promise<JsonObject>>
  >;
  const method = methods[methodName(route.path)];
  if (method === undefined) throw new UsageError(`Cannot call ${called.name} ${route.path}: there is no such route`);
  try {
    const reply = route.body === "none" ? await method(options) : await method(body ?? {}, options);
    printReply(reply, args);
    if (!goesOn(contracts[called.contract], route.path, reply)) return exitCodes.ok;
    process.stderr.write(`${unendedText(called, route)}\n`);
    return exitCodes.unknown;
  } catch (error) {
    return failedCall(error, called, args);
  }
}

/** Prints a call's failure. @returns the exit code. */
function failedCall(error: unknown, called: CalledService, args: CallArguments): number {
  if (!(error instanceof CallError)) throw error;
  if (error instanceof RejectedError) printReply(error.reply, args);
  process.stderr.write(`${printableLines(failureText(error, called, args))}\n`);
  if (error instanceof NotSentError) return exitCodes.unavailable;
  const isOpen = error instanceof UnknownError || (error instanceof RejectedError && error.leavesOpen);
  return isOpen ? exitCodes.unknown : declinedCode;
}

/** What to do after a success that states no end. */
function unendedText({ name, contract }: CalledService, route: Route): string {
  const asked = contracts[contract];
  if (isQuestion(asked, route.path)) return "The operation has not ended: ask again";
  if (route.polling === undefined)
    return `The success has no ${asked.finals.field.join(".")}, which does not prove what was done: look it up before sending it again`;
  return `It has begun, and not ended: ask posline call ${name} ${route.polling.route.slice(1)}; --wait does so by itself`;
}

function failureText(error: CallError, service: CalledService, args: CallArguments): string {
  if (!(error instanceof NotSentError)) return `${error.message}\n${error.advice}`;
  const { unreachable } = error;
  if (unreachable !== undefined) return `${unreachableText(unreachable, service, args)}. Nothing was sent`;
  return `${error.message}\nNothing was sent: ${error.advice}`;
}

function routeIn(service: ContractName, route: string | undefined): Route {
  const { routes } = contracts[service];
  const found = routes.find(({ path }) => path === (route?.startsWith("/") ? route : `/${route ?? ""}`));
  if (found !== undefined) return found;
  const known = routes.map(({ path }) => path.slice(1));
  const all = `${service} has ${known.join(", ")}`;
  if (route === undefined) throw new UsageError(`Cannot call ${service}: name a route: ${all}`);
  const meant = nearest(route.replace(/^\//, ""), known);
  throw new UsageError(
    `Unknown route ${inQuotes(route)} of ${service}: ${meant === undefined ? all : `did you mean "${meant}"?`}`,
  );
}

async function bodyFor({ body: json, file }: CallArguments): Promise<JsonObject | undefined> {
  if (json !== undefined && file !== undefined)
    throw new UsageError("Cannot call: the body is given twice, as JSON and --file");
  const text = file === undefined ? json : await textFrom(file);
  if (text === undefined || text.trim() === "") return undefined;
  const body = parseExactObject(text);
  if (body === undefined) throw new UsageError("Cannot call: the body must be a JSON object");
  return body;
}

/** A token that was given, with where it goes on, and the file in which it is kept. */
interface Resumed {
  readonly token: unknown;
  readonly placed: CallArguments;
  readonly file: TokenFile | undefined;
}

async function resumedFrom(given: string, args: CallArguments): Promise<Resumed> {
  const path = resumedFile(args);
  const { tokenFile } = args;
  if (path !== undefined) {
    if (tokenFile !== undefined && resolve(tokenFile) !== resolve(path)) {
      throw new UsageError(
        `Cannot resume: @${path} is kept up to date itself, so that it is resumed once: leave --token-file out`,
      );
    }
    const { file, held } = TokenFile.resumed(path);
    return { token: held, placed: targetOfHeld(held, args), file };
  }
  const json = given === "@-" ? await textFrom("-", "Cannot resume: cannot read the token") : given;
  const file = tokenFile === undefined ? undefined : TokenFile.forNew(tokenFile);
  let token: unknown;
  try {
    token = JSON.parse(json);
  } catch {
    throw new UsageError("Cannot resume: the token is not JSON: give it as it was printed, in single quotes, or as @FILE");
  }
  return { token, placed: targetOfHeld(token, args), file };
}

function windowOf({ window }: CallArguments): { readonly windowMs?: number } {
  return window === undefined ? {} : { windowMs: msOf("--window", window) };
}

function msOf(flag: string, seconds: number): number {
  if (!(seconds > 0)) throw new UsageError(`Cannot call: ${flag} ${seconds} must be a number of seconds above 0`);
  return seconds * 1_000;
}

const positionals = {
  service: { describe: "The service: fiscal, bank or qr, or a name of its own in the configuration" },
  route: {
    describe: "The route, such as sale or check_status (posline call bank lists those of bank); test asks what it offers",
  },
  body: { describe: "The body, a JSON object in single quotes" },
} as const satisfies PositionalTable;

const flags = {
  url: {
    type: "string",
    example: "http://127.0.0.1:8888",
    describe: "URL of the service (default: its own port on 127.0.0.1)",
  },
  line: {
    type: "string",
    example: "/dev/ttyUSB0",
    conflicts: "url",
    describe: "Reach the terminal on this serial device directly, without a running posline",
  },
  baud: { type: "whole", example: "9600", describe: "Speed of --line in baud (default 115200)" },
  file: { type: "string", example: "body.json", describe: "Read the body from this file; - is standard input" },
  wait: { type: "boolean", describe: "Follow the operation until it has ended: ask again, and never charge or print twice" },
  "by-bridge": {
    type: "boolean",
    describe: "With --wait: let the running posline follow it (Prefer: wait), and send the same call again until it has ended",
  },
  timeout: {
    type: "number",
    example: "30",
    describe: "Limit the whole call to this many seconds; what was sent by then has an unknown outcome",
  },
  curl: { type: "boolean", describe: "Print the request as a curl command, signed where it has to be, and send nothing" },
  json: { type: "boolean", describe: "Print the result as JSON (default where the output is not a terminal)" },
  window: {
    type: "number",
    example: "180",
    describe: "With --wait or --resume: follow it for this many seconds (default 180)",
  },
  resume: {
    type: "string",
    example: "@token.json",
    describe: "Continue to follow an operation by its token: the JSON that was printed, or @FILE",
  },
  "token-file": {
    type: "string",
    example: "token.json",
    describe: "With --wait or --resume: keep the token for --resume in this file, always the latest",
  },
  config: { type: "string", example: "posline.json", describe: "Take merchantId and apiKey from this configuration file" },
  "merchant-id-file": {
    type: "string",
    example: "merchant-id",
    describe: "Sign fiscal requests with the merchant's id in this file",
  },
  "api-key-file": { type: "string", example: "api-key", describe: "Send the API key in this file to bank" },
} as const satisfies FlagTable;

export const callCommand = defineCommand({
  name: "call",
  describe: "Send one request to a service, or with --wait follow an operation to its end",
  positionals,
  flags,
  epilogue:
    "Exit codes: 0 done, 1 declined, failed, reversed or refused, 64 wrong usage, 69 not sent, 70 a bug, 75 outcome unknown, or by the " +
    "service's own answer not ended yet (with --wait a token to resume with is printed), 78 wrong configuration.",
  examples: [
    ["call bank test", "Does the terminal answer, how fast, and what does it offer?"],
    ["call bank terminals", "One request"],
    [`call bank sale '{"amount":1500,"currency_name":"EUR"}' --wait`, "A sale, followed to its end"],
  ],
  run: runCall,
});

/** What may follow on the command line, for the shell's completion. */
export function callCompletions(words: readonly string[]): readonly string[] {
  const [, service, ...rest] = words;
  const known = contractNames.find((name) => name === service);
  if (known === undefined) return contractNames;
  return rest.length > 1 ? [] : [testWord, ...contracts[known].routes.map(({ path }) => path.slice(1))];
}
