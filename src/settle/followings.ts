import { isObject } from "../core/json-object.ts";
import { isAbortSignal } from "./clock.ts";
import { type SettleState, stateLeftToOthers } from "./state.ts";
import { readToken, type Token, withKnown } from "./token.ts";
import type { Settled, SettleEvent, SettleOptions } from "./types.ts";

/**
 * The operations that one client follows now. Who settles or resumes one of them waits for its end with those who do already: each following
 * of its own would send what wasn't sent yet, and print, for none knows what another has just done.
 */

/**
 * Follows an operation from what a token knows of it.
 * @param isNew Nothing of it was sent yet; else it is asked about first.
 */
type Follow = (token: Token, options: SettleOptions, isNew: boolean) => Promise<Settled>;

export class Followings {
  readonly #running = new Map<string, Following>();

  /**
   * Sends a new operation and follows it; waits for its end where it is followed already.
   * @throws TypeError, before anything is sent, for options that can't be listened to.
   */
  async settle(token: Token, options: SettleOptions, follow: Follow): Promise<Settled> {
    checkOptions(options);
    // Where the key is another one's, as a payment's, its till means a second one.
    return hasOwnKey(token) ? this.#follow(token, options, follow, true) : this.#begin(token, options, follow, true);
  }

  /**
   * Waits for the end of an operation that is followed; follows it where it isn't.
   * @throws TypeError, before anything is sent, for options that can't be listened to.
   */
  async resume(token: Token, options: SettleOptions, follow: Follow): Promise<Settled> {
    checkOptions(options);
    return this.#follow(token, options, follow, false);
  }

  async #follow(token: Token, options: SettleOptions, follow: Follow, isNew: boolean): Promise<Settled> {
    const running = this.#running.get(nameOf(token));
    if (running === undefined) return this.#begin(token, options, follow, isNew);
    if (!running.isStopping) return running.join(options);
    // Whoever followed it left a moment ago: this one goes on from there.
    const ended = await running.ended.catch(() => undefined);
    if (ended === undefined || ended.result === "not-sent") return this.#follow(token, options, follow, isNew);
    return ended.result === "unknown" ? this.#follow(ended.token, options, follow, false) : ended;
  }

  #begin(token: Token, options: SettleOptions, follow: Follow, isNew: boolean): Promise<Settled> {
    const following = new Following(token, options, (known, shared) => follow(known, shared, isNew));
    const name = nameOf(token);
    // Two of one payment in the same millisecond
    if (this.#running.has(name)) return following.first;
    this.#running.set(name, following);
    const forget = () => this.#running.delete(name);
    following.ended.then(forget, forget);
    return following.first;
  }
}

/**
 * What JavaScript may give for an AbortSignal, as its controller, or for a function would fail once the operation is on its way, which
 * would then be followed for nobody.
 */
function checkOptions(options: unknown): void {
  if (!isObject(options)) throw new TypeError("Cannot settle: the options are not an object");
  for (const name of ["signal", "askOnly", "aborted"]) {
    const given = options[name];
    if (given === undefined || given === null) continue;
    if (isAbortSignal(given)) continue;
    throw new TypeError(`Cannot settle: ${name} is not an AbortSignal: pass a controller's signal`);
  }
  const { onProgress } = options;
  if (onProgress === undefined || onProgress === null || typeof onProgress === "function") return;
  throw new TypeError("Cannot settle: onProgress is not a function");
}

/** Two requests with one key and body are one operation; if the key names another operation, as of a refund, each settling is one. */
function nameOf(token: Token): string {
  const { service, route, body, madeMs } = token;
  return JSON.stringify([service, route, body, hasOwnKey(token) ? 0 : madeMs]);
}

const hasOwnKey = (token: Token) => readToken(token).rules.ownKey;

/** An operation that is followed, by all who wait for it. */
class Following {
  /** As the one who began it waits for it. */
  readonly first: Promise<Settled>;
  /** Settles when it is followed no more. */
  readonly ended: Promise<Settled>;
  readonly #callers = new Set<Caller>();
  readonly #stop = new AbortController();
  readonly #askOnly = new AbortController();
  readonly #aborted = new AbortController();
  #token: Token;
  #last: SettleEvent | undefined;

  constructor(token: Token, options: SettleOptions, follow: (token: Token, options: SettleOptions) => Promise<Settled>) {
    this.#token = token;
    const shared: SettleOptions = {
      ...options,
      signal: this.#stop.signal,
      askOnly: this.#askOnly.signal,
      aborted: this.#aborted.signal,
      onProgress: (event) => this.#tell(event),
    };
    // Not before its caller is among those who wait.
    this.ended = Promise.resolve().then(() => follow(token, shared));
    this.first = this.join(options);
  }

  /** All who waited for it have left. */
  get isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Waits for its end, or until this caller leaves. */
  async join({ signal, askOnly, aborted, onProgress }: SettleOptions): Promise<Settled> {
    const caller = new Caller(onProgress);
    this.#callers.add(caller);
    // Its own token may be older.
    if (this.#last !== undefined) void caller.tell(this.#last).catch(() => {});
    const over = new AbortController();
    const on = (given: AbortSignal | undefined, then: () => void) => {
      if (given?.aborted === true) then();
      else given?.addEventListener("abort", then, { signal: over.signal });
    };
    on(askOnly, () => this.#askOnly.abort());
    on(aborted, () => this.#aborted.abort());
    const left = new Promise<undefined>((resolve) => {
      on(signal, () => {
        if (this.#callers.size === 1) return this.#stop.abort();
        this.#callers.delete(caller);
        resolve(undefined);
      });
    });
    try {
      return (await Promise.race([this.ended, left])) ?? (await this.#leave(caller));
    } finally {
      over.abort();
    }
  }

  /** What it throws before anything was sent stops the operation: then nobody has its token who wants to have it stored. */
  async #tell(event: SettleEvent): Promise<void> {
    this.#last = event;
    this.#token = event.token;
    const told = await Promise.allSettled([...this.#callers].map((caller) => caller.tell(event)));
    for (const each of told) if (each.status === "rejected") throw each.reason;
  }

  /** Others follow it on, and may send it. */
  async #leave(caller: Caller): Promise<Settled> {
    const known: SettleState = stateLeftToOthers(this.#token.known);
    const token = withKnown(this.#token, known);
    await caller.tell({ type: "final", token }).catch(() => {});
    const message = "it is no longer followed for this caller, and another one follows it on";
    return { result: "unknown", data: undefined, code: undefined, message, trans: token.trans, steps: [], token };
  }
}

/** Who waits for an operation: is told of one event after the other. */
class Caller {
  readonly #onProgress: SettleOptions["onProgress"];
  #told: Promise<void> = Promise.resolve();

  constructor(onProgress: SettleOptions["onProgress"]) {
    this.#onProgress = onProgress;
  }

  /** @throws what its handler throws. */
  tell(event: SettleEvent): Promise<void> {
    const before = this.#told.catch(() => {});
    this.#told = before.then(() => this.#onProgress?.(event));
    return this.#told;
  }
}
