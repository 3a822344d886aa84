import type { Amount, Reply, ServiceName } from "../core/call.ts";
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

/** Each reply's payload begins with a brace, as hex. In a length frame four bytes stand before it. */
const brace = "7b";
const lengthBytes = 4;

/** A request for a line. */
export interface LineRequest {
  readonly service: ServiceName;
  /** The call's names, for those who watch the line; the line itself doesn't use them. */
  readonly route: string;
  readonly requestId: string;
  readonly callId?: string | undefined;
  readonly key?: string | undefined;
  readonly amount?: Amount | undefined;
  readonly about?: string | undefined;
  readonly framing: Framing;
  readonly payload: readonly Buffer[];
  /** Milliseconds from the last byte sent to the first of the reply. */
  readonly replyTimeoutMs: number;
  readonly urgent: boolean;
  /** Asked by posline itself: sent only when no other call waits. */
  readonly background: boolean;
  /** True if the request only reads: it may be sent once more after a corrupt reply. */
  readonly repeatable: boolean;
  /**
   * The question of posline's own whose answer this request's reply may look like, since it asks or may be told the same; undefined if
   * none.
   */
  readonly shapedAs: Question | undefined;
  /** Advice to the caller if the outcome is unknown; ends each such message. */
  readonly adviceWhenUnknown: string;
  readonly caller: Presence;
  /**
   * Writes the record before the request's first byte, once its turn has come; called once. While it lasts nothing is sent, and a call that
   * is refused meanwhile was not sent. Absent if the request may go out at once.
   */
  readonly beforeSend?: (() => Promise<void>) | undefined;
}

/** Why a sent request has no good reply: the word for programs, and the words for people. */
export interface Failure {
  readonly reason: FaultReason;
  readonly why: string;
}

/** The failure of a reply with more bytes than its service may answer. */
export const tooLarge: Failure = { reason: "reply-too-large", why: "the reply is larger than replyBytesMax allows" };

/** How an exchange ends: with the reply, or with a fault that says whether it was sent, in words that a till can show. */
export type Ending = Reply | Fault;

/** When the exchange came, and until when it may wait. */
export interface ExchangeTimes {
  readonly cameMs: number;
  readonly waitUntilMs: number;
}

/** A request with its frame, from its coming to its end, with the clocks of its sending. An exchange has no clock of its own. */
export class Exchange implements Queued {
  readonly request: LineRequest;
  readonly frame: readonly Buffer[];
  waitUntilMs: number;
  readonly cameMs: number;
  /** Called once with the ending; the driver sets it. A field, since a map from exchanges would keep each alive beyond its end. */
  onEnded: ((ending: Ending) => void) | undefined;
  /** The exchange's number in the line's recording, which sets it; 0 if none is kept. A field for the same reason as `onEnded`. */
  recordedAs = 0;
  readonly #line: string;
  readonly #frameBytes: number;
  #sentMs = 0;
  /** By when the reply must have begun; Infinity until the request is written. */
  #replyDueMs = Number.POSITIVE_INFINITY;
  /** Why the bytes that came are not a reply; undefined while nothing like one came. */
  #corrupt: DiscardReason | undefined;
  /** Why the first sending had no good reply, while the second is awaited. */
  #former: Failure | undefined;
  /** Count of sendings. Only requests that change nothing are sent twice. */
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

  /** True if the exchange must be recorded before it is sent; that is done once, however often it is sent. */
  get isToRecord(): boolean {
    return this.#sendings === 0 && this.request.beforeSend !== undefined;
  }

  /** True if the request was sent at least once. */
  get wasSent(): boolean {
    return this.#sendings > 0;
  }

  /** True if the request may be sent once more after a corrupt reply. */
  get isRepeatable(): boolean {
    return this.request.repeatable && this.#sendings === 1 && !this.request.caller.gone;
  }

  /** Notes that the first byte goes out. */
  sent(now: number): void {
    this.#sentMs = now;
    this.#replyDueMs = Number.POSITIVE_INFINITY;
    this.#corrupt = undefined;
    this.#sendings++;
  }

  /** Notes that the kernel accepted the last byte; the wire takes its time. */
  wrote(now: number, msPerByte: number): void {
    this.#replyDueMs = now + this.request.replyTimeoutMs + this.#frameBytes * msPerByte;
  }

  /** Notes a sending without a good reply; the second sending may wait until `untilMs`. */
  waitsAgain(failure: Failure, untilMs: number): void {
    this.#former = failure;
    this.waitUntilMs = untilMs;
  }

  /** Notes that the kernel accepted no byte of this sending after all. */
  unsent(): void {
    this.#sendings--;
  }

  /**
   * Notes bytes that became no frame. Noise may come before a reply, and so may zeros read as a length; a broken frame that begins as a
   * reply does is taken to be it.
   */
  discarded({ reason, head }: Pick<Discard, "reason" | "head">): void {
    if (reason !== "noise" && (!head.startsWith("00") || head.startsWith(brace, 2 * lengthBytes))) this.#corrupt ??= reason;
  }

  /**
   * When the exchange fails for want of a good reply. A frame that has begun has clocks of its own; the reply may also be among stray
   * bytes, which are looked through when they pause.
   */
  dueMs(phase: Receiving["phase"], heardMs: number): number {
    if (this.#corrupt !== undefined) return Math.min(heardMs + corruptQuietMs, this.#replyDueMs);
    if (phase === "in-frame") return Number.POSITIVE_INFINITY;
    return phase === "garbage" ? this.#replyDueMs + babbleMsMax : this.#replyDueMs;
  }

  /** Why the exchange is due. */
  get dueFor(): Failure {
    if (this.#corrupt === "oversize") return tooLarge;
    if (this.#corrupt !== undefined) return { reason: "reply-corrupt", why: "the reply was corrupt" };
    return { reason: "no-reply", why: `the terminal did not answer within ${durationText(this.request.replyTimeoutMs)}` };
  }

  reply(frame: Frame, { status, code }: ReadReply, now: number): Reply {
    return { payload: frame.payload, status, code, queueMs: this.#sentMs - this.cameMs, lineMs: now - this.#sentMs };
  }

  /** The ending of a waiting exchange: nothing was sent, unless it waits for its second sending. */
  refusal(reason: FaultReason, state: string, now: number): Fault {
    const former = this.#former;
    if (former !== undefined) {
      return this.failure({ ...former, why: `${former.why}, and the request was not sent once more (${state})` }, now);
    }
    return unavailable(this.#line, reason, state, { queueMs: now - this.cameMs });
  }

  /** The ending of a waiting exchange whose caller left. @param before What its client did not wait for. */
  callerLeft(before: string, now: number): Fault {
    const why = `the client disconnected, or shut down its side of the connection, before ${before}`;
    return this.refusal("caller-left", why, now);
  }

  /**
   * The ending of a sent exchange without a good reply.
   * @param more Words for a technician; what to do about the money stands before them.
   */
  failure({ reason, why }: Failure, now: number, more?: string): Fault {
    const what = `No valid reply from line ${this.#line}: ${why}. ${this.request.adviceWhenUnknown}`;
    const message = more === undefined ? what : `${what}. ${more}`;
    const times = { queueMs: this.#sentMs - this.cameMs, lineMs: now - this.#sentMs };
    return new Fault(reason === "no-reply" ? "timeout" : "broken", message, { reason, ...times });
  }
}

/** The fault of a call that was not sent. When to send it again follows from its reason. */
export function unavailable(line: string, reason: FaultReason, state: string, details: FaultDetails = {}): Fault {
  const message = `Cannot send to line ${line}: ${state}. ${nothingSent}`;
  return new Fault("unavailable", message, { ...details, reason });
}
