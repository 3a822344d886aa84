import type { Client } from "../client/client.ts";
import { parseExactObject, scalarText, writeExactObject } from "../client/exact-json.ts";
import type { Settled, SettleEvent } from "../client/settle-types.ts";
import type { Token } from "../client/token.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import { replaceFile } from "../core/replace-file.ts";
import { printableJson } from "../core/shell-text.ts";
import { type CallTarget, flagsOf, quoted } from "./call-target.ts";
import { exitCodes, UsageError } from "./exit.ts";
import { Progress } from "./progress.ts";

/**
 * An operation followed from a shell. Its key is told before anything is sent. Ctrl-C asks the service to abort it, from when on
 * it is only asked about; a second one, or the end of the session, leaves it as it is and prints what to go on with.
 */

/** The exit code of an operation that came to its end, and not to the wanted one. */
export const declinedCode = 1;

export type Follow = (options: {
  readonly onProgress: (event: SettleEvent) => void;
  readonly signal: AbortSignal;
  readonly askOnly: AbortSignal;
}) => Promise<Settled>;

export class Following {
  readonly #target: CallTarget & { readonly tokenFile?: string | undefined };
  readonly #leave = new AbortController();
  readonly #askOnly = new AbortController();
  #progress: Progress | undefined;
  #latest: SettleEvent | undefined;

  constructor(target: CallTarget & { readonly tokenFile?: string | undefined }) {
    this.#target = target;
  }

  /** True once an operation may have been begun whose end wasn't told. */
  get told(): boolean {
    return this.#open !== undefined;
  }

  /** The token of that operation. Before its baseline is known nothing was sent. */
  get #open(): Token | undefined {
    const token = this.#latest?.token;
    return token?.known.phase === "baseline" ? undefined : token;
  }

  /** @returns the exit code. */
  async follow(client: Client, run: Follow): Promise<number> {
    const progress = new Progress(process.stderr);
    this.#progress = progress;
    const interrupted = () => void this.#interrupted(client);
    const ended = () => this.#leave.abort();
    process.on("SIGINT", interrupted);
    for (const signal of leavingSignals) process.on(signal, ended);
    try {
      const settled = await run({
        signal: this.#leave.signal,
        askOnly: this.#askOnly.signal,
        onProgress: (event) => this.#show(event),
      });
      progress.end(settled);
      process.stdout.write(`${printableJson(textOfSettled(settled))}\n`);
      if (settled.result === "unknown") this.#printResume(settled.token);
      this.#latest = undefined;
      return codeOf(settled);
    } finally {
      if (this.#open !== undefined) this.#printResume(this.#open);
      process.off("SIGINT", interrupted);
      for (const signal of leavingSignals) process.off(signal, ended);
      progress.stop();
    }
  }

  #show(event: SettleEvent): void {
    const { tokenFile } = this.#target;
    if (tokenFile !== undefined) keep(event.token, tokenFile);
    if (this.#latest === undefined) this.#progress?.say(keyOf(event.token));
    this.#latest = event;
    this.#progress?.show(event);
  }

  /** Asks the service to stop the operation, where it has a route for that, and says what it answered. */
  async #interrupted(client: Client): Promise<void> {
    if (this.#askOnly.signal.aborted || this.#latest === undefined) return this.#leave.abort();
    this.#askOnly.abort();
    const { token } = this.#latest;
    const said = (text: string) => this.#progress?.say(`${text}; Ctrl-C again stops following`);
    const key = nameOf(token);
    try {
      if (token.service === "bank" && key !== undefined) await client.bank.abort({ pay_id: key });
      else if (token.service === "fiscal" && key !== undefined) await client.fiscal.abort({ documentExtID: key });
      else return said(`${token.service} has no way to abort it: following on`);
      said("asked /abort, which was accepted: following to the end");
    } catch (error) {
      said(`asked /abort: ${error instanceof Error ? error.message : String(error)}: following on`);
    }
  }

  #printResume(token: Token): void {
    const json = printableJson(JSON.stringify(token));
    process.stderr.write(`Resume it with: posline call --resume ${quoted(json)}${flagsOf(this.#target)}\n`);
  }
}

/** The session or the service manager ends: as a second Ctrl-C. */
const leavingSignals = ["SIGTERM", "SIGHUP"] as const;

function codeOf({ result, token }: Settled): number {
  if (result === "unknown") return exitCodes.unknown;
  // What couldn't be printed was sold all the same.
  if (result === "approved" || result === "closed" || result === "unprinted") return exitCodes.ok;
  if (result === "reversed" && token.route === "/cancel") return exitCodes.ok;
  return token.known.phase === "unsent" ? exitCodes.unavailable : declinedCode;
}

function textOfSettled({ result, data, code, message, token }: Settled): string {
  const fields = { result, key: nameOf(token), code, message, data };
  return writeExactObject(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
}

/** The key of the operation; undefined where it has none. */
function nameOf({ service, route, body }: Token): string | undefined {
  const { key } = routeOf(contracts[service], route) ?? {};
  return key === undefined ? undefined : scalarText(parseExactObject(body)?.[key]);
}

function keyOf(token: Token): string {
  const { key } = routeOf(contracts[token.service], token.route) ?? {};
  return `${token.service} ${token.route}: ${key ?? "key"} ${nameOf(token) ?? "none"}`;
}

/** Before anything is sent it must be there. */
function keep(token: Token, file: string): void {
  try {
    replaceFile(file, `${JSON.stringify(token)}\n`);
  } catch (error) {
    throw new UsageError(`Cannot keep the token in ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
