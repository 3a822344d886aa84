import type { Presence, Reply, ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import type { ReadReply } from "../envelope/reply.ts";
import type { DiscardReason, Frame, Framing } from "../wire/decoded.ts";
import { bytesOf } from "./frame.ts";
import { corruptQuietMs } from "./limits.ts";
import type { Waiting } from "./queue.ts";

/** One request for a line. */
export interface LineRequest {
  readonly service: ServiceName;
  readonly framing: Framing;
  readonly payload: readonly Buffer[];
  /** Milliseconds from the last byte sent to the first of the reply. */
  readonly replyTimeoutMs: number;
  readonly urgent: boolean;
  /** True for what only reads: it may be sent once more after a corrupt reply. */
  readonly repeatable: boolean;
  /** True when its own answer has the shape of a barrier's. */
  readonly barrierShaped: boolean;
  /** What the caller must do when the outcome is unknown; ends each such message. */
  readonly adviceWhenUnknown: string;
  readonly caller: Presence;
  /**
   * What must be done before its first byte goes out, once its turn has come; called once. While it lasts nothing is sent, and a
   * call that is refused meanwhile was not sent. Absent for what may go out at once.
   */
  readonly beforeSend?: (() => Promise<void>) | undefined;
}

/** Why a reply failed that has more bytes than its service may answer. */
export const tooLarge = "the reply is larger than replyBytesMax allows";

/** Where an exchange ends: its promise. */
export interface Outcome {
  resolve(reply: Reply): void;
  reject(fault: Fault): void;
}

/**
 * One request with its frame, from its coming to its end. It ends once: with the reply, or with a fault that says whether it was
 * sent, in words that a till can show.
 */
export class Exchange implements Waiting {
  readonly request: LineRequest;
  readonly frame: readonly Buffer[];
  readonly frameBytes: number;
  readonly urgent: boolean;
  readonly caller: Presence;
  waitUntilMs: number;
  readonly cameMs: number;
  readonly #line: string;
  readonly #outcome: Outcome;
  #sentMs = 0;
  /** By when the reply must have begun; Infinity until the request is written. */
  #answerDueMs = Number.POSITIVE_INFINITY;
  /** Why what came is no reply; undefined while nothing like one came. */
  #corrupt: DiscardReason | undefined;
  /** How often it was sent; a second time only what changes nothing. */
  #sendings = 0;

  constructor(
    line: string,
    request: LineRequest,
    frame: readonly Buffer[],
    { cameMs, waitUntilMs }: { readonly cameMs: number; readonly waitUntilMs: number },
    outcome: Outcome,
  ) {
    this.#line = line;
    this.request = request;
    this.frame = frame;
    this.frameBytes = bytesOf(frame);
    this.urgent = request.urgent;
    this.caller = request.caller;
    this.cameMs = cameMs;
    this.waitUntilMs = waitUntilMs;
    this.#outcome = outcome;
  }

  /** What must still be done before it is sent; it is done once, however often it is sent. */
  get beforeSend(): (() => Promise<void>) | undefined {
    return this.#sendings > 0 ? undefined : this.request.beforeSend;
  }

  /** Whether it may be sent once more after a reply that was no good. */
  get repeatable(): boolean {
    return this.request.repeatable && this.#sendings === 1 && !this.caller.gone;
  }

  /** Its first byte goes out. */
  sent(now: number): void {
    this.#sentMs = now;
    this.#answerDueMs = Number.POSITIVE_INFINITY;
    this.#corrupt = undefined;
    this.#sendings++;
  }

  /** The system took over its last byte; the wire takes its time. */
  wrote(now: number, msPerByte: number): void {
    this.#answerDueMs = now + this.request.replyTimeoutMs + this.frameBytes * msPerByte;
  }

  /** Bytes came that became no frame. Noise may come before a reply; a broken frame is taken to be the reply. */
  heard(reason: DiscardReason): void {
    if (reason !== "noise") this.#corrupt ??= reason;
  }

  /** When it fails for want of a good reply. A frame that has begun to come has clocks of its own. */
  dueMs({ begun, heardMs }: { readonly begun: boolean; readonly heardMs: number }): number {
    if (this.#corrupt !== undefined) return Math.min(heardMs + corruptQuietMs, this.#answerDueMs);
    return begun ? Number.POSITIVE_INFINITY : this.#answerDueMs;
  }

  /** Why it is due. */
  get dueFor(): { readonly kind: "timeout" | "broken"; readonly why: string } {
    if (this.#corrupt === "oversize") return { kind: "broken", why: tooLarge };
    if (this.#corrupt !== undefined) return { kind: "broken", why: "the reply came corrupt" };
    return { kind: "timeout", why: `no reply came within ${this.request.replyTimeoutMs} ms` };
  }

  /** No byte of this sending was taken over after all. */
  unsent(): void {
    this.#sendings--;
  }

  answer(frame: Frame, { status, code }: ReadReply, now: number): void {
    const queueMs = this.#sentMs - this.cameMs;
    this.#outcome.resolve({ payload: frame.payload, status, code, queueMs, lineMs: now - this.#sentMs });
  }

  /** Ends what waits: nothing was sent, unless it waited for its second turn. */
  refuse(state: string): void {
    if (this.#sendings > 0) this.fail("broken", `the reply was no good, and then ${state}`);
    else this.#outcome.reject(unavailable(this.#line, state, 1, nowMs() - this.cameMs));
  }

  /** Ends what was not sent, in somebody else's words. */
  refuseWith(fault: Fault): void {
    this.#outcome.reject(fault);
  }

  /** Ends what was sent and had no good reply. */
  fail(kind: "timeout" | "broken", why: string): void {
    const message = `No reply from line ${this.#line}: ${why}: ${this.request.adviceWhenUnknown}`;
    const queueMs = this.#sentMs - this.cameMs;
    this.#outcome.reject(new Fault(kind, message, { queueMs, lineMs: nowMs() - this.#sentMs }));
  }
}

/** A call that was not sent. */
export function unavailable(line: string, state: string, retryAfterS: number, queueMs = 0): Fault {
  const message = `Cannot send to line ${line}: ${state}: nothing was sent, it is safe to send again`;
  return new Fault("unavailable", message, { retryAfterS, queueMs });
}
