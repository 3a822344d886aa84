import type { Reply, ServiceName } from "../core/call.ts";
import { durationText } from "../core/duration.ts";
import { Fault, type FaultDetails, type FaultReason, nothingSent } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import type { Presence } from "../core/presence.ts";
import type { ReadReply } from "../envelope/reply.ts";
import type { Question } from "../recovery/standing.ts";
import type { Discard, DiscardReason, Frame, Framing } from "../wire/decoded.ts";
import type { Receiving } from "./frame-reader.ts";
import { babbleMsMax, corruptQuietMs } from "./limits.ts";
import type { Queued } from "./send-queue.ts";

/** What the payload of each reply begins with, as hex, and the bytes before it where a length stands there. */
const brace = "7b";
const lengthBytes = 4;

/** One request for a line. */
export interface LineRequest {
  readonly service: ServiceName;
  /** Route and ids of the call, for those who watch the line; the line itself makes nothing of them. */
  readonly route: string;
  readonly requestId: string;
  readonly callId?: string | undefined;
  readonly framing: Framing;
  readonly payload: readonly Buffer[];
  /** Milliseconds from the last byte sent to the first of the reply. */
  readonly replyTimeoutMs: number;
  readonly urgent: boolean;
  /** Asked by posline itself: sent only when no other call waits. */
  readonly background: boolean;
  /** True for what only reads: it may be sent once more after a corrupt reply. */
  readonly repeatable: boolean;
  /** The question of posline's own whose answer its reply may look like: it asks the same, or may be told the same; undefined for others. */
  readonly shapedAs: Question | undefined;
  /** What the caller must do when the outcome is unknown; ends each such message. */
  readonly adviceWhenUnknown: string;
  readonly caller: Presence;
  /**
   * What must be done before its first byte goes out, once its turn has come; called once. While it lasts nothing is sent, and a
   * call that is refused meanwhile was not sent. Absent for what may go out at once.
   */
  readonly beforeSend?: (() => Promise<void>) | undefined;
}

/** Why what was sent has no good reply: the word for programs, and the words for people. */
export interface Failure {
  readonly reason: FaultReason;
  readonly why: string;
}

/** The reply has more bytes than its service may answer. */
export const tooLarge: Failure = { reason: "reply-too-large", why: "the reply is larger than replyBytesMax allows" };

/** How an exchange ends: with the reply, or with a fault that says whether it was sent, in words that a till can show. */
export type Ending = Reply | Fault;

/** When it came, and until when it may wait. */
export interface ExchangeTimes {
  readonly cameMs: number;
  readonly waitUntilMs: number;
}

/** One request with its frame, from its coming to its end, with the clocks of its sending. It has no clock of its own. */
export class Exchange implements Queued {
  readonly request: LineRequest;
  readonly frame: readonly Buffer[];
  waitUntilMs: number;
  readonly cameMs: number;
  /** Where its ending goes: the driver's, which sets it, and calls it once. A map from exchanges would keep each alive beyond its end. */
  onEnded: ((ending: Ending) => void) | undefined;
  /** Its number in the line's recording, which sets it; 0 where none is kept. On itself, for the same reason. */
  recordedAs = 0;
  readonly #line: string;
  readonly #frameBytes: number;
  #sentMs = 0;
  /** By when the reply must have begun; Infinity until the request is written. */
  #replyDueMs = Number.POSITIVE_INFINITY;
  /** Why what came is not a reply; undefined while nothing like one came. */
  #corrupt: DiscardReason | undefined;
  /** Why its first sending had no good reply, where it waits for its second. */
  #former: Failure | undefined;
  /** How often it was sent; a second time only what changes nothing. */
  #sendings = 0;

  constructor(line: string, request: LineRequest, frame: readonly Buffer[], { cameMs, waitUntilMs }: ExchangeTimes) {
    this.#line = line;
    this.request = request;
    this.frame = frame;
    this.#frameBytes = bytesOf(frame);
    this.cameMs = cameMs;
    this.waitUntilMs = waitUntilMs;
  }

  get urgent(): boolean {
    return this.request.urgent;
  }

  get background(): boolean {
    return this.request.background;
  }

  /** Whether it must be recorded before it is sent; that is done once, however often it is sent. */
  get isToRecord(): boolean {
    return this.#sendings === 0 && this.request.beforeSend !== undefined;
  }

  /** Whether it was sent, if only once. */
  get wasSent(): boolean {
    return this.#sendings > 0;
  }

  /** Whether it may be sent once more after a corrupt reply. */
  get isRepeatable(): boolean {
    return this.request.repeatable && this.#sendings === 1 && !this.request.caller.gone;
  }

  /** Its first byte goes out. */
  sent(now: number): void {
    this.#sentMs = now;
    this.#replyDueMs = Number.POSITIVE_INFINITY;
    this.#corrupt = undefined;
    this.#sendings++;
  }

  /** The kernel accepted its last byte; the wire takes its time. */
  wrote(now: number, msPerByte: number): void {
    this.#replyDueMs = now + this.request.replyTimeoutMs + this.#frameBytes * msPerByte;
  }

  /** It had no good reply, and may wait for its second sending until then. */
  waitsAgain(failure: Failure, untilMs: number): void {
    this.#former = failure;
    this.waitUntilMs = untilMs;
  }

  /** The kernel accepted no byte of this sending after all. */
  unsent(): void {
    this.#sendings--;
  }

  /**
   * Bytes came that became no frame. Noise may come before a reply, zeros that were read as a length too; a broken frame that begins as
   * a reply does is taken to be it.
   */
  discarded({ reason, head }: Pick<Discard, "reason" | "head">): void {
    if (reason !== "noise" && (!head.startsWith("00") || head.startsWith(brace, 2 * lengthBytes))) this.#corrupt ??= reason;
  }

  /**
   * When it fails for want of a good reply. A frame that has begun to come has clocks of its own; the reply may also be among stray bytes, which
   * are looked through when they pause.
   */
  dueMs(phase: Receiving["phase"], heardMs: number): number {
    if (this.#corrupt !== undefined) return Math.min(heardMs + corruptQuietMs, this.#replyDueMs);
    if (phase === "in-frame") return Number.POSITIVE_INFINITY;
    return phase === "garbage" ? this.#replyDueMs + babbleMsMax : this.#replyDueMs;
  }

  /** Why it is due. */
  get dueFor(): Failure {
    if (this.#corrupt === "oversize") return tooLarge;
    if (this.#corrupt !== undefined) return { reason: "reply-corrupt", why: "the reply was corrupt" };
    return { reason: "no-reply", why: `the terminal did not answer within ${durationText(this.request.replyTimeoutMs)}` };
  }

  reply(frame: Frame, { status, code }: ReadReply, now: number): Reply {
    return { payload: frame.payload, status, code, queueMs: this.#sentMs - this.cameMs, lineMs: now - this.#sentMs };
  }

  /** The ending of what waits: nothing was sent, unless it waits for its second sending. */
  refusal(reason: FaultReason, state: string, now: number): Fault {
    const former = this.#former;
    if (former !== undefined) {
      return this.failure({ ...former, why: `${former.why}, and the request was not sent once more (${state})` }, now);
    }
    return unavailable(this.#line, reason, state, { queueMs: now - this.cameMs });
  }

  /**
   * The ending of what was sent and had no good reply.
   * @param more Words for a technician; what to do about the money stands before them.
   */
  failure({ reason, why }: Failure, now: number, more?: string): Fault {
    const what = `No valid reply from line ${this.#line}: ${why}. ${this.request.adviceWhenUnknown}`;
    const message = more === undefined ? what : `${what}. ${more}`;
    const times = { queueMs: this.#sentMs - this.cameMs, lineMs: now - this.#sentMs };
    return new Fault(reason === "no-reply" ? "timeout" : "broken", message, { reason, ...times });
  }
}

/** A call that was not sent; sending it again helps after what its reason says. */
export function unavailable(line: string, reason: FaultReason, state: string, details: FaultDetails = {}): Fault {
  const message = `Cannot send to line ${line}: ${state}. ${nothingSent}`;
  return new Fault("unavailable", message, { ...details, reason });
}
