import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { ServiceName } from "../core/call.ts";
import { isOperationEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import {
  type AnswerSummary,
  type CallResult,
  emptySummary,
  summaryOfCopy,
  summaryOfOpen,
  summaryOfUnproven,
} from "../settle/call-result.ts";
import { type Clock, checkedWindowMs, monotonicClock, Pauses, sleepUnless } from "../settle/clock.ts";
import { writeExactObject } from "../settle/exact-json.ts";
import { type Fact, plainFact } from "../settle/fact.ts";
import { after, differ, type JudgedOperation, type Known, nothingBegun, withFact } from "../settle/judge.ts";
import { hasCode, saysNothing, saysOthers } from "../settle/proof.ts";
import { mayBeForgotten, saidToQuestion, saidToStart } from "../settle/said.ts";
import type { FollowedAnswer } from "../settle/transport.ts";
import { Followings } from "./followings.ts";
import type { RemoteService } from "./remote-service.ts";
import type { Action, Settled, SettleEvent, SettleEventType, SettleOptions, SettleStep } from "./settle-types.ts";
import { contractOfToken, isTokenOld, newToken, readToken, type Token, tokenWith } from "./token.ts";

/**
 * Follows an operation to its end over any number of requests, or says "unknown" and gives the token by which it can be followed on: asks
 * the judge what to do, does that one thing, adds the fact that came of it to the list, and asks again. What facts mean is decided in
 * `judge.ts`; here is the I/O: sending, waiting, reporting.
 */

/**
 * Starts an operation and follows it.
 * @param byBridge The bridge is asked to follow it (`Prefer: wait`).
 * @param followings Where it is known while it is followed.
 * @throws TypeError, before anything is sent, for an operation that can't be followed or a body that is not JSON.
 */
export async function settle(
  service: RemoteService,
  path: string,
  body: object,
  options: SettleOptions,
  byBridge = false,
  followings = new Followings(),
): Promise<Settled> {
  const made = newToken(service.contract, path, body, service.name);
  const token = byBridge ? { ...made, byBridge } : made;
  return followings.settle(token, options, (...from) => new SettleRun(service, ...from).run());
}

/**
 * Follows an operation on that another process began: asks first, never sends blindly. One that provably wasn't sent yet is
 * sent; one that ended unsent has ended.
 * @param followings What is followed already: its end is waited for.
 * @throws TypeError for what is not a token, or one of another service.
 */
export async function resume(
  services: Readonly<Record<ServiceName, RemoteService>>,
  value: unknown,
  options: SettleOptions,
  followings = new Followings(),
): Promise<Settled> {
  const { token } = readToken(value);
  const service = services[token.service];
  if (service === undefined) {
    throw new TypeError(`Cannot resume: the client has no service ${token.service}: make it with that one`);
  }
  const contract = contractOfToken(token);
  if (service.contract.service !== contract) {
    // Both may have the route, and mean another thing by it.
    throw new TypeError(
      `Cannot resume: the operation was begun with a ${contract} service, and ${token.service} is a ${service.contract.service} one: ` +
        "make the client with the service that it was begun with",
    );
  }
  return followings.follow(token, options, false, (...from) => new SettleRun(service, ...from).run());
}

class SettleRun {
  readonly #service: RemoteService;
  readonly #options: SettleOptions;
  readonly #clock: Clock;
  readonly #route: Route;
  readonly #body: JsonObject;
  readonly #operation: JudgedOperation;
  readonly #pauses: Pauses;
  readonly #windowMs: number;
  readonly #runBeganMs: number;
  /** The wall clock's time when the run's was 0. */
  readonly #wallMs: number;
  readonly #steps: SettleStep[] = [];
  #token: Token;
  #known: Known;
  /** The bridge recognises the same call, which is sent again in place of a question. */
  #repeats = false;
  /** A start may have reached the service: the next one is sent again. */
  #mayHaveBegun: boolean;
  /** A request may have left: from here on nothing may stop the run but its own rules. */
  #mayHaveLeft: boolean;
  #endMs: number | undefined;
  /** The answer that proves the end. */
  #proof: JsonObject | undefined;

  /** @param isNew Nothing of it was sent before this process; else it is asked about first. */
  constructor(service: RemoteService, given: Token, options: SettleOptions, isNew: boolean) {
    const { token, route, body, operation, known } = readToken(given);
    this.#service = service;
    this.#options = options;
    this.#clock = options.clock ?? monotonicClock;
    this.#route = route;
    this.#body = body;
    this.#operation = operation;
    this.#pauses = new Pauses(route.polling?.intervalMs, options.intervalMs);
    this.#windowMs = checkedWindowMs(options.windowMs);
    this.#runBeganMs = this.#clock.nowMs();
    this.#wallMs = Date.now() - this.#runBeganMs;
    this.#token = token;
    this.#known = known;
    this.#mayHaveBegun = !isNew && !nothingBegun(known);
    this.#mayHaveLeft = this.#mayHaveBegun;
    if (!isNew) this.#take({ is: "resumed" });
  }

  async run(): Promise<Settled> {
    if (this.#known.end !== undefined && this.#known.next === "none") return this.#endedBefore();
    for (;;) {
      this.#heedStops();
      const { next, end } = this.#known;
      if (end !== undefined && next !== "print") return this.#end(emptySummary);
      const action = this.#repeats && !this.#known.isStopped ? "start" : next;
      if (action === "none" || action === "wait") return this.#end(emptySummary);
      const before = { token: this.#token, known: this.#known };
      if (action === "start" && !this.#repeats) this.#take({ is: "sent" });
      if (action === "print") this.#take({ is: "copy" });
      await this.#notify({ type: this.#eventTypeOf(action) });
      if (action === "start" && (this.#isAborted || this.#isToStop)) {
        // It hasn't left
        [this.#token, this.#known] = [before.token, before.known];
        if (!this.#isAborted) continue;
      }
      if (this.#isAborted) return this.#endAborted();
      const askedMs = this.#clock.nowMs();
      const result = await this.#send(action);
      this.#endMs ??= this.#clock.nowMs() + this.#windowMs;
      this.#heedStops();
      const goesOn = this.#hear(action, result, askedMs);
      if (result.outcome === "not-sent") {
        const { unreachable, summary } = result;
        await this.#notify({ type: "not sent", unreachable, message: summary.message });
      }
      if (this.#known.end !== undefined && this.#known.next === "none")
        return this.#end(action === "print" ? summaryOfCopy(result) : result.summary);
      if (this.#known.next === "none" && !this.#repeats && goesOn !== "stop")
        return this.#end(unprovenSummary(this.#operation, result), replyOf(result));
      if (this.#known.isAccepted && this.#known.end === undefined && result.outcome === "answered")
        await this.#notify({ type: "in progress", reply: result.reply });
      if (this.#isAborted) return this.#endAborted();
      if (goesOn === "ask") continue;
      const waitMs = goesOn === "stop" ? 0 : this.#pauses.nextMs(goesOn);
      if (goesOn === "stop" || this.#clock.nowMs() + waitMs > this.#endMs) return this.#endOfWindow(action, result);
      if (waitMs > 0) {
        await this.#notify({ type: "waiting", waitMs });
        await sleepUnless(this.#clock, waitMs, this.#wakeSignals);
      }
      if (this.#isAborted) return this.#endAborted();
    }
  }

  /** Notes a fact, unless it changes nothing. */
  #take(fact: Taken, atMs = this.#clock.nowMs()): void {
    const timed = plainFact({ ...fact, atMs: Math.round(this.#wallMs + atMs) });
    this.#known = after(this.#operation, this.#known, timed);
    this.#token = tokenWith(this.#token, withFact(this.#operation, this.#token.facts, timed), this.#known);
  }

  get #isAborted(): boolean {
    return this.#options.signal?.aborted === true;
  }

  get #isToStop(): boolean {
    return this.#options.askOnly?.aborted === true && !this.#known.isStopped;
  }

  /** What ends a wait: where there is still something to be sent, that it was stopped as well. */
  get #wakeSignals(): readonly (AbortSignal | undefined)[] {
    const { signal, askOnly } = this.#options;
    const asks = askOnly?.aborted === true || (this.#known.isAccepted && !this.#repeats);
    return asks ? [signal] : [signal, askOnly];
  }

  #heedStops(): void {
    if (this.#options.aborted?.aborted === true && !this.#known.isAborted) this.#take({ is: "aborted" });
    if (this.#isToStop) this.#take({ is: "stopped" });
  }

  #eventTypeOf(action: Action): SettleEventType {
    if (action === "ask") return "asked";
    if (action === "print") return "printing";
    return this.#mayHaveBegun ? "resent" : "sent";
  }

  async #send(action: Action): Promise<CallResult> {
    const { contract } = this.#service;
    const [path, body] = this.#request(action);
    const route = routeOf(contract, path);
    if (route === undefined) throw new TypeError(`Cannot settle: ${contract.service} has no route ${path}`);
    if (action === "start") this.#mayHaveLeft = true;
    const atMs = this.#clock.nowMs() - this.#runBeganMs;
    const { signal, askOnly } = this.#options;
    const result = await this.#service.tryCall(route, body, {
      ...(signal && { signal }),
      ...(askOnly && action === "start" && { withdrawn: askOnly }),
      ...(action === "start" && this.#token.byBridge && this.#waitFor(route)),
    });
    const { outcome, summary } = result;
    const status = outcome !== "answered" ? undefined : result.success ? "success" : "error";
    const byBridge = action === "start" && summary.followed ? ({ byBridge: true } as const) : {};
    this.#steps.push({ action, route: path, atMs, outcome, status, code: summary.code, ...byBridge });
    return result;
  }

  /** The bridge follows for what is left of the window, which begins with the call then. */
  #waitFor({ replyTimeoutMs }: Route) {
    const nowMs = this.#clock.nowMs();
    this.#endMs ??= nowMs + this.#windowMs;
    const waitS = Math.min(waitSMax, Math.ceil(Math.max(0, this.#endMs - nowMs) / 1_000));
    return { waitS, timeoutMs: replyTimeoutMs + waitS * 1_000 + marginMs };
  }

  /** The route and body of what is to be done. */
  #request(action: Action): readonly [string, string] {
    if (action === "start") return [this.#route.path, this.#token.body];
    const { print, learns } = this.#operation.rules;
    if (action === "print" && print !== undefined)
      return [print.route, writeExactObject({ [print.key]: integerId(this.#known.ids?.[print.key]) })];
    const { route = "", keys = [] } = this.#route.polling ?? {};
    const keyValueOf = (key: string) => (key === learns ? this.#known.name : this.#body[key]);
    return [route, writeExactObject(Object.fromEntries(keys.map((key) => [key, keyValueOf(key)])))];
  }

  /** Takes what became of a request. @returns what comes before the next one. */
  #hear(action: Action, result: CallResult, askedMs: number): Pause {
    const wasEnded = this.#known.end;
    const pause = this.#heard(action, result, askedMs);
    if (this.#known.end !== wasEnded && action !== "print") this.#proof = replyOf(result);
    return pause;
  }

  #heard(action: Action, result: CallResult, askedMs: number): Pause {
    const { outcome } = result;
    const isUnsent = outcome === "not-sent";
    const retryAfterMs = isUnsent ? result.retryAfterMs : undefined;
    const isRepeat = this.#repeats;
    this.#repeats = false;
    if (action === "start" && this.#token.byBridge) return this.#heardOfBridge(result, isRepeat, retryAfterMs);
    if (action === "start") {
      this.#take(factOfStart(this.#operation, result));
      this.#mayHaveBegun ||= !isUnsent;
    } else if (action === "print") {
      const mayPrint = isUnsent && result.passing;
      this.#take(mayPrint ? { is: "uncopied" } : { is: "copied", ok: outcome === "answered" && result.success });
    } else if (isUnsent && this.#known.starts > 0) return { pause: "back-off", retryAfterMs };
    else if (isUnsent) this.#take(factOfStart(this.#operation, result));
    else if (outcome === "answered") {
      const { name } = this.#known;
      const said = saidToQuestion(this.#operation, result, name);
      const isForgotten = mayBeForgotten(said) && this.#known.starts > 0 && isTokenOld(this.#token);
      if (!isForgotten) this.#take({ is: "told", said, name }, askedMs);
    } else return { pause: "interval" };
    return { pause: this.#known.pause, retryAfterMs };
  }

  /**
   * Takes the answer to a call that a bridge was asked to follow (`Prefer: wait`). A bridge that recognises the same call has it sent again
   * while its word is open; any other service is asked from here.
   */
  #heardOfBridge(result: CallResult, isRepeat: boolean, retryAfterMs: number | undefined): Pause {
    const { followed, reason } = result.summary;
    const isGuarded = followed?.isGuarded === true;
    const isEnd = followed !== undefined && isOperationEnd(followed.result);
    const isUnsent = result.outcome === "not-sent";
    // Another body has its key: once anything may have begun, what is asked about the key would be about that one.
    const isReused = reason === "key-reused" && this.#mayHaveBegun;
    if (isUnsent && !isRepeat && !isReused && (!isGuarded || isEnd)) {
      this.#take(factOfStart(this.#operation, result));
      this.#repeats = isGuarded && this.#known.next === "ask";
      return { pause: this.#known.pause, retryAfterMs };
    }
    this.#mayHaveBegun ||= !isUnsent || isRepeat;
    if (isUnsent) {
      // Where the bridge knows of an earlier sending, that this one wasn't sent says nothing of that.
      if (!isRepeat) this.#take({ is: "answered", said: { says: "nothing" } });
      if (followed !== undefined && !isEnd) this.#takeWord(followed);
    } else {
      // It may have been carried out anew
      if (isRepeat && !isGuarded) this.#take({ is: "sent" });
      this.#takeAnswer(result, followed);
    }
    // What nobody can be asked about stays unknown.
    if (reason === "key-reused" || reason === "no-question") return "stop";
    if (this.#known.next === "start") return { pause: this.#known.pause };
    this.#repeats = isGuarded || (isUnsent && result.passing);
    // Sent again at once it might reach the terminal again.
    if (!this.#repeats) return "ask";
    return isUnsent ? { pause: "back-off", retryAfterMs } : { pause: "interval" };
  }

  /** The call's own answer before the bridge's word, which may know more; that of the bridge's question proves names alone. */
  #takeAnswer(result: CallResult & { readonly outcome: "answered" | "unknown" }, followed: FollowedAnswer | undefined): void {
    if (followed?.answerOf === undefined) {
      this.#takeOwn(factOfStart(this.#operation, result), followed !== undefined);
      if (followed !== undefined) this.#takeWord(followed);
    } else {
      this.#takeWord(followed);
      this.#takeOwn({ is: "answered", said: { says: "nothing" } }, true);
    }
  }

  /** @param hasWord How it ended, the bridge says. */
  #takeOwn(own: Taken, hasWord: boolean): void {
    const { isOut, isAccepted, refusal } = this.#known;
    const isEnd = hasWord && after(this.#operation, this.#known, { ...own, atMs: 0 }).end !== undefined;
    if (isOut) this.#take(isEnd ? { is: "answered", said: { says: "nothing" } } : own);
    else if (!isEnd && !isAccepted && refusal === undefined) this.#take(own);
  }

  #takeWord({ result: word, isGuarded, trans }: FollowedAnswer): void {
    this.#take({ is: "word", word, isGuarded, ...(trans !== undefined && { trans }) });
  }

  async #notify(event: Omit<SettleEvent, "token">): Promise<void> {
    try {
      await this.#options.onProgress?.({ ...event, token: this.#token });
    } catch (error) {
      if (!this.#mayHaveLeft || event.type === "sent") throw error;
    }
  }

  /** Its end is known already, and stays; the service's words for it are asked for once. */
  async #endedBefore(): Promise<Settled> {
    const { end, why } = this.#known;
    if (end === "not-sent") {
      const message = `nothing was sent: ${why?.message ?? "start it again"}`;
      return this.#end(emptySummary, undefined, { code: why?.code, message });
    }
    if (!this.#operation.asks) return this.#end(emptySummary);
    await this.#notify({ type: "asked" });
    const askedMs = this.#clock.nowMs();
    const result = await this.#send("ask");
    const wasFailed = end === "failed";
    if (result.outcome === "answered") {
      const said = saidToQuestion(this.#operation, result, this.#known.name);
      if (wasFailed) this.#hear("ask", result, askedMs);
      if (this.#known.end === undefined || this.#known.next === "print") return this.run();
      const { end: stays, ids, isUnprinted } = this.#known;
      const isProof = said.end === stays || (isUnprinted && said.end === "closed");
      if (isProof && !differ(this.#operation, ids, said.ids)) this.#proof = result.reply;
    }
    return this.#end(this.#proof === undefined ? emptySummary : result.summary);
  }

  /** Nothing was settled in time; what was never sent has ended all the same, in nothing. */
  #endOfWindow(action: Action, result: CallResult): Promise<Settled> {
    const { summary } = result;
    // A copy that couldn't be asked for: the document is closed nonetheless
    if (action === "print") return this.#end(summaryOfCopy(result));
    if (nothingBegun(this.#known)) {
      this.#take({ is: "unsent", passing: false, code: summary.code, message: summary.message });
      return this.#end(summary);
    }
    const { followed } = summary;
    const [path] = this.#request(action);
    if (saysOthers(this.#operation, followed?.answerOf ?? path, result)) return this.#end(summaryOfUnproven(result));
    return this.#end(summaryOfOpen(result, action !== "start"), followed === undefined ? undefined : replyOf(result));
  }

  /** The caller doesn't wait any more; what was never sent has ended in nothing here too. */
  #endAborted(): Promise<Settled> {
    if (nothingBegun(this.#known)) this.#take({ is: "stopped" });
    return this.#end({ ...emptySummary, message: "it is no longer followed" });
  }

  /** @param summary Said where the facts have no words. @param reply Shown of what hasn't ended. */
  async #end(summary: AnswerSummary, reply?: JsonObject, why = this.#known.why): Promise<Settled> {
    const { end = "unknown" } = this.#known;
    const shown = this.#proof ?? reply;
    await this.#notify({ type: "final", reply: shown });
    const { code, message } = { ...summary, ...why };
    return {
      result: end,
      data: dataOf(this.#service.contract, shown),
      code,
      message,
      trans: this.#token.trans,
      steps: this.#steps,
      token: this.#token,
    };
  }
}

/** The longest for which one call asks the bridge to follow, in seconds: its own limit. */
const waitSMax = 600;

/** Milliseconds that an answer may take beyond the bridge's following: its first exchange has a limit of its own. */
const marginMs = 30_000;

/** A fact without its time. */
type Taken = Fact extends infer Each ? (Each extends Fact ? Omit<Each, "atMs"> : never) : never;

/** What comes before the next request; `ask`: a question at once. `stop`: nothing more can be learned. */
type Pause = "ask" | "stop" | { readonly pause: Known["pause"]; readonly retryAfterMs?: number | undefined };

/** What became of a start, as a fact. */
export function factOfStart(operation: JudgedOperation, result: CallResult): Taken & { readonly is: "answered" | "unsent" } {
  if (result.outcome === "answered") return { is: "answered", said: saidToStart(operation, result) };
  if (result.outcome === "unknown") return { is: "answered", said: { says: "nothing" } };
  const { code, message } = result.summary;
  const isSign = hasCode(operation.rules.signCodes, code);
  return { is: "unsent", passing: result.passing, ...(isSign && { isSign }), code, message };
}

const replyOf = (result: CallResult) => (result.outcome === "answered" ? result.reply : undefined);

/** Of an operation that has no query: an answer that leaves it open is all that can be learned of it. */
function unprovenSummary(operation: JudgedOperation, result: CallResult): AnswerSummary {
  const { summary } = result;
  if (result.outcome !== "answered") return summary;
  if (saysNothing(operation, result)) return summaryOfUnproven(result);
  const { finals } = operation.contract;
  const said = result.success ? `the success has no ${finals.field.join(".")}` : (summary.message ?? "refused");
  const message = `${said}: that does not prove what was done, and this operation has no query: look it up before sending it again`;
  return { ...summary, message };
}

/** The contract has documentID as an integer, and some terminals write it as a string. */
function integerId(value: unknown): unknown {
  return typeof value === "string" && /^\d{1,19}$/.test(value) ? BigInt(value) : value;
}

/** The document of a fiscal answer is the answer itself; the others have theirs in `data`. */
export function dataOf({ envelope }: Contract, reply: JsonObject | undefined): JsonObject | undefined {
  if (reply === undefined || envelope === "form") return reply;
  const data = reply["data"];
  return typeof data === "object" && data !== null ? { ...data } : undefined;
}
