import { isUtf8 } from "node:buffer";
import { setMaxListeners } from "node:events";
import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import { type SettlingRules, settlingRules, settlingRulesOf } from "../contract/settling.ts";
import type { Call, Handler, Reply, ServiceName } from "../core/call.ts";
import { Fault, nothingSent } from "../core/fault.ts";
import type { OperationHistory, PastOperation } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import { Presence } from "../core/presence.ts";
import { bodyDigest } from "../envelope/body-digest.ts";
import { bodyBytes } from "../envelope/body-text.ts";
import { amountIn, amountOf } from "../journal/body-fields.ts";
import { type Clock, monotonicClock, sleepUnless } from "../settle/clock.ts";
import { isInexact, parseExactObject } from "../settle/exact-json.ts";
import { newToken, type Token } from "../settle/token.ts";
import { configurationChanged, Operation } from "./operation.ts";
import type { Turns } from "./turns.ts";

/**
 * Settles on the box: a call that says how long its caller waits for the operation's end (`Prefer: wait`) is sent once, as without,
 * and then followed by the contract's own questions until its end is proven or the time is over. The same call again isn't sent
 * again: it is asked about, and ends as the first.
 *
 * It only asks. What the contract lets a till send again, after proof that the first one wasn't carried out, its till decides. This
 * room knows no line and no HTTP: calls come in as to any handler, and leave by one.
 */

export interface FollowerOptions {
  readonly contract: Contract;
  readonly service: ServiceName;
  /** Where calls leave for the terminal. */
  readonly handler: Handler;
  /** Signs the questions of a fiscal service. */
  readonly merchantId: string | undefined;
  /** What was sent before; absent where no journal is kept. */
  readonly history: OperationHistory | undefined;
  /** The mark of the line's device, where it is known. */
  readonly device?: string | undefined;
  /** Shared by all who ask by themselves on the line. */
  readonly turns: Turns;
  /** The process's own unless a test has another. */
  readonly clock?: Clock;
}

/** Operations of one service that are followed at a time: a till has one or two, and each asks every second or two. */
const followedMax = 64;

/** Milliseconds for which an operation is followed at least, though its caller waits shorter, or has left. */
const windowMsMin = 180_000;

/** Milliseconds between two looks whether a sending has ended. */
const flightLookMs = 250;

/** What of a call says which operation it is. */
interface Asked {
  readonly call: Call;
  readonly contract: Contract;
  readonly route: Route;
  readonly recovery: SettlingRules;
  readonly key: string;
  readonly digest: string;
  /** Where that names the operation beside its key. */
  readonly amount?: number | undefined;
  /** Its body as JSON. */
  readonly json: JsonObject;
}

/** Of an operation among those that are followed and were sent. */
interface Name extends Pick<Asked, "key" | "amount"> {
  readonly path: string;
}

interface Active {
  readonly operation: Operation;
  readonly digest: string;
}

export class Follower {
  #options: FollowerOptions;
  readonly #clock: Clock;
  readonly #active = new Map<string, Active>();
  readonly #stop = new AbortController();

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? monotonicClock;
    // Each operation and each caller listens to it, and Node takes more than ten for a leak.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Takes another configuration; what is followed already asks by it too. */
  use(options: FollowerOptions): void {
    this.#options = options;
  }

  /** Whether an operation is followed now: one that has a question, so none that an amount names. */
  isFollowed(route: string, key: string): boolean {
    return this.#active.has(nameOf(route, key));
  }

  /** Follows nothing any more: each caller that waits is answered what is known. */
  stop(): void {
    this.#stop.abort();
  }

  /**
   * Sends a call and follows it, or asks about it where it was sent before.
   * @throws Fault, which says how the operation stands.
   */
  async follow(call: Call): Promise<Reply> {
    const asked = this.#asked(call);
    // A route that can't be asked about is answered as without: no question, nothing to follow.
    if (asked === undefined) return this.#options.handler({ ...call, followMs: undefined });
    const { followMs: waitMs = 0 } = call;
    const untilMs = this.#clock.nowMs() + waitMs;
    await this.#settleFormer(asked, untilMs);
    await this.#sendingEnded(asked, untilMs);
    if (this.#options.contract !== asked.contract) throw configurationChanged(call.route);
    const { history } = this.#options;
    const isGuarded = history?.isWhole === true;
    const active = this.#active.get(nameOf(asked.route.path, asked.key, asked.amount));
    if (active !== undefined) {
      if (active.digest !== asked.digest) throw reused(asked, undefined);
      return this.#answer(active.operation, asked, untilMs, isGuarded);
    }
    const past = history?.find(this.#options.service, asked.route.path, asked.key, asked.amount);
    if (past !== undefined && past.digest !== asked.digest) throw reused(asked, past);
    // That nothing was carried out is proven, so the same call is a new one.
    const isNew = past === undefined || past.end === "failed";
    if (isNew) this.#refuseOthers(asked);
    if (this.#active.size >= followedMax) throw tooMany(asked);
    // Where it is known how it ended, one question brings the terminal's words for it.
    const windowMs = isNew || past.end === undefined ? Math.max(waitMs, windowMsMin) : 0;
    const operation = this.#begin(asked, isNew ? undefined : past, windowMs, isGuarded);
    return this.#answer(operation, asked, untilMs, isGuarded);
  }

  /**
   * The same without the header may be out: what its answer says of it, no question would.
   * @throws Fault where it is out for longer than its caller waits.
   */
  async #sendingEnded({ route: { path }, key, digest, amount }: Asked, untilMs: number): Promise<void> {
    const isInFlight = await this.#flightEnded({ path, key, amount }, digest, untilMs);
    if (!isInFlight) return;
    const isGuarded = this.#options.history?.find(this.#options.service, path, key, amount)?.isRecorded === true;
    const followed = { result: "unknown", answerOf: undefined, polls: 0, isGuarded } as const;
    const message = `Cannot show an answer to ${path}: it was sent before, and its answer is still awaited`;
    throw new Fault("broken", message, { reason: "no-reply", followed });
  }

  /**
   * Waits for the answer to what isn't followed.
   * @param digest Of which body; undefined for whatever it is.
   * @returns whether it is still awaited.
   */
  async #flightEnded({ path, key, amount }: Name, digest: string | undefined, untilMs: number): Promise<boolean> {
    const { service, history } = this.#options;
    for (;;) {
      if (this.#active.has(nameOf(path, key, amount))) return false;
      const past = history?.find(service, path, key, amount);
      if (past?.isInFlight !== true || (digest !== undefined && past.digest !== digest)) return false;
      const leftMs = untilMs - this.#clock.nowMs();
      if (leftMs <= 0 || this.#stop.signal.aborted) return true;
      await this.#clock.sleep(Math.min(leftMs, flightLookMs), this.#stop.signal);
    }
  }

  /**
   * What a cancel, a confirm or a refund is about stands under the same key, and is asked about before it: once that is sent, an
   * answer about the key may be about either. It waits for that no longer than its caller waits for it.
   */
  async #settleFormer({ call, contract, recovery, route: { path }, key, digest }: Asked, untilMs: number): Promise<void> {
    const { service, history } = this.#options;
    const isKnown = this.#active.has(nameOf(path, key)) || history?.find(service, path, key)?.digest === digest;
    if (!recovery.baseline || isKnown) return;
    for (const former of settlingRules[contract.service]) {
      const route = routeOf(contract, former.route);
      if (route === undefined || former.route === path || route.key === undefined) continue;
      // Its answer may prove more than any question.
      if (await this.#flightEnded({ path: former.route, key }, undefined, untilMs)) continue;
      if (this.#options.contract !== contract) return;
      const waitMs = Math.max(0, untilMs - this.#clock.nowMs());
      const active = this.#active.get(nameOf(former.route, key))?.operation;
      const past = history?.find(service, former.route, key);
      if (active !== undefined) await this.#ended(active, waitMs);
      // Asked about under another name, or by less than names it, it would not be found, and be taken for one that never arrived.
      else if (past?.isLast === true && past.end === undefined && past.ask !== undefined) {
        const { requestId, contract: name } = call;
        const question: Call = {
          ...{ service, contract: name, route: former.route, body: [], requestId, key },
          caller: new Presence(),
        };
        const json = { [route.key]: key, ...past.ask };
        const asked = { call: question, contract, route, recovery: former, key, digest: past.digest, json };
        // As long as proof may take, though this caller waits shorter: the next one finds it.
        await this.#ended(this.#begin(asked, past, Math.max(waitMs, windowMsMin), true), waitMs);
      }
    }
  }

  /** @throws Fault where the terminal has an operation of another service under its key, whose end would be taken for its own. */
  #refuseOthers({ call, route, recovery, key }: Asked): void {
    const { service, history, device } = this.#options;
    if (!recovery.ownKey || recovery.baseline || device === undefined) return;
    const others = history?.findOthers(service, key, device);
    if (others === undefined) return;
    const when = `was sent at ${new Date(others.sentMs).toISOString()} by service ${others.service}`;
    const advice = `use a new ${route.key}, or ask how that one ended where it is this one, sent before its service was renamed`;
    const state = `over the same device another one with the ${route.key} ${JSON.stringify(key)} ${when}, and its end would be taken for this one's`;
    throw new Fault("reused", `Cannot send ${call.route}: ${state}: ${advice}. Nothing was sent`);
  }

  /** @throws Fault where the call can't be followed, and must not be sent as one that is. */
  #asked(call: Call): Asked | undefined {
    const { contract, merchantId } = this.#options;
    const route = routeOf(contract, call.route);
    const recovery = settlingRulesOf(contract.service, call.route);
    if (call.contract !== contract.service) throw configurationChanged(call.route);
    if (route === undefined || recovery === undefined) return undefined;
    const { key } = call;
    if (key === undefined) {
      const state = `the body has no ${route.key}, and without one nothing can be asked: add ${route.key}`;
      throw new Fault("missing", `Cannot follow ${route.path}: ${state}. ${nothingSent}`);
    }
    if (contract.envelope === "form" && merchantId === undefined) {
      const state = "posline can't sign its questions: set merchantId of the service in its configuration";
      throw new Fault("unavailable", `Cannot follow ${route.path}: ${state}. ${nothingSent}`, { reason: "not-configured" });
    }
    const bytes = bodyBytes(contract, call.body);
    if (!isUtf8(bytes)) {
      // Asked about by other characters than it was sent by, it would not be found, and be reported as failed.
      const state = "its JSON is not UTF-8: encode it as UTF-8, or send it without Prefer: wait";
      throw new Fault("malformed", `Cannot follow ${route.path}: ${state}. ${nothingSent}`);
    }
    const text = bytes.toString("utf8");
    const json = parseExactObject(text);
    if (json === undefined) {
      // Asked about by another key, it would not be found, and be reported as failed.
      const state = "its body is not a JSON object in which each field stands once: send each field once";
      throw new Fault("malformed", `Cannot follow ${route.path}: ${state}. ${nothingSent}`);
    }
    const inexact = namesIn(route, recovery).find((name) => isInexact(json[name]));
    if (inexact !== undefined) {
      const state = `its ${inexact}, by which it is asked about, is a number beyond 2^53: send it as a string`;
      throw new Fault("malformed", `Cannot follow ${route.path}: ${state}. ${nothingSent}`);
    }
    const amount = recovery.isByAmount ? amountOf(amountIn(text)) : undefined;
    if (recovery.isByAmount && amount === undefined) {
      const state = "the body has no amount that is a number, and several of one payment are told apart by it: add amount";
      throw new Fault("missing", `Cannot follow ${route.path}: ${state}. ${nothingSent}`);
    }
    return { call, contract, route, recovery, key, digest: bodyDigest(call.body), amount, json };
  }

  /** @param past As it was sent before; undefined where it is to be sent. */
  #begin(
    { call, contract, route, recovery, key, digest, amount, json }: Asked,
    past: PastOperation | undefined,
    windowMs: number,
    isGuarded: boolean,
  ): Operation {
    const { service, history } = this.#options;
    const fresh = tokenOf(contract, service, route, recovery, json);
    // A journal that can't be read, or lacks records, may have had it as sent: then a refusal of this sending doesn't end that one.
    const isDoubtful = history?.isWhole === false;
    const token = { ...fresh, known: { ...fresh.known, doubt: isDoubtful } };
    const operation = new Operation({
      contract,
      service,
      route,
      recovery,
      present: () => this.#options,
      clock: this.#clock,
      stop: this.#stop.signal,
      token: past === undefined ? token : sentBefore(token, past),
      digest,
      call: past === undefined ? call : undefined,
      isGuarded,
      past,
      history: {
        now: () => history?.find(service, route.path, key, amount),
        lastOrder: () => history?.lastOrder(service, key),
        othersOpen: () => history?.othersOpen(service, route.path, key),
        hadAny: () => history?.hadAny(service, key) ?? false,
        mayHaveOthers: (device) => history?.mayHaveOthers(service, device) ?? true,
        othersOrder: (device) => history?.findOthers(service, key, device)?.order,
        accepted: (order) => history?.accepted(service, route.path, key, order),
      },
      requestId: call.requestId,
      windowMs,
    });
    const name = nameOf(route.path, key, amount);
    this.#active.set(name, { operation, digest });
    void operation.started.then(() => history?.followed(service, route.path, key, amount));
    void operation.ended.then(() => {
      this.#active.delete(name);
      const { end, order } = operation;
      if (end !== undefined && operation.mayHaveBegun) history?.settled(service, route.path, key, end, order);
    });
    return operation;
  }

  /** Waits for its end until then, but for the end of its sending in any case, as without. */
  async #answer(
    operation: Operation,
    { call: { caller }, route: { path }, key, amount }: Asked,
    untilMs: number,
    isGuarded: boolean,
  ): Promise<Reply> {
    operation.join(caller, untilMs);
    await Promise.race([operation.started, operation.ended]);
    await this.#ended(operation, Math.max(0, untilMs - this.#clock.nowMs()));
    // What is told must be so after a power cut as well.
    if (operation.mayHaveBegun) await this.#options.history?.recorded(this.#options.service, path, key, amount);
    return operation.answer(isGuarded);
  }

  /** Waits for an operation's end, for so long at most, and not once all is stopped. */
  async #ended({ ended }: Operation, limitMs: number): Promise<void> {
    const over = new AbortController();
    await Promise.race([ended, sleepUnless(this.#clock, limitMs, [over.signal, this.#stop.signal])]);
    over.abort();
  }
}

const nameOf = (route: string, key: string, amount?: number) => `${route} ${key} ${amount ?? ""}`;

/** The fields of a body that name its operation, in a question too. */
const namesIn = (route: Route, recovery: SettlingRules): readonly string[] =>
  [route.key, recovery.learns, ...(route.polling?.keys ?? [])].filter((name) => name !== undefined);

/** What is known of an operation that is about to be sent. Of its body only what names it: the rest goes out as it came. */
function tokenOf(contract: Contract, service: ServiceName, route: Route, recovery: SettlingRules, body: JsonObject): Token {
  const names = namesIn(route, recovery);
  const named = Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));
  const token = newToken(contract, route.path, named, service);
  // The copy of a receipt prints, and printing twice is the till's to decide.
  return { ...token, known: { ...token.known, copied: true, isSentOnce: true } };
}

/** The same of one that was sent before this process, or by a caller that didn't want it followed. */
function sentBefore(token: Token, past: PastOperation): Token {
  const { isFresh, isAccepted, isStopped: isAborted, isUnprinted: unprinted, learned, hasOtherNames } = past;
  const baseline = token.known.phase === "baseline" && !isFresh ? undefined : "";
  const phase = isAccepted ? "accepted" : "lost";
  const named = learned === undefined ? {} : { learned, learnedProven: !hasOtherNames };
  return { ...token, known: { ...token.known, phase, doubt: true, isAborted, baseline, unprinted, hasOtherNames, ...named } };
}

function reused({ route, recovery, key, amount, call }: Asked, past: PastOperation | undefined): Fault {
  const when = past === undefined ? "is being followed" : `was sent at ${new Date(past.sentMs).toISOString()}`;
  const same = `the ${route.key} ${JSON.stringify(key)}${amount === undefined ? "" : " and this amount"}`;
  // Under another key it would be about another payment.
  const advice = recovery.ownKey
    ? `ask how that one ended, and use a new ${route.key} for another operation`
    : `its ${route.key} is the payment's: make sure how that one ended, and send another operation without Prefer: wait`;
  // It has no word: "failed" would let a till that reads the word alone sell once more, while the first one may go on.
  return new Fault("reused", `Cannot send ${call.route}: another body with ${same} ${when}: ${advice}. Nothing was sent`);
}

function tooMany({ call }: Asked): Fault {
  const state = `${followedMax} operations of ${call.service} are followed, which is the limit`;
  return new Fault("unavailable", `Cannot follow ${call.route}: ${state}. ${nothingSent}`, { reason: "too-many-followed" });
}
