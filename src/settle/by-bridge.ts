import type { Route } from "../contract/contract.ts";
import type { SettlingRules } from "../contract/settling.ts";
import { isGoodEnd, isOperationEnd, type OperationEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type CallResult, summaryOfOpen, summaryOfUnproven } from "./call-result.ts";
import { checkedWindowMs, monotonicClock, Pauses, sleepUnless } from "./clock.ts";
import { Followings } from "./followings.ts";
import { type Done, nextStep, stateNamed } from "./machine.ts";
import { type FollowedOperation, idIn, saysOthers } from "./proof.ts";
import type { RemoteService } from "./remote-service.ts";
import { askFrom, dataOf, operationOf } from "./settle.ts";
import { type SettleState, stateAtEnd, stateRefused, stateWithoutEffect } from "./state.ts";
import { newToken, readToken, type Token, withKnown } from "./token.ts";
import type { FollowedAnswer } from "./transport.ts";
import type { Settled, SettleEvent, SettleOptions, SettleStep } from "./types.ts";

/**
 * `settle` by the bridge's own following (`Prefer: wait`): the operation is sent, the bridge asks, and the same call is sent again while
 * its word is pending or unknown. That is safe only while the bridge recognises the repetition. Where it doesn't, or doesn't
 * know the header at all, the operation is asked about from here, as `settle` does without; with what the answer to its
 * start said, by the same rules. Where these let it be sent again, that is the same call with the header.
 */

/** The longest for which one call asks the bridge to follow, in seconds: its own limit. */
const waitSMax = 600;

/** Milliseconds that an answer may take beyond the bridge's following: its first exchange has a limit of its own. */
const marginMs = 30_000;

/**
 * @param followings Where it is known while it is followed.
 * @throws TypeError, before anything is sent, for an operation that can't be followed or a body that is not JSON.
 */
export function settleByBridge(
  service: RemoteService,
  path: string,
  body: object,
  options: SettleOptions,
  followings = new Followings(),
): Promise<Settled> {
  const token = { ...newToken(service.contract, path, body, service.name), byBridge: true } as const;
  return followings.settle(token, options, (known, shared, isNew) =>
    isNew ? new BridgeRun(service, known, shared).run(true) : resumeByBridge(service, known, shared),
  );
}

/**
 * Takes up again what was begun so: it is asked about first, and where the contract lets it be sent again, by the same call, which a bridge that
 * remembers the first one recognises.
 */
export function resumeByBridge(service: RemoteService, token: Token, options: SettleOptions): Promise<Settled> {
  return askFrom(service, token, options, (again, windowMs) =>
    new BridgeRun(service, again, { ...options, windowMs }).run(false),
  );
}

class BridgeRun {
  readonly #service: RemoteService;
  readonly #options: SettleOptions;
  readonly #route: Route;
  readonly #rules: SettlingRules;
  readonly #operation: FollowedOperation;
  readonly #steps: SettleStep[] = [];
  /** What is known before the answer to the start: whether an earlier one may have arrived. */
  #atStart: SettleState;
  #token: Token;
  /** A call that may have arrived was answered, or lost. */
  #hasLearned = false;

  constructor(service: RemoteService, token: Token, options: SettleOptions) {
    this.#service = service;
    this.#options = options;
    // Before a handler stores the token: from then on it may have left, and a process that resumes it asks first.
    this.#token = begun(token);
    this.#atStart = { ...token.known, phase: "ready" };
    const parsed = readToken(token);
    this.#route = parsed.route;
    this.#rules = parsed.rules;
    this.#operation = operationOf(service.contract, parsed);
  }

  /** @param isFirst Nothing of it was sent. */
  async run(isFirst: boolean): Promise<Settled> {
    const { clock = monotonicClock, signal, askOnly } = this.#options;
    const beganMs = clock.nowMs();
    const untilMs = beganMs + checkedWindowMs(this.#options.windowMs);
    const pauses = new Pauses(this.#route.polling?.intervalMs, this.#options.intervalMs);
    const isStopped = () => askOnly?.aborted === true;
    const hasLeft = () => signal?.aborted === true;
    // Nothing of it is known to the bridge until a call is not refused.
    let isNew = isFirst;
    for (;;) {
      if (isNew && (hasLeft() || isStopped())) return this.#notSent("it was stopped before it was sent");
      if (hasLeft()) return this.#left();
      if (isStopped()) return this.#askOn(untilMs - clock.nowMs());
      await this.#notify({ type: isNew ? "sent" : "resent" }, isNew);
      if (!isNew && (hasLeft() || isStopped())) continue;
      const remainingMs = Math.max(0, untilMs - clock.nowMs());
      const waitS = Math.min(waitSMax, Math.ceil(remainingMs / 1_000));
      const atMs = clock.nowMs() - beganMs;
      const result = await this.#service.tryCall(this.#route, this.#token.body, {
        waitS,
        timeoutMs: this.#route.replyTimeoutMs + waitS * 1_000 + marginMs,
        ...(signal && { signal }),
        ...(askOnly && isNew && { withdrawn: askOnly }),
      });
      this.#note(result, atMs);
      const { followed } = result.summary;
      const isGuarded = followed?.isGuarded === true;
      const end = followed !== undefined && isOperationEnd(followed.result) ? followed.result : undefined;
      // Where the bridge knows of an earlier sending, that this one wasn't sent says nothing of that.
      const isDoubtful = isGuarded && end === undefined;
      const isRefused = isNew && result.outcome === "not-sent" && !isDoubtful;
      // That this one wasn't sent is no word about an earlier one that may have arrived.
      const isNoEnd = result.outcome === "not-sent" && (!isNew || result.passing);
      const isOfSecondCode = end !== undefined && !isGuarded && this.#mayBeSecondCodes(end);
      if (end !== undefined && !isNoEnd && !isOfSecondCode) return this.#end(end, result, isRefused);
      if (isRefused) {
        await this.#notify({ type: "not sent", unreachable: result.unreachable, message: result.summary.message });
        if (!result.passing) return this.#notSent(result.summary.message);
      } else {
        isNew = false;
        // Another body has its key: what is asked about the key is about that one. And what nobody can be asked about stays unknown.
        const { reason } = result.summary;
        if (reason === "key-reused" || reason === "no-question") return this.#unknown(result);
        const done = this.#learn(result, isGuarded);
        // A third one would be shown to a customer who has paid the first.
        if (isOfSecondCode) this.#know({ isSentOnce: true });
        // The terminal has it, whatever answer is shown.
        if (followed?.result === "pending") this.#know({ phase: "accepted" });
        this.#know(this.#nameBy(followed));
        if (done !== undefined && followed === undefined) return this.#endByMachine(done, result);
        // Sent again at once it might reach the terminal again: it is asked about first. A call that wasn't sent says nothing of that.
        const mayRepeat = isGuarded || (result.outcome === "not-sent" && result.passing);
        if (!mayRepeat || isStopped()) return this.#askOn(untilMs - clock.nowMs());
      }
      const isUnsent = result.outcome === "not-sent";
      const waitMs = pauses.nextMs(isUnsent ? { pause: "back-off", retryAfterMs: result.retryAfterMs } : { pause: "interval" });
      if (hasLeft()) continue;
      if (clock.nowMs() + waitMs > untilMs) {
        return isNew ? this.#notSent(result.summary.message) : this.#unknown(result);
      }
      await this.#notify({ type: "waiting", waitMs });
      await sleepUnless(clock, waitMs, [signal, askOnly]);
    }
  }

  async #askOn(windowMs: number): Promise<Settled> {
    const options = { ...this.#options, windowMs: Math.max(0, windowMs) };
    const settled = await resumeByBridge(this.#service, this.#token, options);
    return { ...settled, steps: [...this.#steps, ...settled.steps] };
  }

  /**
   * Takes over what the answer to the start says: the name that only it gives, that the operation has begun, or that it has ended.
   * @param isGuarded A call that is sent again is answered by what the first one was; else it may have been carried out anew.
   */
  #learn(result: CallResult, isGuarded: boolean): Done | undefined {
    const isFirst = !this.#hasLearned;
    this.#hasLearned = true;
    if (result.outcome === "unknown" || (!isFirst && !isGuarded)) this.#atStart = { ...this.#atStart, doubt: true };
    if (result.outcome !== "answered" || result.summary.followed?.answerOf !== undefined) return undefined;
    const step = nextStep(this.#operation, this.#atStart, result, 0);
    if ("verdict" in step) return step;
    const { known } = this.#token;
    const { learned, learnedProven, hasOtherNames, doubt } = step.state;
    // What may be sent again is asked about first, and what was accepted stays so: but its name may be another by now.
    if (known.phase !== "accepted") {
      if (step.state.phase !== "ready") this.#know(step.state);
    } else if (!isGuarded) this.#know({ learned, learnedProven, hasOtherNames, doubt });
    return undefined;
  }

  #know(more: Partial<SettleState>): void {
    this.#token = withKnown(this.#token, { ...this.#token.known, ...more });
  }

  /**
   * The name that the bridge says is proven. While the operation goes on, a bridge that forgot an earlier call doesn't know that this may have
   * shown another code.
   */
  #nameBy(followed: FollowedAnswer | undefined): Partial<SettleState> {
    if (this.#rules.learns === undefined || followed?.trans === undefined) return {};
    const { trans, isGuarded, result } = followed;
    const { learnedProven, hasOtherNames } = stateNamed(this.#atStart, trans);
    const isProven = isGuarded || learnedProven || isGoodEnd(result);
    return { learned: trans, learnedProven: isProven, hasOtherNames: hasOtherNames && !isGuarded };
  }

  /** Whether an earlier call may have shown another code, which may be paid: the failure of this one is no end then (qr.md, Flow rules 3). */
  #mayBeSecondCodes(end: OperationEnd): boolean {
    return this.#rules.learns !== undefined && !isGoodEnd(end) && (this.#hasLearned || this.#atStart.doubt);
  }

  #note({ outcome, summary, ...result }: CallResult, atMs: number): void {
    const status = "success" in result ? (result.success ? "success" : "error") : undefined;
    this.#steps.push({
      action: "start",
      route: this.#route.path,
      atMs,
      outcome,
      status,
      code: summary.code,
      ...(summary.followed && { byBridge: true }),
    });
  }

  /** @param mayStop True if a handler that throws stops the operation: nothing was sent yet. */
  async #notify(event: Omit<SettleEvent, "token">, mayStop = false): Promise<void> {
    try {
      await this.#options.onProgress?.({ ...event, token: this.#token });
    } catch (error) {
      if (mayStop) throw error;
    }
  }

  async #settled(result: Settled["result"], call: CallResult | undefined, message: string | undefined): Promise<Settled> {
    await this.#notify({ type: "final" });
    const { contract } = this.#service;
    const known = { trans: this.#token.trans, steps: this.#steps, token: this.#token };
    const answerOf = call?.summary.followed?.answerOf ?? this.#route.path;
    // An end that is shown beside an open word is another operation's.
    if (result === "unknown" && call !== undefined && saysOthers(this.#operation, answerOf, call)) {
      const { code, message: said } = summaryOfUnproven(call);
      return { result, data: undefined, code, message: said, ...known };
    }
    return { result, data: dataOf(contract, call && replyOf(call)), code: call?.summary.code, message, ...known };
  }

  /**
   * The bridge's `failed` is the contract's own word for it, unless nothing was ever sent.
   * @param isRefused No call before this one may have left, and this one didn't.
   */
  #end(end: OperationEnd, call: CallResult, isRefused: boolean): Promise<Settled> {
    const neverSent = end === "failed" && isRefused;
    this.#know(this.#nameBy(call.summary.followed));
    if (neverSent) this.#token = unsent(this.#token);
    else this.#know(this.#knownAtEnd(end, replyOf(call)));
    const result = neverSent ? "not-sent" : end === "failed" ? this.#rules.refused : end;
    return this.#settled(result, call, call.summary.message);
  }

  #knownAtEnd(end: OperationEnd, reply: JsonObject | undefined): SettleState {
    const { known } = this.#token;
    if (end === "failed" || end === this.#rules.refused) return stateRefused(known);
    return stateAtEnd(known, end, reply && idIn(this.#operation, reply));
  }

  /** The answer of a service that follows nothing ended it. */
  #endByMachine({ verdict, summary }: Done, call: CallResult): Promise<Settled> {
    const { code, message } = summary ?? call.summary;
    const known = stateWithoutEffect(this.#token.known, true, { code, message });
    if (verdict === this.#rules.refused) this.#know(known);
    else if (verdict !== "unknown") this.#know(this.#knownAtEnd(verdict, replyOf(call)));
    return this.#settled(verdict, call, message);
  }

  #notSent(message: string | undefined): Promise<Settled> {
    this.#token = unsent(this.#token);
    return this.#settled("not-sent", undefined, message);
  }

  /** Its caller waits no more. */
  #left(): Promise<Settled> {
    return this.#settled("unknown", undefined, "it is no longer followed");
  }

  #unknown(call: CallResult): Promise<Settled> {
    return this.#settled("unknown", call, summaryOfOpen(call, false).message);
  }
}

const replyOf = (call: CallResult) => (call.outcome === "answered" ? call.reply : undefined);

/** What is known once a call has left: whoever resumes it asks first. */
function begun(token: Token): Token {
  return withKnown(token, { ...token.known, phase: "lost", doubt: true });
}

function unsent(token: Token): Token {
  return withKnown(token, { ...token.known, phase: "unsent", doubt: false });
}
