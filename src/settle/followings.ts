import { checkOptions } from "./clock.ts";
import { stateLeftToOthers } from "./state.ts";
import { readToken, type Token, withKnown } from "./token.ts";
import type { Settled, SettleOptions } from "./types.ts";

/**
 * The operations that one client follows now. Who settles or resumes one of them is given the same end: a following of its own would send
 * what wasn't sent yet, and print, for none knows what another has just done.
 */

/**
 * Follows an operation from what a token knows of it.
 * @param isNew Nothing of it was sent yet; else it is asked about first.
 */
type Follow = (token: Token, options: SettleOptions, isNew: boolean) => Promise<Settled>;

export class Followings {
  readonly #running = new Map<string, Promise<Settled>>();

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
    if (running !== undefined) return unlessLeft(running, token, options.signal);
    // Not before it is known: its first event's handler may settle it again.
    const following = Promise.resolve().then(() => follow(token, options, isNew));
    this.#running.set(name, following);
    try {
      return await following;
    } finally {
      this.#running.delete(name);
    }
  }
}

/** Two requests with one key and body are one operation; if the key names another operation, as of a refund, each settling is one. */
function nameOf(token: Token): string {
  const { service, route, body, madeMs } = token;
  return JSON.stringify([service, route, body, hasOwnKey(token) ? 0 : madeMs]);
}

const hasOwnKey = (token: Token) => readToken(token).rules.ownKey;

/** The end of an operation that another caller follows, or unknown as soon as this one leaves: the other one may send it, and print. */
function unlessLeft(running: Promise<Settled>, own: Token, signal: AbortSignal | undefined): Promise<Settled> {
  const token = withKnown(own, stateLeftToOthers(own.known));
  const message = "it is no longer followed for this caller, and another one follows it on";
  const left = { result: "unknown", data: undefined, code: undefined, message, trans: token.trans, steps: [], token } as const;
  return new Promise((resolve, reject) => {
    const leave = () => resolve(left);
    if (signal?.aborted === true) leave();
    signal?.addEventListener("abort", leave);
    running.then(resolve, reject).finally(() => signal?.removeEventListener("abort", leave));
  });
}
