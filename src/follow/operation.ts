import type { Contract, Route } from "../contract/contract.ts";
import type { RecoveryRules } from "../contract/recovery.ts";
import type { Call, Handler, Reply, ServiceName } from "../core/call.ts";
import { checkFirst, Fault } from "../core/fault.ts";
import type { Followed, OperationEnd } from "../core/followed.ts";
import { Presence } from "../core/presence.ts";
import { textOf } from "../envelope/json.ts";
import type { Clock } from "../settle/clock.ts";
import { RemoteService } from "../settle/remote-service.ts";
import { settleFrom } from "../settle/settle.ts";
import type { SettleState } from "../settle/state.ts";
import type { Token } from "../settle/token.ts";
import type { Answer, Transport, TransportRequest } from "../settle/transport.ts";
import type { Settled } from "../settle/types.ts";
import type { Turns } from "./turns.ts";

/**
 * One operation that is followed to its end: it is sent once, as its till wrote it, and then only asked about, by the same rules as
 * the client's `settle`.
 */

export interface OperationOptions {
  readonly contract: Contract;
  readonly service: ServiceName;
  readonly route: Route;
  readonly recovery: RecoveryRules;
  readonly merchantId: string | undefined;
  /** Where calls leave for the terminal now: a new configuration may have brought another line. */
  readonly handler: () => Handler;
  readonly turns: Turns;
  readonly clock: Clock;
  /** Ends the following. */
  readonly stop: AbortSignal;
  /** What is known of it, with the fields of its body that name it. */
  readonly token: Token;
  /** To be sent; undefined where it was sent before, and is only asked about. */
  readonly call: Call | undefined;
  readonly requestId: string;
  /** Milliseconds for which it is followed. */
  readonly windowMs: number;
}

/** None here: each call has a limit of its own, in the line. */
const timeoutMs = Number.POSITIVE_INFINITY;

export class Operation {
  /** Settles when nothing more is asked, and never rejects. */
  readonly ended: Promise<void>;
  /** Settles when its first sending has come to an end; at once where it was sent before, never where it ends unsent. */
  readonly started: Promise<void>;
  readonly #options: OperationOptions;
  readonly #askOnly = new AbortController();
  #call: Call | undefined;
  #known: SettleState;
  #startEnded = () => {};
  #start: Reply | Fault | undefined;
  #last: { readonly route: string; readonly reply: Reply } | undefined;
  #lastFault: Fault | undefined;
  #polls = 0;
  #end: OperationEnd | undefined;

  constructor(options: OperationOptions) {
    this.#options = options;
    this.#call = options.call;
    this.#known = options.token.known;
    this.started =
      options.call === undefined
        ? Promise.resolve()
        : new Promise((resolve) => {
            this.#startEnded = resolve;
          });
    this.ended = this.#run();
  }

  /** How it is proven to have ended; undefined while nothing is proven. */
  get end(): OperationEnd | undefined {
    return this.#end;
  }

  /** Another caller waits for it: its sending is refused only when all of them have left. */
  join(caller: Presence): void {
    this.#options.call?.caller.join(caller);
  }

  /** It may have reached the terminal. */
  get mayHaveBegun(): boolean {
    return this.#options.call === undefined || (this.#start !== undefined && outcomeOf(this.#start) !== "not-sent");
  }

  /**
   * The answer to whoever waits for it: the terminal's bytes that prove its end, or else what its sending was answered.
   * @param pastEnd How it had ended by the journal.
   * @throws Fault where its sending, or all that was asked, failed.
   */
  answer(isGuarded: boolean, pastEnd: OperationEnd | undefined): Reply {
    // Not sent now proves nothing of an earlier sending, where nobody could look for one.
    const proven = this.#options.call?.isUnguarded === true && !this.mayHaveBegun ? undefined : this.#end;
    const end = pastEnd ?? proven;
    const result = end ?? (this.#known.phase === "accepted" ? "pending" : "unknown");
    const isProven = end !== undefined && this.#last !== undefined;
    const shown = isProven ? this.#last?.reply : (this.#start ?? this.#last?.reply ?? this.#lastFault);
    const answerOf = shown === this.#start ? undefined : this.#last?.route;
    const followed: Followed = { result, answerOf, polls: this.#polls, isGuarded };
    if (shown === undefined) throw this.#nothingToShow(followed);
    if (shown instanceof Fault) throw new Fault(shown.kind, shown.message, { ...shown.details, followed });
    return { ...shown, followed };
  }

  #nothingToShow(followed: Followed): Fault {
    const { route } = this.#options;
    const what = followed.result === "unknown" ? "how it ended is not known" : `it ended as ${followed.result}`;
    const message = `Cannot show an answer to ${route.path}: it was sent before, ${what}, and no question about it was answered`;
    return new Fault("broken", message, { reason: "no-reply", followed });
  }

  async #run(): Promise<void> {
    const { contract, service: name, merchantId, token, windowMs, clock, stop: signal, call } = this.#options;
    const transport: Transport = { send: (request) => this.#send(request), close: async () => {} };
    const service = new RemoteService({ contract, name, transport, merchantId, timeoutMs });
    const onProgress = (event: { readonly token: Token }) => {
      this.#known = event.token.known;
    };
    const settled = await settleFrom(service, token, call !== undefined, {
      windowMs,
      clock,
      signal,
      askOnly: this.#askOnly.signal,
      onProgress,
    });
    this.#known = settled.token.known;
    this.#end = this.#endOf(settled);
  }

  #endOf({ result }: Settled): OperationEnd | undefined {
    if (result === "unknown") return undefined;
    if (result === "not-sent") return "failed";
    const { contract, recovery } = this.#options;
    const code = this.#last?.reply.code;
    const isAbsent = code !== undefined && contract.finals.absentCodes.includes(code);
    return result === recovery.refused && isAbsent ? "failed" : result;
  }

  /** The sending goes out as its till wrote it; a question as the machine wrote it, behind all that wait. */
  async #send({ route, body }: TransportRequest): Promise<Answer> {
    const call = this.#call;
    if (route === this.#options.route.path) {
      if (call === undefined) throw new Error(`Cannot send ${route} again: it was sent before`);
      this.#call = undefined;
      // From here on nothing is sent any more that could begin it.
      this.#askOnly.abort();
      // Asked about a moment ago: what is found under its key from now on is its own, and its record says so.
      const isFresh = this.#options.recovery.baseline && this.#known.baseline === "";
      this.#start = await this.#tried(isFresh ? { ...call, isFresh } : call);
      // What was asked before it proves nothing of its end.
      this.#last = this.#start instanceof Fault ? undefined : { route, reply: this.#start };
      this.#startEnded();
      return answerOf(this.#start);
    }
    this.#polls++;
    const { service, contract, requestId, turns } = this.#options;
    const question: Call = {
      service,
      contract: contract.service,
      route,
      body: body === undefined ? [] : [Buffer.from(body)],
      requestId,
      key: undefined,
      caller: new Presence(),
      background: true,
    };
    const ending = await turns.take(() => this.#tried(question));
    if (ending instanceof Fault) this.#lastFault = ending;
    else this.#last = { route, reply: ending };
    return answerOf(ending);
  }

  /** The reply's bytes are copied: they are a view of a line's memory, of which a few would keep much. */
  async #tried(call: Call): Promise<Reply | Fault> {
    try {
      const reply = await this.#options.handler()(call);
      return { ...reply, payload: [Buffer.concat(reply.payload)] };
    } catch (error) {
      if (error instanceof Fault) return error;
      const advice = checkFirst[call.contract];
      return new Fault("broken", `Cannot answer: internal error in posline, please report it (${String(error)}). ${advice}`);
    }
  }
}

const outcomeOf = (ending: Reply | Fault) => (ending instanceof Fault ? ending.outcome : "answered");

function answerOf(ending: Reply | Fault): Answer {
  if (!(ending instanceof Fault)) {
    const text = textOf(ending.payload);
    return { outcome: "answered", text, httpStatus: undefined, retryAfterMs: undefined, reason: undefined, failure: undefined };
  }
  const { outcome, httpStatus, reason, message, details } = ending;
  const retryAfterMs = details.retryAfterS === undefined ? undefined : details.retryAfterS * 1_000;
  return { outcome, text: undefined, httpStatus, retryAfterMs, reason, failure: message };
}
