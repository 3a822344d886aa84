import type { WriteStream } from "node:tty";
import spinner, { type Spinner } from "yocto-spinner";
import type { Client } from "../client/client.ts";
import { parseExactObject, scalarText, writeExactObject } from "../client/exact-json.ts";
import type { Settled, SettleEvent } from "../client/settle-types.ts";
import type { Token } from "../client/token.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import { replaceFile } from "../core/replace-file.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { type CallTarget, shellQuoted, targetFlags } from "./call-target.ts";
import { exitCodes, UsageError } from "./exit.ts";

/**
 * An operation followed from a shell. Its key is printed before anything is sent. Ctrl-C sends /abort, then only polls; a second
 * one, or the end of the session, leaves the operation as it is and prints the token to resume with.
 */

/** The exit code of an operation that ended declined, failed or reversed. */
export const declinedCode = 1;

export type SettleFunction = (options: {
  readonly onProgress: (event: SettleEvent) => void;
  readonly signal: AbortSignal;
  readonly askOnly: AbortSignal;
}) => Promise<Settled>;

export class CallFollower {
  readonly #target: CallTarget & { readonly tokenFile?: string | undefined };
  readonly #stopFollowing = new AbortController();
  readonly #askOnly = new AbortController();
  #progress: Progress | undefined;
  #latest: SettleEvent | undefined;

  constructor(target: CallTarget & { readonly tokenFile?: string | undefined }) {
    this.#target = target;
  }

  /** True once an operation may have been begun whose result wasn't printed. */
  get mayHaveBegun(): boolean {
    return this.#openToken !== undefined;
  }

  /** The token of that operation. Before its baseline is known nothing was sent. */
  get #openToken(): Token | undefined {
    const token = this.#latest?.token;
    return token?.known.phase === "baseline" ? undefined : token;
  }

  /** @returns the exit code. */
  async follow(client: Client, run: SettleFunction): Promise<number> {
    const progress = new Progress(process.stderr);
    this.#progress = progress;
    const interrupted = () => void this.#requestAbort(client);
    const terminated = () => this.#stopFollowing.abort();
    process.on("SIGINT", interrupted);
    for (const signal of terminationSignals) process.on(signal, terminated);
    try {
      const settled = await run({
        signal: this.#stopFollowing.signal,
        askOnly: this.#askOnly.signal,
        onProgress: (event) => this.#show(event),
      });
      progress.end(settled);
      process.stdout.write(`${printableJson(resultText(settled))}\n`);
      if (settled.result === "unknown") this.#printResume(settled.token);
      this.#latest = undefined;
      return exitCodeOfResult(settled);
    } finally {
      if (this.#openToken !== undefined) this.#printResume(this.#openToken);
      process.off("SIGINT", interrupted);
      for (const signal of terminationSignals) process.off(signal, terminated);
      progress.stop();
    }
  }

  #show(event: SettleEvent): void {
    const { tokenFile } = this.#target;
    if (tokenFile !== undefined) saveToken(event.token, tokenFile);
    if (this.#latest === undefined) this.#progress?.say(operationTitle(event.token));
    this.#latest = event;
    this.#progress?.show(event);
  }

  /** Asks the service to stop the operation, where it has a route for that, and says what it answered. */
  async #requestAbort(client: Client): Promise<void> {
    if (this.#askOnly.signal.aborted || this.#latest === undefined) return this.#stopFollowing.abort();
    this.#askOnly.abort();
    const { token } = this.#latest;
    const report = (text: string) => this.#progress?.say(`${text}; Ctrl-C again stops following`);
    const key = keyValueOf(token);
    try {
      if (token.service === "bank" && key !== undefined) await client.bank.abort({ pay_id: key });
      else if (token.service === "fiscal" && key !== undefined) await client.fiscal.abort({ documentExtID: key });
      else return report(`${token.service} has no way to abort it: following on`);
      report("asked /abort, which was accepted: following to the end");
    } catch (error) {
      report(`asked /abort: ${error instanceof Error ? error.message : String(error)}: following on`);
    }
  }

  #printResume(token: Token): void {
    const json = printableJson(JSON.stringify(token));
    process.stderr.write(`Resume it with: posline call --resume ${shellQuoted(json)}${targetFlags(this.#target)}\n`);
  }
}

/** How an operation goes, for a person: a spinner on a terminal, a line a step elsewhere. Keys and messages are text from outside. */
class Progress {
  readonly #stream: Pick<WriteStream, "write" | "isTTY">;
  readonly #spinner: Spinner | undefined;

  constructor(stream: WriteStream) {
    this.#stream = stream;
    if (stream.isTTY) this.#spinner = spinner({ stream, handleSignals: false, text: "starting" }).start();
  }

  show(event: SettleEvent): void {
    const { service, route } = event.token;
    const wait = event.waitMs === undefined ? "" : ` ${(event.waitMs / 1_000).toFixed(1)} s`;
    this.#write(`${service} ${route}: ${event.type}${event.type === "waiting" ? wait : ""}`);
  }

  /** A line that stays on the screen. */
  say(text: string): void {
    this.#spinner?.clear();
    this.#stream.write(`${printable(text)}\n`);
  }

  end({ result, message }: Settled): void {
    const text = printable(message === undefined ? result : `${result}: ${message}`);
    if (this.#spinner === undefined) this.#stream.write(`${text}\n`);
    else if (result === "approved" || result === "closed") this.#spinner.success(text);
    else if (result === "unknown" || result === "unprinted") this.#spinner.warning(text);
    else this.#spinner.error(text);
  }

  stop(): void {
    if (this.#spinner?.isSpinning) this.#spinner.stop();
  }

  #write(text: string): void {
    if (this.#spinner === undefined) this.#stream.write(`${text}\n`);
    else this.#spinner.text = text;
  }
}

/** The session or the service manager ends: the same as a second Ctrl-C. */
const terminationSignals = ["SIGTERM", "SIGHUP"] as const;

function exitCodeOfResult({ result, token }: Settled): number {
  if (result === "unknown") return exitCodes.unknown;
  // What couldn't be printed was sold nonetheless.
  if (result === "approved" || result === "closed" || result === "unprinted") return exitCodes.ok;
  if (result === "reversed" && token.route === "/cancel") return exitCodes.ok;
  return token.known.phase === "unsent" ? exitCodes.unavailable : declinedCode;
}

function resultText({ result, data, code, message, token }: Settled): string {
  const fields = { result, key: keyValueOf(token), code, message, data };
  return writeExactObject(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
}

/** The key of the operation; undefined where it has none. */
function keyValueOf({ service, route, body }: Token): string | undefined {
  const { key } = routeOf(contracts[service], route) ?? {};
  return key === undefined ? undefined : scalarText(parseExactObject(body)?.[key]);
}

function operationTitle(token: Token): string {
  const { key } = routeOf(contracts[token.service], token.route) ?? {};
  return `${token.service} ${token.route}: ${key ?? "key"} ${keyValueOf(token) ?? "none"}`;
}

/** Called before anything is sent: a token that can't be saved stops the call. */
function saveToken(token: Token, file: string): void {
  try {
    replaceFile(file, `${JSON.stringify(token)}\n`);
  } catch (error) {
    throw new UsageError(`Cannot keep the token in ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
