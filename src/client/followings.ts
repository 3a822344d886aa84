import { checkOptions } from "../settle/clock.ts";
import type { Settled, SettleOptions } from "./settle-types.ts";
import { readToken, type Token } from "./token.ts";

/**
 * The operations that one client follows now. Who settles or resumes one of them is given the same end: a following of its own would send
 * what wasn't sent yet, and print, for none knows what another has just done.
 */

/**
 * Follows an operation from what a token knows of it.
 * @param isNew Nothing of it was sent yet; else it is asked about first.
 */
type Follow = (token: Token, options: SettleOptions, isNew: boolean) => Promise<Settled>;

/** What is followed now, and what each of its callers may say of it: that it is sent no more, and that it was aborted. */
interface Running {
  readonly end: Promise<Settled>;
  readonly askOnly: AbortController;
  readonly aborted: AbortController;
}

export class Followings {
  readonly #running = new Map<string, Running>();

  /** Sends a new operation and follows it; waits for its end where it is followed already. */
  settle(token: Token, options: SettleOptions, follow: Follow): Promise<Settled> {
    let { madeMs } = token;
    // Where the key is another one's, as a payment's, its till means a second one, also in the same millisecond.
    while (this.#running.has(nameOf({ ...token, madeMs })) && !hasOwnKey(token)) madeMs++;
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
    if (running !== undefined) {
      heed(running, options);
      return unlessLeft(running.end, token, options.signal);
    }
    const [askOnly, aborted] = [new AbortController(), new AbortController()];
    const shared = { ...options, askOnly: askOnly.signal, aborted: aborted.signal };
    // Not before it is known: its first event's handler may settle it again.
    const end = Promise.resolve().then(() => follow(token, shared, isNew));
    const own = { end, askOnly, aborted };
    this.#running.set(name, own);
    heed(own, options);
    try {
      return await end;
    } finally {
      this.#running.delete(name);
    }
  }
}

/** Whoever of its callers stops or aborts it, it is sent no more, and may be gone. */
function heed({ end, askOnly, aborted }: Running, options: SettleOptions): void {
  const over = new AbortController();
  const relay = (from: AbortSignal | undefined, to: AbortController) => {
    if (from?.aborted === true) to.abort();
    from?.addEventListener("abort", () => to.abort(), { once: true, signal: over.signal });
  };
  relay(options.askOnly, askOnly);
  relay(options.aborted, aborted);
  const leave = () => over.abort();
  end.then(leave, leave);
}

/** Two requests with one key and body are one operation; if the key names another operation, as of a refund, each settling is one. */
function nameOf(token: Token): string {
  const { service, route, body, madeMs } = token;
  return JSON.stringify([service, route, body, hasOwnKey(token) ? 0 : madeMs]);
}

const hasOwnKey = (token: Token) => readToken(token).rules.ownKey;

/** The end of an operation that another caller follows, or unknown as soon as this one leaves: the other one may send it, and print. */
function unlessLeft(running: Promise<Settled>, own: Token, signal: AbortSignal | undefined): Promise<Settled> {
  const token: Token = { ...own, facts: [...own.facts, { is: "left", atMs: Date.now() }] };
  const message = "it is no longer followed for this caller, and another one follows it on";
  const left = { result: "unknown", data: undefined, code: undefined, message, trans: token.trans, steps: [], token } as const;
  return new Promise((resolve, reject) => {
    const leave = () => resolve(left);
    if (signal?.aborted === true) leave();
    signal?.addEventListener("abort", leave);
    running.then(resolve, reject).finally(() => signal?.removeEventListener("abort", leave));
  });
}
