import { setImmediate as nextTurn } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import spinner, { type Spinner } from "yocto-spinner";
import type { Client } from "../client/client.ts";
import type { Settled, SettleEvent, SettleEventType } from "../client/settle-types.ts";
import { contractOfToken, type Token } from "../client/token.ts";
import { type TokenFile, TokenFileChanged } from "../client/token-file.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import { isDone, settlingRulesOf } from "../contract/settling.ts";
import { messageOf } from "../core/error-code.ts";
import { exitCodes } from "../core/exit.ts";
import type { JsonObject } from "../core/json-object.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { timerMsMax } from "../settle/clock.ts";
import { parseExactObject, scalarText } from "../settle/exact-json.ts";
import type { UnreachableReason } from "../settle/transport.ts";
import { printReply } from "./call-print.ts";
import {
  type CalledService,
  type CallTarget,
  clientService,
  shellQuoted,
  targetFlags,
  unreachableText,
} from "./call-target.ts";

/**
 * An operation followed from a shell. Its key is printed before anything is sent. Ctrl-C before that ends it, unsent; after that it sends
 * /abort, then only polls; a second one, or the end of the session, leaves the operation as it is and prints the token to resume with.
 */

/** The exit code of an operation that ended declined, failed or reversed. */
export const declinedCode = 1;

export type SettleFunction = (options: {
  readonly onProgress: (event: SettleEvent) => void;
  readonly signal: AbortSignal;
  readonly askOnly: AbortSignal;
  readonly aborted: AbortSignal;
}) => Promise<Settled>;

/** The target, and how it is followed. */
interface FollowTarget extends CallTarget {
  readonly json?: boolean | undefined;
  /** Seconds for the whole call. */
  readonly timeout?: number | undefined;
}

export class CallFollower {
  #target: FollowTarget;
  readonly #stopFollowing = new AbortController();
  readonly #askOnly = new AbortController();
  readonly #aborted = new AbortController();
  #progress: Progress | undefined;
  #latest: SettleEvent | undefined;
  /** The operation may have been sent, by this process or one before. */
  #mayBeSent = false;
  /** A request has left, or an answer come: from here on a service that can't be reached is waited for. */
  #reached = false;
  #unreachable: UnreachableReason | undefined;
  #file: TokenFile | undefined;
  /** Another process follows it: this one sends and writes nothing more. */
  #followedElsewhere: TokenFileChanged | undefined;
  #timedOut = false;

  constructor(target: FollowTarget) {
    this.#target = target;
  }

  /** True once an operation may have been begun whose result wasn't printed. */
  get mayHaveBegun(): boolean {
    return this.#openToken !== undefined;
  }

  /** The token of that operation. */
  get #openToken(): Token | undefined {
    return this.#mayBeSent ? this.#latest?.token : undefined;
  }

  /**
   * @param target Where the operation is sent: the printed command names it again.
   * @param file Where its token is kept.
   * @returns the exit code.
   */
  async follow(client: Client, target: CallTarget, file: TokenFile | undefined, run: SettleFunction): Promise<number> {
    this.#target = { ...this.#target, ...target };
    this.#file = file;
    if (file !== undefined) file.sentTo = target;
    const progress = new Progress(process.stderr);
    this.#progress = progress;
    const interrupted = () => void this.#requestAbort(client);
    const terminated = () => this.#stopFollowing.abort();
    const { timeout } = this.#target;
    const timedOut = () => {
      this.#timedOut = true;
      terminated();
    };
    const limit = timeout === undefined ? undefined : setTimeout(timedOut, Math.min(timeout * 1_000, timerMsMax));
    process.on("SIGINT", interrupted);
    for (const signal of terminationSignals) process.on(signal, terminated);
    try {
      const ended = await run({
        signal: this.#stopFollowing.signal,
        askOnly: this.#askOnly.signal,
        aborted: this.#aborted.signal,
        onProgress: (event) => this.#show(event),
      });
      const settled = { ...ended, result: this.#resultOf(ended), message: this.#endText(ended) };
      this.#saveEnd(ended, progress);
      if (wasByBridge(ended)) progress.say("followed by the bridge (Prefer: wait)");
      progress.end(settled);
      printReply(resultOf(settled), this.#target);
      if (settled.result === "unknown" && this.#followedElsewhere?.isSame !== true) this.#printResume(settled.token);
      this.#latest = undefined;
      return exitCodeOfResult(settled);
    } finally {
      clearTimeout(limit);
      if (this.#openToken !== undefined) this.#printResume(this.#openToken);
      // The exit code says how the operation ended, also to who stops this process while it ends by itself.
      for (const signal of ["SIGINT", ...terminationSignals] as const) process.on(signal, () => {});
      process.off("SIGINT", interrupted);
      for (const signal of terminationSignals) process.off(signal, terminated);
      progress.stop();
    }
  }

  #show(event: SettleEvent): void {
    this.#save(event.token);
    if (this.#latest === undefined) this.#progress?.say(operationTitle(event.token));
    const { type, token } = event;
    if (type === "sent" || type === "resent" || (type === "asked" && token.facts.some(({ is }) => is === "sent")))
      this.#mayBeSent = true;
    // Nothing was sent before, and this one provably didn't leave.
    if (type === "not sent" && this.#latest?.type === "sent") this.#mayBeSent = false;
    this.#latest = event;
    this.#progress?.show(event);
    if (event.type === "not sent" && event.unreachable !== undefined && !this.#reached) {
      // Nothing listens: a person has to start it, and waiting for that helps nobody
      this.#unreachable = event.unreachable;
      this.#stopFollowing.abort();
    } else if (event.type === "not sent" || event.type === "waiting" || event.type === "in progress") this.#reached = true;
  }

  /** Keeps the token: called before anything is sent, and one that can't be saved stops the call. */
  #save(token: Token, result?: Settled["result"]): void {
    if (this.#followedElsewhere !== undefined) return;
    try {
      this.#file?.save(token, result);
    } catch (error) {
      if (!(error instanceof TokenFileChanged)) throw error;
      this.#followedElsewhere = error;
      this.#stopFollowing.abort();
    }
  }

  /** Nothing may come between an operation and its result. */
  #saveEnd({ token, result }: Settled, progress: Progress): void {
    try {
      this.#save(token, result);
    } catch (error) {
      progress.say(messageOf(error));
    }
  }

  /** That this process sent nothing says nothing of what another one does that follows the same operation. */
  #resultOf({ result }: Settled): Settled["result"] {
    return result === "not-sent" && this.#followedElsewhere?.isSame === true ? "unknown" : result;
  }

  /** Why it ended, where that isn't the service's own word. */
  #endText({ result, message, token }: Settled): string | undefined {
    if (this.#followedElsewhere !== undefined) return this.#followedElsewhere.message;
    if (this.#timedOut && (result === "not-sent" || result === "unknown")) {
      const limit = `within ${this.#target.timeout} s (--timeout)`;
      return result === "not-sent" ? `nothing was sent ${limit}` : `no result ${limit}: the operation may go on`;
    }
    if (this.#unreachable === undefined) return message;
    const text = unreachableText(this.#unreachable, calledOf(token), this.#target);
    return result === "not-sent" ? `${text}. Nothing was sent` : `${text}. It was not asked what became of the operation`;
  }

  /** Asks the service to stop the operation, where it has a route for that, and says what it answered. */
  async #requestAbort(client: Client): Promise<void> {
    const token = this.#openToken;
    if (this.#askOnly.signal.aborted || token === undefined) return this.#stopFollowing.abort();
    this.#askOnly.abort();
    // What only waits for its line is taken back within this turn: there is nothing to abort then, and its key may be another operation's.
    await nextTurn();
    if (!this.#mayBeSent) return;
    if (this.#progress !== undefined) this.#progress.interrupt = "Ctrl-C stops following it";
    const report = (text: string) => {
      // The operation may have ended meanwhile.
      if (this.#latest !== undefined) this.#progress?.say(`${text}; Ctrl-C again stops following`);
    };
    const key = keyValueOf(token);
    try {
      const called = calledOf(token);
      // Qr has no such route.
      const { abort } = clientService(client, called) as unknown as { abort?(body: object): Promise<JsonObject> };
      if (abort !== undefined && key !== undefined) {
        await abort(called.contract === "fiscal" ? { documentExtID: key } : { pay_id: key });
      } else return report(`${token.service} has no way to abort it: following on`);
      this.#aborted.abort();
      report("asked /abort, which was accepted: following to the end");
    } catch (error) {
      report(`asked /abort: ${messageOf(error)}: following on`);
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
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #beganMs = performance.now();
  #step = "starting";
  /** Why it was not sent last, which is said once. */
  #why: string | undefined;
  /** What Ctrl-C does now. */
  interrupt = "Ctrl-C asks the terminal to abort it";

  constructor(stream: WriteStream) {
    this.#stream = stream;
    if (!stream.isTTY) return;
    this.#spinner = spinner({ stream, handleSignals: false, text: "starting" }).start();
    this.#timer = setInterval(() => this.#tick(), 1_000).unref();
  }

  show(event: SettleEvent): void {
    const { service, route } = event.token;
    if (event.type === "not sent" && event.unreachable === undefined && event.message !== this.#why) {
      this.#why = event.message;
      this.say(`${service} ${route}: not sent: ${event.message}`);
      if (this.#spinner === undefined) return;
    }
    const wait = event.waitMs === undefined ? "" : ` ${(event.waitMs / 1_000).toFixed(1)} s`;
    this.#write(`${service} ${route}: ${eventWords[event.type]}${event.type === "waiting" ? wait : ""}`);
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
    clearInterval(this.#timer);
    if (this.#spinner?.isSpinning) this.#spinner.stop();
  }

  #write(text: string): void {
    this.#step = text;
    if (this.#spinner === undefined) this.#stream.write(`${text}\n`);
    else this.#tick();
  }

  /** The step, how long the whole has taken, and what Ctrl-C does. */
  #tick(): void {
    const seconds = Math.floor((performance.now() - this.#beganMs) / 1_000);
    if (this.#spinner !== undefined) this.#spinner.text = `${this.#step} (${seconds} s; ${this.interrupt})`;
  }
}

/** How an event is called: what comes before it is done isn't done yet. */
const eventWords: Readonly<Record<SettleEventType, string>> = {
  sent: "sending",
  resent: "sending again with the same key",
  asked: "asking for the result",
  printing: "printing the copy",
  "not sent": "not sent",
  "in progress": "in progress",
  waiting: "waiting",
  final: "ended",
};

/** The session or the service manager ends: the same as a second Ctrl-C. */
const terminationSignals = ["SIGTERM", "SIGHUP"] as const;

/** Whether the bridge followed it to its end; questions from here are shown as they are asked. */
function wasByBridge({ steps }: Settled): boolean {
  return steps.at(-1)?.byBridge === true;
}

function exitCodeOfResult({ result, token }: Settled): number {
  if (result === "unknown") return exitCodes.unknown;
  const contract = contractOfToken(token);
  // What couldn't be printed was sold nonetheless.
  if (isDone(result, contract && settlingRulesOf(contract, token.route))) return exitCodes.ok;
  return result === "not-sent" ? exitCodes.unavailable : declinedCode;
}

function resultOf({ result, data, code, message, trans, token }: Settled): JsonObject {
  const fields = { result, key: keyValueOf(token), trans, code, message, data };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

const calledOf = (token: Token): CalledService => ({ name: token.service, contract: contractOfToken(token) ?? "bank" });

function keyNameOf(token: Token): string | undefined {
  const contract = contractOfToken(token);
  return contract === undefined ? undefined : routeOf(contracts[contract], token.route)?.key;
}

/** The key of the operation; undefined where it has none. */
function keyValueOf(token: Token): string | undefined {
  const key = keyNameOf(token);
  return key === undefined ? undefined : scalarText(parseExactObject(token.body)?.[key]);
}

function operationTitle(token: Token): string {
  const key = keyNameOf(token);
  return `${token.service} ${token.route}: ${key ?? "key"} ${keyValueOf(token) ?? "none"}`;
}
