import type { Contract } from "../contract/contract.ts";
import { Presence } from "../core/presence.ts";
import type { Frame } from "../wire/decoded.ts";

/**
 * What was asked on a line and isn't answered yet. No request of a line has an id: a till takes the next frame for the
 * answer to what it asked last. So it matters which answers still go out.
 *
 * `all`: every request is answered, in order, as a terminal does.
 *
 * `newest`: by the contracts one request is in flight, so a till that asks anew has given up what it asked before. What waits is then
 * never carried out, and the answer to what is in work is kept back: it would be taken for the answer to the new request, an
 * approval of one sale for the approval of another. The same bytes once more are the same question: the one in work answers it,
 * and nothing is carried out twice. What has an effect is in work until its answer is out on the wire, where that takes long.
 */
export type Answering = "all" | "newest";

/** Something to answer: a request, or a frame that was broken, which its service answers as well. */
export type Job = { readonly heardMs: number } & ({ readonly frame: Frame } | { readonly broken: Contract });

/** Requests that may wait behind the one that is being answered: a till sends one at a time, so more is a fault of its own. */
const waitingMax = 16;

export class Inbox {
  readonly #answering: Answering;
  readonly #givenUp: (job: Job) => void;
  #waiting: Job[] = [];
  #inWork: Job | undefined;
  #wanted = true;

  /** @param givenUp Called with each request that is not going to be carried out. */
  constructor(answering: Answering, givenUp: (job: Job) => void) {
    this.#answering = answering;
    this.#givenUp = givenUp;
  }

  /** Whether the till still awaits the answer to what is in work. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /** Whether another request waits. */
  get isAsked(): boolean {
    return this.#waiting.length > 0;
  }

  take(job: Job): void {
    if (this.#answering === "newest" && this.#inWork !== undefined) {
      this.dropWaiting();
      this.#wanted = isSame(this.#inWork, job);
      // What came broken while another is in work may be noise: an error would be taken for the answer to that other one.
      if (this.#wanted || "broken" in job) return;
    } else if (this.#answering === "newest") {
      // Several may come in one read: nothing is in work yet, and only the last of them is awaited still.
      const [before] = this.#waiting;
      if (before !== undefined && isSame(before, job)) return;
      this.dropWaiting();
    }
    if (this.#waiting.length < waitingMax) this.#waiting.push(job);
    else this.#givenUp(job);
  }

  /**
   * Bytes came that may have been a request, and can't be read: their sender awaits neither the answer that is in work nor
   * one that waits. The rest of a frame that was broken in two comes so as well: the error that it is answered with holds for both.
   */
  supersede(): void {
    if (this.#answering === "all") return;
    this.dropWaiting();
    if (this.#inWork !== undefined && !("broken" in this.#inWork)) this.#wanted = false;
  }

  /** The next one is in work until `done`; undefined when there is none. */
  next(): Job | undefined {
    this.#inWork = this.#waiting.shift();
    this.#wanted = true;
    return this.#inWork;
  }

  /** Nobody awaits any answer any more. */
  drop(): void {
    this.dropWaiting();
    this.#wanted = false;
  }

  dropWaiting(): void {
    for (const job of this.#waiting.splice(0)) this.#givenUp(job);
  }
}

/** Who sent what is in work; gone with the opening, or while it awaits something else. */
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

/** Whether both are the same request, byte for byte, or can't be read both: one error answers them. */
function isSame(one: Job, other: Job): boolean {
  if ("broken" in one && "broken" in other) return true;
  if (!("frame" in one && "frame" in other) || one.frame.framing !== other.frame.framing) return false;
  if (one.frame.payloadBytes !== other.frame.payloadBytes) return false;
  return Buffer.concat(one.frame.payload).equals(Buffer.concat(other.frame.payload));
}
