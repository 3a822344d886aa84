import { checkOptions } from "./clock.ts";
import { stateLeftToOthers } from "./state.ts";
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

  /** Sends a new operation and follows it; waits for its end where it is followed already. */
  settle(token: Token, options: SettleOptions, follow: Follow): Promise<Settled> {
    let { madeMs } = token;
    // Where the key is another one's, as a payment's, its till means a second one, also in the same millisecond.
    while (!hasOwnKey(token) && this.#running.has(nameOf({ ...token, madeMs }))) madeMs++;
    return this.follow({ ...token, madeMs }, options, true, follow);
  }

  /**
   * Waits for the end of an operation that is followed; follows it where it isn't.
   * @throws TypeError, before anything is sent, for options that can't be listened to.
   */
  async follow(token: Token, options: SettleOptions, isNew: boolean, follow: Follow): Promise<Settled> {
    checkOptions("settle", options, ["signal", "askOnly", "aborted"]);
    const name = nameOf(token);
    const running = this.#running.get(name);
    if (running?.isStopping === true) {
      // Whoever followed it left a moment ago: this one goes on from there.
      const ended = await running.ended.catch(() => undefined);
      if (ended === undefined || ended.result === "not-sent") return this.follow(token, options, isNew, follow);
      return ended.result === "unknown" ? this.follow(ended.token, options, false, follow) : ended;
    }
    if (running !== undefined) return running.join(options);
    const following = new Following(token, options, (shared) => follow(token, shared, isNew));
    this.#running.set(name, following);
    const forget = () => this.#running.delete(name);
    following.ended.then(forget, forget);
    return following.join(options);
  }
}

/** Two requests with one key and body are one operation; if the key names another operation, as of a refund, each settling is one. */
function nameOf(token: Token): string {
  const { service, route, body, madeMs } = token;
  return JSON.stringify([service, route, body, hasOwnKey(token) ? 0 : madeMs]);
}

const hasOwnKey = (token: Token) => readToken(token).rules.ownKey;

/** Tells a caller of one event after the other; rejects with what its handler throws. */
type Tell = (event: SettleEvent) => Promise<void>;

/** An operation that is followed, by all who wait for it. */
class Following {
  /** Settles when it is followed no more. */
  readonly ended: Promise<Settled>;
  readonly #callers = new Set<Tell>();
  readonly #stops = { signal: new AbortController(), askOnly: new AbortController(), aborted: new AbortController() };
  #token: Token;
  #last: SettleEvent | undefined;

  constructor(token: Token, options: SettleOptions, follow: (options: SettleOptions) => Promise<Settled>) {
    this.#token = token;
    const { signal, askOnly, aborted } = this.#stops;
    const stops = { signal: signal.signal, askOnly: askOnly.signal, aborted: aborted.signal };
    // Not before its caller is among those who wait.
    this.ended = Promise.resolve().then(() => follow({ ...options, ...stops, onProgress: (event) => this.#tell(event) }));
  }

  /** All who waited for it have left. */
  get isStopping(): boolean {
    return this.#stops.signal.signal.aborted;
  }

  /** Waits for its end, or until this caller leaves. */
  async join({ signal, askOnly, aborted, onProgress }: SettleOptions): Promise<Settled> {
    let told = Promise.resolve();
    const tell: Tell = (event) => {
      told = told.catch(() => {}).then(() => onProgress?.(event));
      return told;
    };
    this.#callers.add(tell);
    // Its own token may be older.
    if (this.#last !== undefined) void tell(this.#last).catch(() => {});
    const over = new AbortController();
    const on = (given: AbortSignal | undefined, then: () => void) => {
      if (given?.aborted === true) then();
      else given?.addEventListener("abort", then, { signal: over.signal });
    };
    on(askOnly, () => this.#stops.askOnly.abort());
    on(aborted, () => this.#stops.aborted.abort());
    const left = new Promise<Settled>((resolve) => {
      on(signal, () => (this.#callers.size === 1 ? this.#stops.signal.abort() : resolve(this.#leave(tell))));
    });
    return Promise.race([this.ended, left]).finally(() => over.abort());
  }

  /** What it throws before anything was sent stops the operation: then nobody has its token who wants to have it stored. */
  async #tell(event: SettleEvent): Promise<void> {
    this.#last = event;
    this.#token = event.token;
    const told = await Promise.allSettled([...this.#callers].map((tell) => tell(event)));
    for (const each of told) if (each.status === "rejected") throw each.reason;
  }

  /** Others follow it on, and may send it. */
  async #leave(tell: Tell): Promise<Settled> {
    this.#callers.delete(tell);
    const token = withKnown(this.#token, stateLeftToOthers(this.#token.known));
    await tell({ type: "final", token }).catch(() => {});
    const message = "it is no longer followed for this caller, and another one follows it on";
    return { result: "unknown", data: undefined, code: undefined, message, trans: token.trans, steps: [], token };
  }
}
