import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { ServiceName } from "../core/call.ts";
import type { JsonObject } from "../core/json-object.ts";
import { nextByBridge, waitFor } from "./by-bridge.ts";
import {
  type AnswerSummary,
  type CallResult,
  emptySummary,
  summaryOfCopy,
  summaryOfOpen,
  summaryOfUnproven,
} from "./call-result.ts";
import { type Clock, checkedWindowMs, monotonicClock, Pauses, sleepUnless } from "./clock.ts";
import { writeExactObject } from "./exact-json.ts";
import { Followings } from "./followings.ts";
import { type Done, nextStep } from "./machine.ts";
import { type FollowedOperation, idIn, saysOthers } from "./proof.ts";
import type { RemoteService } from "./remote-service.ts";
import {
  type Action,
  actionOf,
  nothingBegun,
  type SettleState,
  stateAfterStop,
  stateAtEnd,
  stateAtResume,
  stateRefused,
  stateWithoutEffect,
} from "./state.ts";
import { contractOfToken, isOld, keyFieldOf, newToken, readToken, type Token, withKnown } from "./token.ts";
import type { Settled, SettleEvent, SettleEventType, SettleOptions, SettleStep } from "./types.ts";

/**
 * Follows an operation to its end over any number of requests, or says "unknown" and gives the token by which it can be followed on: asks
 * the judge what to do, does that one thing, keeps what is known of it by then, and asks again. The meaning of an answer is decided in
 * `machine.ts`, and for a bridge's word in `by-bridge.ts`; here is the I/O: sending, waiting, reporting.
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
  // What is known under the key before, the bridge asks itself
  const token = byBridge ? { ...withKnown(made, { ...made.known, phase: "ready" }), byBridge } : made;
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
  readonly #operation: FollowedOperation;
  readonly #pauses: Pauses;
  readonly #windowMs: number;
  readonly #runBeganMs: number;
  readonly #steps: SettleStep[] = [];
  #token: Token;
  /** The bridge recognises the same call, which is sent again in place of a question. */
  #repeats = false;
  /** A start may have reached the service: the next one is sent again. */
  #mayHaveBegun: boolean;
  /** A request may have left: from here on nothing may stop the run but its own rules. */
  #mayHaveLeft: boolean;
  /** When the last start was answered or given up, for until then it may have waited to be sent; else when this process began. */
  #startEndedMs: number;
  #endMs: number | undefined;
  /** The closed document while its copy is printed. */
  #document: JsonObject | undefined;

  /** @param isNew Nothing of it was sent before this process; else it is asked about first. */
  constructor(service: RemoteService, token: Token, options: SettleOptions, isNew: boolean) {
    const { route, rules, body } = readToken(token);
    const { known } = token;
    this.#service = service;
    this.#options = options;
    this.#clock = options.clock ?? monotonicClock;
    this.#token = isNew ? token : withKnown(token, { ...stateAtResume(known), isOld: isOld(token) });
    this.#mayHaveBegun = !isNew && !nothingBegun(this.#known);
    this.#mayHaveLeft = this.#mayHaveBegun;
    this.#route = route;
    this.#body = body;
    const keyField = keyFieldOf(route);
    const asks = route.polling !== undefined;
    this.#operation = { contract: service.contract, rules, keyField, key: body[keyField], asks };
    this.#pauses = new Pauses(route.polling?.intervalMs, options.intervalMs);
    this.#windowMs = checkedWindowMs(options.windowMs);
    this.#runBeganMs = this.#clock.nowMs();
    this.#startEndedMs = this.#runBeganMs;
  }

  async run(): Promise<Settled> {
    const { phase, refusal } = this.#known;
    if (phase === "unsent") {
      const message = `nothing was sent: ${refusal?.message ?? "start it again"}`;
      return this.#endUnsent({ ...emptySummary, code: refusal?.code, message });
    }
    for (;;) {
      if (this.#noteStop(undefined) && nothingBegun(this.#known)) return this.#endAborted();
      const action = this.#repeats && !this.#known.askOnly ? "start" : actionOf(this.#known);
      if (action === "ask" && !this.#operation.asks) return this.#end(unknown());
      await this.#notify({ type: this.#eventTypeOf(action) });
      if (this.#isAborted) return this.#endAborted();
      if (action === "start" && this.#noteStop(undefined)) continue;
      const sinceStartMs = this.#clock.nowMs() - this.#startEndedMs;
      const result = await this.#send(action);
      this.#endMs ??= this.#clock.nowMs() + this.#windowMs;
      this.#noteStop(action);
      if (result.outcome === "not-sent") {
        const { unreachable, summary } = result;
        await this.#notify({ type: "not sent", unreachable, message: summary.message });
      }
      const step =
        action === "start" && this.#token.byBridge
          ? nextByBridge(this.#operation, this.#known, result, this.#mayHaveBegun)
          : nextStep(this.#operation, this.#known, result, sinceStartMs);
      if ("verdict" in step) return this.#end(action === "print" ? { ...step, summary: summaryOfCopy(result) } : step);
      const next = "next" in step ? step.next : undefined;
      this.#repeats = next === "repeat";
      if (this.#repeats || (action === "start" && result.outcome !== "not-sent")) this.#mayHaveBegun = true;
      this.#document = step.document ?? this.#document;
      this.#know(step.state);
      if (step.state.phase === "accepted" && result.outcome === "answered")
        await this.#notify({ type: "in progress", reply: result.reply });
      if (this.#isAborted) return this.#endAborted();
      if (next === "ask") continue;
      const waitMs = this.#pauses.nextMs(step);
      if (next === "stop" || this.#clock.nowMs() + waitMs > this.#endMs) return this.#endOfWindow(action, result);
      if (waitMs > 0) {
        await this.#notify({ type: "waiting", waitMs });
        await sleepUnless(this.#clock, waitMs, this.#wakeSignals);
      }
      if (this.#isAborted) return this.#endAborted();
    }
  }

  get #known(): SettleState {
    return this.#token.known;
  }

  #know(state: SettleState): void {
    this.#token = withKnown(this.#token, state);
  }

  get #isAborted(): boolean {
    return this.#options.signal?.aborted === true;
  }

  /** What ends a wait: where there is still something to be sent, that it was stopped as well. */
  get #wakeSignals(): readonly (AbortSignal | undefined)[] {
    const { signal, askOnly } = this.#options;
    const asks = askOnly?.aborted === true || (this.#known.phase === "accepted" && !this.#repeats);
    return asks ? [signal] : [signal, askOnly];
  }

  /**
   * Takes note of an abort and of a stop, and says whether it was stopped.
   * @param action What was just done, whose answer is still to be read by what was known when it was sent.
   */
  #noteStop(action: Action | undefined): boolean {
    const { askOnly, aborted } = this.#options;
    const state = { ...this.#known, isAborted: this.#known.isAborted || aborted?.aborted === true };
    const isNew = !state.askOnly && askOnly?.aborted === true;
    const stopped = action === undefined ? stateAfterStop(state) : { ...state, askOnly: true };
    this.#know(isNew ? stopped : state);
    return this.#known.askOnly;
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
    if (action === "start") this.#startEndedMs = this.#clock.nowMs();
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
    return waitFor(this.#endMs - nowMs, replyTimeoutMs);
  }

  /** The route and body of what is to be done. */
  #request(action: Action): readonly [string, string] {
    if (action === "start") return [this.#route.path, this.#token.body];
    const { print, learns } = this.#operation.rules;
    if (action === "print" && print !== undefined) {
      return [print.route, writeExactObject({ [print.key]: integerId(this.#document?.[print.key]) })];
    }
    const { route = "", keys = [] } = this.#route.polling ?? {};
    const keyValueOf = (key: string) => (key === learns ? this.#known.learned : this.#body[key]);
    return [route, writeExactObject(Object.fromEntries(keys.map((key) => [key, keyValueOf(key)])))];
  }

  async #notify(event: Omit<SettleEvent, "token">): Promise<void> {
    try {
      await this.#options.onProgress?.({ ...event, token: this.#token });
    } catch (error) {
      if (!this.#mayHaveLeft || event.type === "sent") throw error;
    }
  }

  /** Nothing was settled in time; what was never sent has ended all the same, in nothing. */
  #endOfWindow(action: Action, result: CallResult): Promise<Settled> {
    // A copy that couldn't be asked for: the document is closed nonetheless
    if (this.#known.phase === "printing")
      return this.#end({ verdict: "unprinted", reply: undefined, summary: summaryOfCopy(result) });
    if (nothingBegun(this.#known)) return this.#endUnsent(result.summary);
    const { followed } = result.summary;
    const [path] = this.#request(action);
    if (saysOthers(this.#operation, followed?.answerOf ?? path, result)) return this.#end(unknown(summaryOfUnproven(result)));
    const reply = followed !== undefined && result.outcome === "answered" ? result.reply : undefined;
    return this.#end({ ...unknown(summaryOfOpen(result, action !== "start")), reply });
  }

  /** The caller doesn't wait any more; what was never sent has ended in nothing here too. */
  #endAborted(): Promise<Settled> {
    return nothingBegun(this.#known)
      ? this.#endUnsent({ ...emptySummary, message: "it was stopped before it was sent" })
      : this.#end(unknown({ ...emptySummary, message: "it is no longer followed" }));
  }

  #endUnsent(summary: AnswerSummary): Promise<Settled> {
    return this.#end({ verdict: this.#operation.rules.refused, reply: undefined, summary });
  }

  async #end({ verdict, reply, summary, known: state = this.#known }: Done): Promise<Settled> {
    const ended = reply ?? this.#document;
    if (verdict === this.#operation.rules.refused && nothingBegun(state)) {
      const answered = this.#steps.some(({ action, outcome }) => action === "start" && outcome !== "not-sent");
      const refusal = { code: summary?.code, message: summary?.message };
      this.#know(stateWithoutEffect(state, answered, refusal));
    } else if (verdict !== "unknown" && state.phase !== "unsent") {
      const isRefused = verdict === this.#operation.rules.refused;
      const id = ended && idIn(this.#operation, ended);
      this.#know(isRefused ? stateRefused(state) : stateAtEnd(state, verdict, id));
    }
    await this.#notify({ type: "final", reply });
    return {
      // Never sent is nobody's refusal
      result: this.#known.phase === "unsent" ? "not-sent" : verdict,
      data: dataOf(this.#service.contract, ended),
      code: summary?.code,
      message: summary?.message,
      trans: this.#token.trans,
      steps: this.#steps,
      token: this.#token,
    };
  }
}

const unknown = (summary?: AnswerSummary): Done => ({ verdict: "unknown", reply: undefined, summary });

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
