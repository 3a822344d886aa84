import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Recovery } from "../contract/recovery.ts";
import type { ServiceName } from "../core/call.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Operation } from "./evidence.ts";
import { writeObject } from "./exact-json.ts";
import { after, type Ended, type Onward } from "./following.ts";
import { type Action, actionOf, endedInNothing, isUntouched, resumed, stopped } from "./known.ts";
import { nameField, newToken } from "./new-token.ts";
import type { Delivery, Service, Words } from "./service.ts";
import { type Clock, Pauses, clock as realClock, windowOf } from "./settle-clock.ts";
import type { Settled, SettleEvent, SettleEventType, SettleOptions, SettleStep } from "./settled.ts";
import { readToken, type Token } from "./token.ts";

/**
 * Follows an operation to its end over any number of requests, or says "unknown" and gives the token by which it can be followed
 * on. What an answer means is decided in `following.ts`; here things are sent, waited for and told.
 */

/**
 * Starts an operation and follows it.
 * @throws TypeError, before anything is sent, for an operation that can't be followed or a body that is no JSON.
 */
export async function settle(service: Service, path: string, body: object, options: SettleOptions): Promise<Settled> {
  return new Settling(service, newToken(service.contract, path, body), options).run(false);
}

/**
 * Follows an operation on that another process began: asks first, never sends blindly. One that provably wasn't sent yet is
 * sent; one that ended unsent has ended.
 * @throws TypeError for what is no token.
 */
export async function resume(
  services: Readonly<Record<ServiceName, Service>>,
  value: unknown,
  options: SettleOptions,
): Promise<Settled> {
  const { token } = readToken(value);
  return new Settling(services[token.service], { ...token, known: resumed(token.known) }, options).run(true);
}

class Settling {
  readonly #service: Service;
  readonly #options: SettleOptions;
  readonly #clock: Clock;
  readonly #route: Route;
  readonly #recovery: Recovery;
  readonly #body: JsonObject;
  readonly #operation: Operation;
  readonly #pauses: Pauses;
  readonly #windowMs: number;
  readonly #beganMs: number;
  readonly #steps: SettleStep[] = [];
  #token: Token;
  #starts = 0;
  /** When the last start was answered or given up, for until then it may have waited to be sent; else when this process began. */
  #startedMs: number;
  /** A request may have left: from here on nothing may stop the following but its own rules. */
  #begun = false;
  /** The closed document while its copy is printed. */
  #document: JsonObject | undefined;

  constructor(service: Service, token: Token, options: SettleOptions) {
    const { route, recovery, body } = readToken(token);
    this.#service = service;
    this.#options = options;
    this.#clock = options.clock ?? realClock;
    this.#token = token;
    this.#route = route;
    this.#recovery = recovery;
    this.#body = body;
    const keyField = nameField(route, recovery, body);
    const asks = route.polling !== undefined;
    this.#operation = { contract: service.contract, recovery, keyField, key: body[keyField], asks };
    this.#pauses = new Pauses(route.polling?.intervalMs, options.intervalMs);
    this.#windowMs = windowOf(options.windowMs);
    this.#beganMs = this.#clock.nowMs();
    this.#startedMs = this.#beganMs;
  }

  async run(isResumed: boolean): Promise<Settled> {
    const { known } = this.#token;
    if (known.phase === "unsent") return this.#unsent();
    this.#begun = isResumed && !isUntouched(known);
    if (this.#begun) this.#starts = 1;
    let endMs: number | undefined;
    for (;;) {
      if (this.#heedStop(undefined) && isUntouched(this.#token.known)) return this.#left();
      const action = actionOf(this.#token.known);
      if (action === "ask" && !this.#operation.asks)
        return this.#end({ verdict: "unknown", reply: undefined, words: undefined });
      await this.#tell({ type: this.#typeOf(action) });
      if (this.#isLeft) return this.#left();
      if (action === "start" && this.#heedStop(undefined)) continue;
      const sinceStartMs = this.#clock.nowMs() - this.#startedMs;
      const delivery = await this.#deliver(action);
      endMs ??= this.#clock.nowMs() + this.#windowMs;
      this.#heedStop(action);
      const next = after(this.#operation, this.#token.known, delivery, sinceStartMs);
      if ("verdict" in next) return this.#end(next);
      await this.#goOn(next, delivery);
      if (this.#isLeft) return this.#left();
      const waitMs = this.#pauses.after(next);
      if (this.#clock.nowMs() + waitMs > endMs) return this.#windowOver(delivery.words);
      if (waitMs > 0) {
        await this.#tell({ type: "waiting", waitMs });
        await this.#clock.sleep(waitMs, this.#wakes);
      }
      if (this.#isLeft) return this.#left();
    }
  }

  get #isLeft(): boolean {
    return this.#options.signal?.aborted === true;
  }

  /** What ends a wait: where there is still something to be sent, that it was stopped as well. */
  get #wakes(): AbortSignal | undefined {
    const { signal, askOnly } = this.#options;
    const asks = askOnly === undefined || askOnly.aborted || this.#token.known.phase === "accepted";
    if (asks) return signal;
    return signal === undefined ? askOnly : AbortSignal.any([signal, askOnly]);
  }

  /**
   * Takes note of a stop, and says whether there was one.
   * @param action What was just done, whose answer is still to be read by what was known when it was sent.
   */
  #heedStop(action: Action | undefined): boolean {
    const { known } = this.#token;
    if (!known.askOnly && this.#options.askOnly?.aborted === true) {
      this.#token = { ...this.#token, known: action === undefined ? stopped(known) : { ...known, askOnly: true } };
    }
    return this.#token.known.askOnly;
  }

  #typeOf(action: Action): SettleEventType {
    if (action === "ask") return "asked";
    if (action === "print") return "printing";
    return this.#starts === 0 ? "sent" : "resent";
  }

  async #deliver(action: Action): Promise<Delivery> {
    const { contract } = this.#service;
    const [path, body] = this.#request(action);
    const route = routeOf(contract, path);
    if (route === undefined) throw new TypeError(`Cannot settle: ${contract.service} has no route ${path}`);
    if (action === "start") {
      this.#starts++;
      this.#begun = true;
    }
    const atMs = this.#clock.nowMs() - this.#beganMs;
    const { signal, askOnly } = this.#options;
    const delivery = await this.#service.deliver(route, body, {
      ...(signal && { signal }),
      ...(askOnly && action === "start" && { withdrawn: askOnly }),
    });
    if (action === "start") this.#startedMs = this.#clock.nowMs();
    const status = delivery.outcome !== "answered" ? undefined : delivery.success ? "success" : "error";
    this.#steps.push({ action, route: path, atMs, outcome: delivery.outcome, status, code: delivery.words.code });
    return delivery;
  }

  /** The route and body of what is to be done. */
  #request(action: Action): readonly [string, string] {
    if (action === "start") return [this.#route.path, this.#token.body];
    const { print, learns } = this.#recovery;
    if (action === "print" && print !== undefined) {
      return [print.route, writeObject({ [print.key]: integerId(this.#document?.[print.key]) })];
    }
    const { route = "", keys = [] } = this.#route.polling ?? {};
    const known = (key: string) => (key === learns ? this.#token.known.learned : this.#body[key]);
    return [route, writeObject(Object.fromEntries(keys.map((key) => [key, known(key)])))];
  }

  async #goOn(next: Onward, delivery: Delivery): Promise<void> {
    this.#document = next.document ?? this.#document;
    this.#token = { ...this.#token, known: next.known };
    const reply = delivery.outcome === "answered" ? delivery.reply : undefined;
    if (next.known.phase === "accepted" && delivery.outcome === "answered") await this.#tell({ type: "in progress", reply });
  }

  async #tell(event: Omit<SettleEvent, "token">): Promise<void> {
    try {
      await this.#options.onProgress?.({ ...event, token: this.#token });
    } catch (error) {
      if (!this.#begun) throw error;
    }
  }

  /** Nothing was settled in time; what was never sent has ended all the same, in nothing. */
  #windowOver(words: Words): Promise<Settled> {
    const { known } = this.#token;
    // A copy that couldn't be asked for: the document is closed nonetheless
    if (known.phase === "printing") return this.#end({ verdict: "unprinted", reply: undefined, words });
    return this.#end({ verdict: isUntouched(known) ? this.#recovery.refused : "unknown", reply: undefined, words });
  }

  /** The caller doesn't wait any more; what was never sent has ended in nothing here too. */
  #left(): Promise<Settled> {
    const untouched = isUntouched(this.#token.known);
    const message = untouched ? "the caller stopped it before it was sent" : "the caller stopped following it";
    const words = { code: undefined, message, httpStatus: undefined };
    return this.#end({ verdict: untouched ? this.#recovery.refused : "unknown", reply: undefined, words });
  }

  /** It had ended so before it was resumed. */
  #unsent(): Promise<Settled> {
    const { code, message } = this.#token.known.refusal ?? {};
    const words = { code, message: `nothing was sent: ${message ?? "start it anew"}`, httpStatus: undefined };
    return this.#end({ verdict: this.#recovery.refused, reply: undefined, words });
  }

  async #end({ verdict, reply, words }: Ended): Promise<Settled> {
    const { known } = this.#token;
    if (verdict === this.#recovery.refused && isUntouched(known)) {
      const answered = this.#steps.some(({ action, outcome }) => action === "start" && outcome !== "not-sent");
      const refusal = { code: words?.code, message: words?.message };
      this.#token = { ...this.#token, known: endedInNothing(known, answered, refusal) };
    }
    await this.#tell({ type: "final", reply });
    return {
      result: verdict,
      data: dataOf(this.#service.contract, reply ?? this.#document),
      code: words?.code,
      message: words?.message,
      steps: this.#steps,
      token: this.#token,
    };
  }
}

/** The contract has documentID as an integer, and some terminals write it as a string. */
function integerId(value: unknown): unknown {
  return typeof value === "string" && /^\d{1,19}$/.test(value) ? BigInt(value) : value;
}

/** The document of a fiscal answer is the answer itself; the others have theirs in `data`. */
function dataOf({ envelope }: Contract, reply: JsonObject | undefined): JsonObject | undefined {
  if (reply === undefined || envelope === "form") return reply;
  const data = reply["data"];
  return typeof data === "object" && data !== null ? { ...data } : undefined;
}
