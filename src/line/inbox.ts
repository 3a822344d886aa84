import type { Contract } from "../contract/contract.ts";
import { Presence } from "../core/presence.ts";
import type { Frame } from "../wire/decoded.ts";

/**
 * Requests on a line that aren't answered yet. No request has an id: a till takes the next frame for the answer to what it asked last. So
 * it matters which answers still go out.
 *
 * `all`: every request is answered, in order, as a terminal does.
 *
 * `newest`: by the contracts one request is in flight, so a till that asks anew has given up its request before. A waiting one is then
 * never carried out, and the answer to the one in work is kept back: it would be taken for the answer to the new request, an approval of
 * one sale for the approval of another. The same bytes once more are the same question: the one in work answers it, and nothing is carried
 * out twice. A request with an effect is in work until its answer is out on the wire, if that takes long.
 */
export type Answering = "all" | "newest";

/** A request to answer, or a broken frame, which its service answers as well. */
export type Job = { readonly heardMs: number } & ({ readonly frame: Frame } | { readonly broken: Contract });

/** Requests that may wait while another is answered: a till sends one at a time, so more is a fault of its own. */
const waitingMax = 16;

export class Inbox {
  readonly #answering: Answering;
  readonly #givenUp: (job: Job) => void;
  #waiting: Job[] = [];
  #inWork: Job | undefined;
  #wanted = true;

  /** @param givenUp Called with each request that will not be carried out. */
  constructor(answering: Answering, givenUp: (job: Job) => void) {
    this.#answering = answering;
    this.#givenUp = givenUp;
  }

  /** True if the till still awaits the answer to the request in work. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /** True if another request waits. */
  get isAsked(): boolean {
    return this.#waiting.length > 0;
  }

  take(job: Job): void {
    if (this.#answering === "newest" && this.#inWork !== undefined) {
      this.dropWaiting();
      this.#wanted = isSame(this.#inWork, job);
      // A broken frame while another request is in work may be noise: an error would be taken for the answer to that other one.
      if (this.#wanted || "broken" in job) return;
    } else if (this.#answering === "newest") {
      // Several may come in one read: nothing is in work yet, and only the last of them is still awaited.
      const [before] = this.#waiting;
      if (before !== undefined && isSame(before, job)) return;
      this.dropWaiting();
    }
    if (this.#waiting.length < waitingMax) this.#waiting.push(job);
    else this.#givenUp(job);
  }

  /**
   * Gives up all requests, since bytes came that may have been one and can't be read: their sender awaits no other answer any more. The
   * rest of a frame that was broken in two comes so as well; the error that answers it holds for both.
   */
  supersede(): void {
    if (this.#answering === "all") return;
    this.dropWaiting();
    if (this.#inWork !== undefined && !("broken" in this.#inWork)) this.#wanted = false;
  }

  /** Takes the next request into work until `done`; undefined if there is none. */
  next(): Job | undefined {
    this.#inWork = this.#waiting.shift();
    this.#wanted = true;
    return this.#inWork;
  }

  /** Gives up all requests: nobody awaits any answer. */
  drop(): void {
    this.dropWaiting();
    this.#wanted = false;
  }

  dropWaiting(): void {
    for (const job of this.#waiting.splice(0)) this.#givenUp(job);
  }
}

/** The till that sent the request in work; it counts as gone with the opening, or while it awaits something else. */
export class InboxCaller extends Presence {
  readonly #inbox: Inbox;

  constructor(inbox: Inbox) {
    super();
    this.#inbox = inbox;
  }

  override get gone(): boolean {
    return super.gone || !this.#inbox.wanted;
  }
}

/** True if both are the same request, byte for byte, or neither can be read: one error answers both. */
function isSame(one: Job, other: Job): boolean {
  if ("broken" in one && "broken" in other) return true;
  if (!("frame" in one && "frame" in other) || one.frame.framing !== other.frame.framing) return false;
  if (one.frame.payloadBytes !== other.frame.payloadBytes) return false;
  return Buffer.concat(one.frame.payload).equals(Buffer.concat(other.frame.payload));
}
