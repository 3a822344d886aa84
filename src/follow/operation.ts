import type { Contract, Route } from "../contract/contract.ts";
import type { SettlingRules } from "../contract/settling.ts";
import type { Call, Handler, Reply, ServiceName } from "../core/call.ts";
import { foundElsewhere, isElsewhere, sentByOthers, sentElsewhere } from "../core/device-mark.ts";
import { askAgain, checkFirst, Fault, nothingSent } from "../core/fault.ts";
import { type Followed, isGoodEnd, type OperationEnd, type PastOperation } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import { Presence } from "../core/presence.ts";
import { parseObject, textOf } from "../envelope/json.ts";
import type { Clock } from "../settle/clock.ts";
import { parseExactObject } from "../settle/exact-json.ts";
import { type FollowedOperation, namesOtherKey, statesEnd } from "../settle/proof.ts";
import { RemoteService } from "../settle/remote-service.ts";
import { operationOf, settleFrom } from "../settle/settle.ts";
import { provenName, type SettleState } from "../settle/state.ts";
import { readToken, type Token } from "../settle/token.ts";
import type { Answer, Transport, TransportRequest } from "../settle/transport.ts";
import type { Settled, SettleEvent } from "../settle/types.ts";
import type { Turns } from "./turns.ts";

/**
 * One operation that is followed to its end: it is sent once, as its till wrote it, and then only asked about, by the same rules as
 * the client's `settle`.
 */

/** What is known of an operation while it is followed; undefined where no journal is kept. */
export interface HistoryOfOne {
  /** As it was sent last; before it is sent that is another one. */
  readonly now: () => PastOperation | undefined;
  /** The order of what was sent last under its key. */
  readonly lastOrder: () => number | undefined;
  /** Whether another one under its key has no known end, and whether that may be carried out yet. */
  readonly othersOpen: () => "recent" | "old" | undefined;
  /** Whether the terminal is known to have had any operation under its key. */
  readonly hadAny: () => boolean;
  /** Whether the terminal on this device may have operations of another service. */
  readonly mayHaveOthers: (device: string) => boolean;
  /** The order of what another service sent last under its key over this device; undefined where there is none. */
  readonly othersOrder: (device: string) => number | undefined;
  /** An answer said that the terminal has it, which was the last under its key until this order. */
  readonly accepted: (order: number) => void;
}

/** How a service is asked. */
export interface Present {
  readonly contract: Contract;
  /** Where calls leave for the terminal. */
  readonly handler: Handler;
  /** Signs the questions of a fiscal service. */
  readonly merchantId: string | undefined;
  /** The mark of the device that this is over, where it is known. */
  readonly device?: string | undefined;
  readonly turns: Turns;
}

export interface OperationOptions {
  readonly contract: Contract;
  readonly service: ServiceName;
  readonly route: Route;
  readonly recovery: SettlingRules;
  /** How its service is asked now: a new configuration may have brought another line, or even another contract. */
  readonly present: () => Present;
  readonly clock: Clock;
  /** Ends the following. */
  readonly stop: AbortSignal;
  /** What is known of it, with the fields of its body that name it. */
  readonly token: Token;
  /** Of its body. */
  readonly digest: string;
  /** To be sent; undefined where it was sent before, and is only asked about. */
  readonly call: Call | undefined;
  /** Whether it was looked up what was sent before: not without a journal that can be read. */
  readonly isGuarded: boolean;
  /** As it was sent before; undefined where it is to be sent. */
  readonly past: PastOperation | undefined;
  readonly history: HistoryOfOne;
  readonly requestId: string;
  /** Milliseconds for which it is followed. */
  readonly windowMs: number;
}

/** Numbers the questions of the process. */
let askedTimes = 0;

/** Characters of a call's id that its questions' ids begin with: with a number behind them they are no longer than an id may be. */
const idCharsMax = 48;

/**
 * Milliseconds for which what isn't sent yet waits at least for its question's turn, behind what else is asked on its line: as for the
 * answer to one (bank.md, 30 s).
 */
const turnMs = 30_000;

/**
 * Milliseconds beyond its caller's wait that an operation may be asked about before it is sent, once that was answered by "there is none":
 * for two questions more to a terminal that takes some seconds for each. A short wait would never send it otherwise.
 */
const countMs = 15_000;

/** How a question ended, and over which device it was asked. */
interface Asked {
  readonly ending: Reply | Fault;
  readonly device: string | undefined;
  /** Why nothing is taken from what it would have been answered, in words. */
  readonly notTaken?: string;
}

/** None here: each call has a limit of its own, in the line. */
const timeoutMs = Number.POSITIVE_INFINITY;

export class Operation {
  /** Settles when nothing more is asked, and never rejects. */
  readonly ended: Promise<void>;
  /** Settles when its first sending has come to an end; at once where it was sent before, never where it ends unsent. */
  readonly started: Promise<void>;
  /** The order of its sending; where it is only asked about, of what was sent last under its key. */
  order: number;
  readonly #options: OperationOptions;
  /** As its answers may name it. */
  readonly #named: Pick<FollowedOperation, "keyField" | "key">;
  /** It was aborted at the terminal. */
  readonly #aborted = new AbortController();
  /** It is given up before it is sent, or nothing is followed any more. */
  readonly #giveUp = new AbortController();
  #call: Call | undefined;
  /** Who waits for it, as whom it is sent. */
  #caller: Presence;
  /** Until when they wait, on the clock's scale. */
  #untilMs = 0;
  #sentOver: string | undefined;
  /** What was asked before its sending was asked over this device, when this was the last order under its key. */
  #askedOver: string | undefined;
  #askedAtOrder: number | undefined;
  /** Right before its sending the terminal denied what it is known to have had under its key. */
  #wasDenied = false;
  #known: SettleState;
  #startEnded = () => {};
  #start: Reply | Fault | undefined;
  #last: { readonly route: string; readonly reply: Reply } | undefined;
  /** How the last question failed that did. */
  #lastFault: Fault | undefined;
  /** Why nothing was taken from the answer to that question, in words; undefined where none came. */
  #notTaken: string | undefined;
  #polls = 0;
  #end: OperationEnd | undefined;
  /** What this following itself learned of it. */
  #found: Settled["result"] | undefined;

  constructor(options: OperationOptions) {
    this.#options = options;
    this.#named = operationOf(options.contract, readToken(options.token));
    this.#call = options.call;
    this.#caller = options.call?.caller ?? new Presence();
    this.#sentOver = options.past?.device;
    this.#known = options.token.known;
    this.order = options.history.lastOrder() ?? 0;
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

  /** Nothing was sent under its key since. */
  get #isNewest(): boolean {
    return (this.#options.history.lastOrder() ?? this.order) <= this.order;
  }

  /** Nor may anything else be on its way: what is answered about the key is about this operation. */
  get #isLast(): boolean {
    const { digest } = this.#options;
    const now = this.#now ?? this.#options.past;
    return now?.isLast !== false && (now?.digest ?? digest) === digest && this.#isNewest;
  }

  /** How it ended as the journal has it by now: by what others asked about it, too. */
  get #recordedEnd(): OperationEnd | undefined {
    return this.#now?.digest === this.#options.digest ? this.#now.end : undefined;
  }

  /** How it ended. Where the same was sent once more since, by what all of that says together. */
  get #knownEnd(): OperationEnd | undefined {
    const known = this.#recordedEnd;
    if ((this.mayHaveBegun && !this.#isNewest) || isGoodEnd(known)) return known;
    return this.#options.past?.end ?? (this.#mayBeAnother ? undefined : this.#end);
  }

  /** A caller waits for it until then: its sending is refused only when all of them have left. */
  join(caller: Presence, untilMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, untilMs);
    // There is no sending that its leaving could take back, and each that asks again meanwhile would be kept until the end.
    if (this.#options.call === undefined || this.#start !== undefined) return;
    // Whose call it was has left before it was sent: it is this one's now.
    if (this.#call !== undefined && this.#caller.gone) this.#caller = caller;
    else this.#caller.join(caller);
  }

  /** The terminal has it. Where what was known under its key before isn't known, that may be what the terminal has. */
  get #isAccepted(): boolean {
    const { phase, baseline } = this.#known;
    const isBeforeKnown = baseline !== undefined && !this.#wasDenied;
    return (phase === "accepted" || this.#now?.isAccepted === true) && isBeforeKnown && this.#isLast;
  }

  /** What the journal has of it by now: others may have asked about it, or aborted it. */
  get #now(): PastOperation | undefined {
    return this.mayHaveBegun ? this.#options.history.now() : undefined;
  }

  /** It may have reached the terminal. */
  get mayHaveBegun(): boolean {
    return this.#options.call === undefined || (this.#start !== undefined && outcomeOf(this.#start) !== "not-sent");
  }

  /** It wasn't sent, which proves nothing of another sending under its key, where there was one, or nobody could look for one. */
  get #mayBeAnother(): boolean {
    if (this.mayHaveBegun) return false;
    const { isGuarded, history } = this.#options;
    const other = history.now();
    const isThere = other !== undefined && other.end !== "failed";
    return !isGuarded || isThere || (this.#start instanceof Fault && this.#start.details.sentBefore === true);
  }

  /**
   * The answer to whoever waits for it: the terminal's bytes that prove its end, or else what its sending was answered.
   * @param canBeFound Whether what was sent before could be looked up.
   * @throws Fault where its sending, or all that was asked, failed.
   */
  answer(canBeFound: boolean): Reply {
    const isGuarded = canBeFound && this.#now?.isRecorded !== false;
    const end = this.#knownEnd;
    const result = end ?? (this.#isAccepted ? "pending" : "unknown");
    if (this.#call !== undefined) return this.#unsent({ result, answerOf: undefined, polls: this.#polls, isGuarded });
    // Of what is known to have ended well, by others' questions, the terminal may know nothing any more, or something else.
    const saysGoodEnd = this.#last?.reply.status === "success" && this.#statesEnd(this.#last);
    const isDenied = isGoodEnd(end) && end !== this.#found && !saysGoodEnd;
    // What a question found that states an end, and isn't taken for this one's, is another's: it is not shown beside an open word.
    const isOthers = end === undefined && this.#last?.route !== this.#options.route.path && this.#statesEnd(this.#last);
    const last = this.#isLast && !isDenied && !isOthers ? this.#last : undefined;
    const start = isDenied && !(this.#start instanceof Fault) && this.#start?.status !== "success" ? undefined : this.#start;
    const shown = end !== undefined && last !== undefined ? last.reply : (start ?? last?.reply);
    const answerOf = shown === start ? undefined : last?.route;
    const followed: Followed = { result, answerOf, polls: this.#polls, isGuarded, trans: this.#trans };
    if (shown === undefined) throw this.#nothingToShow(followed);
    if (shown instanceof Fault) throw new Fault(shown.kind, shown.message, { ...shown.details, followed });
    return { ...shown, followed };
  }

  /**
   * The name that is proven (qr: `trans`). Another sending, since then, may have shown another code: until a question by the name has found it
   * paid, none is.
   */
  get #trans(): string | undefined {
    return this.#now?.hasOtherNames === true && !isGoodEnd(this.#found) ? undefined : provenName(this.#known);
  }

  #statesEnd(last: { readonly route: string; readonly reply: Reply } | undefined): boolean {
    if (last === undefined) return false;
    const { route, reply } = last;
    return statesEnd(this.#options, route, { reply: objectOf(reply), success: reply.status === "success" });
  }

  /**
   * The answer where it wasn't sent: what the terminal refused to say of its key, or why nobody knows that.
   * @throws Fault
   */
  #unsent(followed: Followed): Reply {
    const { route, recovery, stop } = this.#options;
    const [last, fault] = [this.#last, this.#lastFault];
    if (fault?.outcome === "not-sent") throw new Fault(fault.kind, fault.message, { ...fault.details, followed });
    const code = last?.reply.code;
    if (fault === undefined && last !== undefined && code !== undefined && recovery.refusals.includes(code)) {
      return { ...last.reply, followed: { ...followed, answerOf: last.route } };
    }
    const unproven = this.#notTaken ?? "the terminal did not answer";
    const state = fault === undefined ? "has not ended yet" : `is not known, since ${unproven}`;
    const why = stop.aborted
      ? "posline is shutting down"
      : `what stands under its ${route.key} ${state}: send the same call again`;
    const reason = stop.aborted ? "stopping" : "waited-too-long";
    throw new Fault("unavailable", `Cannot send ${route.path}: ${why}. ${nothingSent}`, { reason, followed });
  }

  /** A question's fault speaks of itself alone: that it wasn't sent, or changed nothing, would be taken for the operation's. */
  #nothingToShow(followed: Followed): Fault {
    const { path } = this.#options.route;
    const { result } = followed;
    const [fault, notTaken] = [this.#lastFault, this.#notTaken];
    const isOpen = result === "unknown" || result === "pending";
    if (isOpen && this.#last === undefined && fault?.outcome === "unknown") {
      const message = fault.message.replace(askAgain, checkFirst[this.#options.contract.service]);
      return new Fault(fault.kind, message, { ...fault.details, followed });
    }
    const what = isOpen ? "how it ended is not known" : `it ended as ${result}`;
    const unanswered = notTaken ?? "no question about it was answered";
    const unfound = isOpen ? "what was answered about it may be about another one" : "no answer about it says so any more";
    const unproven = this.#last === undefined ? unanswered : unfound;
    const why = this.#isLast ? unproven : "another operation was sent under its key since";
    const message = `Cannot show an answer to ${path}: it was sent before, ${what}, and ${why}`;
    return new Fault("broken", message, { reason: "no-reply", followed });
  }

  async #run(): Promise<void> {
    const { contract, service: name, present, token, windowMs, clock, stop, call } = this.#options;
    const merchantId = () => present().merchantId ?? "";
    const transport: Transport = { send: (request) => this.#send(request), close: async () => {} };
    const service = new RemoteService({ contract, name, transport, merchantId, timeoutMs });
    const onProgress = ({ type, token: { known } }: SettleEvent) => {
      this.#known = known;
      // What it refers to goes on, for longer than anybody waits for this. Once there is none, two questions more are waited for.
      const giveUpMs = known.absents > 0 ? this.#untilMs + countMs : this.#untilMs;
      if (type === "waiting" && known.phase === "baseline" && clock.nowMs() >= giveUpMs) this.#giveUp.abort();
      if (known.phase === "accepted" && this.mayHaveBegun && this.#isAccepted) this.#options.history.accepted(this.order);
    };
    const stopped = () => this.#giveUp.abort();
    if (stop.aborted) stopped();
    else stop.addEventListener("abort", stopped);
    const settled = await settleFrom(service, token, call !== undefined, {
      windowMs,
      clock,
      signal: this.#giveUp.signal,
      aborted: this.#aborted.signal,
      onProgress,
    }).finally(() => stop.removeEventListener("abort", stopped));
    this.#known = settled.token.known;
    this.#found = settled.result;
    this.#end = this.#endOf(settled);
  }

  #endOf({ result }: Settled): OperationEnd | undefined {
    if (result === "unknown") return undefined;
    if (result === "not-sent" || this.#call !== undefined) return "failed";
    if (isGoodEnd(this.#recordedEnd)) return this.#recordedEnd;
    const { contract, recovery, route } = this.#options;
    const isOwnAnswer = this.#last?.route === route.path;
    // What is found may be what was denied, and what isn't may be denied as well.
    if (this.mayHaveBegun && (!this.#isLast || this.#wasDenied) && !isOwnAnswer) return undefined;
    const code = this.#last?.reply.code;
    if (result !== recovery.refused || !isAbsent(contract, code))
      return this.#now?.mayEndWell === true && !isGoodEnd(result) ? undefined : result;
    // Somebody else learned meanwhile that the terminal has it: that it knows of none now proves nothing.
    const { isAccepted = false, isStopped = false, mayEndWell = false, mayBeCleared = false } = this.#now ?? {};
    const provesNothing = recovery.absentWhenAccepted === "ask" ? isAccepted && !isStopped : mayEndWell;
    return provesNothing || mayBeCleared ? undefined : "failed";
  }

  /**
   * Whether an answer to a question may be about another operation under its key, of which no end is known: that may be on its way to the
   * terminal still. What refers to it must not be sent before it is found, where there is none now.
   */
  #mayBeOthers({ code }: Reply): boolean {
    const { contract, recovery, history } = this.#options;
    const others = recovery.baseline ? history.othersOpen() : undefined;
    if (others === undefined) return false;
    return isAbsent(contract, code) || (this.#call !== undefined && others === "recent");
  }

  /** The sending goes out as its till wrote it; a question as the machine wrote it, behind all that wait. */
  async #send({ route, body }: TransportRequest): Promise<Answer> {
    const call = this.#call;
    const { contract, history } = this.#options;
    if (route === this.#options.route.path) {
      if (call === undefined) throw new Error(`Cannot send ${route} again: it was sent before`);
      return this.#sendStart(call);
    }
    this.#polls++;
    const order = history.lastOrder();
    const { ending, device, notTaken } = await this.#ask(route, body);
    if (!(ending instanceof Fault) && this.#provesNothing(ending, device))
      return answerOf(this.#takesNothing(this.#hasOthers(device) ? sentByOthers : this.#elsewhere(ending.status)));
    if (call !== undefined) {
      if (isElsewhere(this.#askedOver, device)) return this.#terminalChanged();
      this.#askedOver = device;
      this.#askedAtOrder = order;
      this.#wasDenied = !(ending instanceof Fault) && isAbsent(contract, ending.code) && history.hadAny();
    }
    if (this.#now?.isStopped === true) this.#aborted.abort();
    if (ending instanceof Fault) [this.#lastFault, this.#notTaken] = [ending, notTaken];
    else if (namesOtherKey(this.#named, objectOf(ending))) this.#takesNothing(namesAnother);
    else {
      this.#last = { route, reply: ending };
      // Before the sending only what was said last counts.
      if (this.#call !== undefined) this.#lastFault = undefined;
    }
    // Where what comes before it can't be sent, it can't either, and ends as a call that isn't followed would.
    if (this.#call !== undefined && ending instanceof Fault && ending.outcome === "not-sent") this.#giveUp.abort();
    const mayBeOthers = !(ending instanceof Fault) && this.#mayBeOthers(ending);
    return answerOf(mayBeOthers ? unprovenBy(this.#options.route.path, mayBeAboutAnother) : ending);
  }

  async #sendStart(call: Call): Promise<Answer> {
    const { contract, recovery, route, present } = this.#options;
    const now = present();
    const { handler, device } = now;
    if (now.contract !== contract || isElsewhere(this.#askedOver, device)) return this.#terminalChanged();
    this.#call = undefined;
    this.#sentOver = device;
    // Asked about a moment ago: what is found under its key from now on is its own, and its record says so.
    const isFresh = recovery.baseline && this.#known.baseline === "" && !this.#wasDenied;
    // What was asked before it proves nothing of its end.
    this.#last = undefined;
    const onSent = (order: number) => {
      this.order = order;
    };
    const sent = { ...call, caller: this.#caller, onSent, askedAtOrder: this.#askedAtOrder };
    this.#start = await tried(handler, isFresh ? { ...sent, isFresh } : sent);
    if (!(this.#start instanceof Fault)) this.#last = { route: route.path, reply: this.#start };
    // It ends as one that isn't followed would: of an earlier one nothing is known.
    else if (this.#start.outcome === "not-sent" && this.#known.doubt) this.#giveUp.abort();
    this.#startEnded();
    return answerOf(this.#start);
  }

  /** What is known under its key is another terminal's: it ends unsent, and the next try asks anew. */
  #terminalChanged(): Answer {
    this.#lastFault = configurationChanged(this.#options.route.path);
    this.#giveUp.abort();
    return answerOf(this.#lastFault);
  }

  /** @returns how the question ended, and over which device it was asked. */
  #ask(path: string, body: string | undefined): Promise<Asked> {
    const { service, contract, route, requestId, present, clock } = this.#options;
    const question: Call = {
      service,
      contract: contract.service,
      route: path,
      body: body === undefined ? [] : [Buffer.from(body)],
      // Of its own, so that each exchange has one beginning and one end for those who watch; by its beginning it is found with the call.
      requestId: `${requestId.slice(0, idCharsMax)}.${++askedTimes}`,
      key: undefined,
      caller: new Presence(),
      background: true,
    };
    const over = new AbortController();
    let isDropped = false;
    const asked = present().turns.take<Asked>(async () => {
      over.abort();
      const now = present();
      if (isDropped) return { ending: waitedForOthers(route.path), device: now.device };
      if (now.contract === contract) return { ending: await tried(now.handler, question), device: now.device };
      return { ending: unprovenBy(route.path, this.#elsewhere()), device: now.device, notTaken: this.#elsewhere() };
    });
    if (this.#call === undefined) return asked;
    // Its callers wait for the sending, whatever they said.
    const dropped = clock.sleep(Math.max(this.#untilMs - clock.nowMs(), turnMs), over.signal).then(() => {
      if (over.signal.aborted) return asked;
      isDropped = true;
      return { ending: waitedForOthers(route.path), device: undefined };
    });
    return Promise.race([asked, dropped]);
  }

  /** The machine takes nothing from an answer. */
  #takesNothing(why: string): Fault {
    this.#notTaken = why;
    this.#lastFault = unprovenBy(this.#options.route.path, why);
    return this.#lastFault;
  }

  /**
   * Another terminal's word: that it knows nothing of it, or only failures, proves nothing, nor does a success that may be another's.
   * @param status Of the answer, where it was asked.
   */
  #elsewhere(status?: string): string {
    if (this.#call !== undefined) return "its service has another device or contract by now";
    const { baseline } = this.#options.recovery;
    if (baseline) return `${sentElsewhere}, and what stands under its key there may be another operation`;
    return `${sentElsewhere}, and ${status === "success" ? foundElsewhere : "the terminal there doesn't have it"}`;
  }

  /** Whether what the terminal has under its key may be another service's. What stood there before the sending is compared. */
  #hasOthers(device: string | undefined): boolean {
    const { recovery, history } = this.#options;
    const order = device === undefined ? undefined : history.othersOrder(device);
    if (order === undefined) return false;
    const wasSeenBefore = recovery.baseline && this.#known.baseline !== "" && order < this.order;
    return !wasSeenBefore;
  }

  /**
   * Whether an answer that came over this device may be another terminal's. Of one that was sent elsewhere a success is the terminal's own,
   * unless its key may be another one's too: what stood under it before was asked of the terminal that it was sent to; and another service
   * may have used that terminal with the same keys. Before the sending, all that counts is what the terminal knows that it will go to.
   */
  #provesNothing({ status }: Reply, device: string | undefined): boolean {
    const { present, recovery, history } = this.#options;
    if (this.#call !== undefined) return isElsewhere(device, present().device);
    if (this.#hasOthers(device)) return true;
    if (!isElsewhere(this.#sentOver, device)) return false;
    return status !== "success" || recovery.baseline || (device !== undefined && history.mayHaveOthers(device));
  }
}

/** The reply's bytes are copied: they are a view of a line's memory, of which a few would keep much. */
async function tried(handler: Handler, call: Call): Promise<Reply | Fault> {
  try {
    const reply = await handler(call);
    return { ...reply, payload: [Buffer.concat(reply.payload)] };
  } catch (error) {
    if (error instanceof Fault) return error;
    const advice = checkFirst[call.contract];
    return new Fault("broken", `Cannot answer: internal error in posline, please report it (${String(error)}). ${advice}`);
  }
}

/** A reload gave its service another line or contract while it waited. */
export function configurationChanged(path: string): Fault {
  const message = `Cannot send ${path}: its service's configuration has changed. ${nothingSent}`;
  return new Fault("unavailable", message, { reason: "stopping" });
}

/** On its line much is asked about, and the terminal is slow or silent. */
function waitedForOthers(path: string): Fault {
  const state = "the questions about other operations on its line take too long: send the same call again";
  return new Fault("unavailable", `Cannot send ${path}: ${state}. ${nothingSent}`, { reason: "waited-too-long" });
}

/** It isn't shown to anybody, whatever is known of this one. */
const namesAnother = "the terminal's answer names another operation than it was asked about";

/** What stands under its key may be another operation's, whose end isn't known. */
const mayBeAboutAnother = "another operation under its key has no known end, and what the terminal says may be about that one";

function unprovenBy(path: string, why: string): Fault {
  return new Fault("broken", `Cannot tell how ${path} ended: ${why}`, { reason: "no-reply" });
}

/** Read as the machine reads it: of a long number a rounded one would name another operation. */
function objectOf({ payload }: Reply): JsonObject {
  const text = textOf(payload);
  return parseExactObject(text) ?? parseObject(text) ?? {};
}

const isAbsent = ({ finals }: Contract, code: number | undefined) => code !== undefined && finals.absentCodes.includes(code);

const outcomeOf = (ending: Reply | Fault) => (ending instanceof Fault ? ending.outcome : "answered");

function answerOf(ending: Reply | Fault): Answer {
  if (!(ending instanceof Fault)) {
    const text = textOf(ending.payload);
    return { outcome: "answered", text, httpStatus: undefined, retryAfterMs: undefined, reason: undefined, failure: undefined };
  }
  const { outcome, httpStatus, reason, message, retryAfterS } = ending;
  const retryAfterMs = retryAfterS === undefined ? undefined : retryAfterS * 1_000;
  return { outcome, text: undefined, httpStatus, retryAfterMs, reason, failure: message };
}
