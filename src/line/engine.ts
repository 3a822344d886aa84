import type { LineConfig } from "../config/config.ts";
import { payloadBytesMax, probeIntervalMs } from "../config/limits.ts";
import type { ServiceName } from "../core/call.ts";
import { durationText } from "../core/duration.ts";
import type { Fault, FaultReason } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type Cause, wordsOf } from "../device/open-errors.ts";
import { msPerByte } from "../device/transport.ts";
import { wholeOf } from "../envelope/json.ts";
import { type ReadReply, readReply } from "../envelope/reply.ts";
import { Recovery } from "../recovery/recovery.ts";
import type { LineService } from "../recovery/standing.ts";
import { isRequest } from "../trouble/byte-patterns.ts";
import { waitWords } from "../trouble/causes.ts";
import { Liveness, type ServiceLiveness } from "../trouble/liveness.ts";
import type { Decoded, Discard, Frame } from "../wire/decoded.ts";
import type { EngineRest, LineEffect, LineEvent, LineReported } from "./events.ts";
import { type Ending, Exchange, type Failure, type LineRequest, tooLarge, unavailable } from "./exchange.ts";
import type { Receiving } from "./frame-reader.ts";
import { idleQuestion, isIdleQuestion } from "./idle-question.ts";
import { babbleMsMax, corruptQuietMs } from "./limits.ts";
import { SendQueue } from "./send-queue.ts";
import { type LineState, nextState, type StateEvent } from "./states.ts";

/**
 * All decisions of a line, without I/O, clock or promise: an event and its moment go in, and the effects to carry out come out, in order.
 * One request is in flight; the line is proven clean before the next; the meaning of a frame to the line is decided here and nowhere else.
 * Bytes, their frames and the clocks of a frame that has begun are the framed link's.
 *
 * The same class runs over a device, over memory and in simulated worlds: the same events at the same times have the same effects. The
 * table of states (`states.ts`) says which event may come in which state.
 */

export interface LineEngineOptions {
  readonly name: string;
  readonly config: LineConfig;
  /** The services on the line. */
  readonly services: readonly LineService[];
  /** The state to go on from; absent if the engine begins anew. */
  readonly rest?: EngineRest | undefined;
}

const never = Number.POSITIVE_INFINITY;

/** Shared by the many events without an effect, so that none makes a list. */
const nothing: readonly LineEffect[] = [];

export class LineEngine {
  readonly #name: string;
  readonly #config: LineConfig;
  readonly #msPerByte: number;
  readonly #replyBytesMax: ReadonlyMap<ServiceName, number>;
  readonly #recovery: Recovery;
  readonly #liveness: Liveness;
  readonly #queue: SendQueue<Exchange>;
  #effects: LineEffect[] = [];
  #state: LineState = "down";
  #reason = "the device is not open yet";
  /** True once the first attempt to open the device has ended. */
  #wasTried = false;
  #isDrained = false;
  #isWriting = false;
  #receiving: Receiving = { phase: "idle", heardMs: 0, burstUntilMs: 0 };
  /** The exchange in flight. */
  #current: Exchange | undefined;
  /** Since when bytes have let no call out, though the line is idle; undefined if they do. */
  #babblesSinceMs: number | undefined;
  /** Until when nothing is sent after an answer, since the terminal may hear nothing so soon. */
  #pausesUntilMs = 0;
  /** When a call, an opening or a recovery was last under way. */
  #lastBusyMs = 0;
  #whyStopping: string | undefined;
  /** The moment of the event that is handled, or was last. */
  #now = 0;
  #stopDueMs = never;

  constructor({ name, config, services, rest }: LineEngineOptions) {
    this.#name = name;
    this.#config = config;
    this.#msPerByte = msPerByte(config);
    this.#replyBytesMax = new Map(services.map(({ service, replyBytesMax }) => [service, replyBytesMax]));
    this.#recovery = new Recovery(services, { lateReplyMs: config.lateReplyMs, probeIntervalMs });
    this.#liveness = new Liveness({ name, config }, services, {
      unheard: (service, cause) => this.#report({ is: "unheard", service, cause }),
      heardAgain: (service) => this.#report({ is: "heard again", service }),
      echoes: (cause) => this.#report({ is: "echoes", cause }),
    });
    this.#queue = new SendQueue(config.queueCallsMax);
    if (rest !== undefined) this.#goOnFrom(rest);
  }

  /** The engine's state at rest; undefined while a call is in flight or waits, and once it stops. */
  get rest(): EngineRest | undefined {
    if (this.#current !== undefined || !this.#queue.isEmpty || this.isStopping) return undefined;
    return {
      state: this.#state,
      reason: this.#reason,
      wasTried: this.#wasTried,
      isDrained: this.#isDrained,
      isWriting: this.#isWriting,
      receiving: this.#receiving,
      lastBusyMs: this.#lastBusyMs,
      babblesSinceMs: this.#babblesSinceMs,
      pausesUntilMs: this.#pausesUntilMs,
      recovery: this.#recovery.state,
      liveness: this.#liveness.state,
    };
  }

  #goOnFrom(rest: EngineRest): void {
    this.#state = rest.state;
    this.#reason = rest.reason;
    this.#wasTried = rest.wasTried;
    this.#isDrained = rest.isDrained;
    this.#isWriting = rest.isWriting;
    this.#receiving = rest.receiving;
    this.#lastBusyMs = rest.lastBusyMs;
    this.#babblesSinceMs = rest.babblesSinceMs;
    this.#pausesUntilMs = rest.pausesUntilMs;
    this.#recovery.state = rest.recovery;
    this.#liveness.state = rest.liveness;
  }

  get state(): LineState {
    return this.#state;
  }

  /** Count of calls that wait. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** True if something is awaited, so that `nextDueMs` or the link must have a due time for it. */
  get isAwaiting(): boolean {
    return this.#current !== undefined || this.#isRecovering || this.#queue.hasReady;
  }

  get isStopping(): boolean {
    return this.#whyStopping !== undefined;
  }

  /** Why the line is in its state, for people. If a service is silent, or refuses to prove the line clean, that and what to do. */
  reason(now: number = this.#now): string {
    const isOpen = this.#state !== "down" && this.#state !== "closed";
    const trouble = isOpen ? this.#trouble() : undefined;
    const cause = trouble ?? (this.#isRecovering ? this.#liveness.refusal(this.#recovery.out) : undefined);
    return this.#withWaits(cause === undefined ? this.#reason : wordsOf(cause), now);
  }

  /** A reason, and what a recovery waits for that time alone ends. */
  #withWaits(reason: string, now: number): string {
    const waits = this.#isRecovering ? this.#recovery.waits(now) : [];
    return [reason, ...waits.map(waitWords)].join("; ");
  }

  /** Why a service is silent. In a recovery only those services count that it waits for. */
  #trouble(): Cause | undefined {
    return this.#liveness.trouble(this.#isRecovering ? this.#recovery.out : undefined);
  }

  /** The state of each service of the line. */
  liveness(): readonly ServiceLiveness[] {
    return this.#liveness.view();
  }

  /** Services that owe a call's answer: the line that follows on the same device must know them. */
  get owing(): readonly ServiceName[] {
    return this.#recovery.owing;
  }

  /** Takes an event, and returns what is to be done before the next one is given. */
  handle(event: LineEvent, now: number): readonly LineEffect[] {
    this.#now = now;
    const waits = this.#isRecovering ? this.#recovery.waits(now).length : Number.POSITIVE_INFINITY;
    this.#dispatch(event, now);
    // That answers can't be told apart turns out in the midst of a recovery; of every other wait the change of state says it.
    if (this.#isRecovering && this.#recovery.waits(now).length > waits) this.#tell(this.#reason);
    if (
      this.isStopping &&
      this.#state !== "closed" &&
      (this.#current === undefined || isIdleQuestion(this.#current.request) || now >= this.#stopDueMs)
    ) {
      this.#close(now);
    }
    if (this.#effects.length === 0) return nothing;
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  #dispatch(event: LineEvent, now: number): void {
    if (this.#state === "closed" && event.at !== "call") return;
    switch (event.at) {
      case "opened":
        this.#opened(event, now);
        break;
      case "drained":
        this.#drained(now);
        break;
      case "open failed":
        this.#openFailed(event.reason, now);
        break;
      case "lost":
        this.#lost(event, now);
        break;
      case "received":
        this.#received(event.items, event.receiving, now);
        break;
      case "wrote":
        this.#wrote(now);
        break;
      case "call":
        this.#called(event.exchange, now);
        break;
      case "recorded":
        this.#recorded(event.exchange, now);
        break;
      case "record failed":
        this.#recordFailed(event.exchange, event.fault, now);
        break;
      case "caller gone":
        this.#callerGone(event.exchange, now);
        break;
      case "stop":
        this.#stop(event.graceMs, event.why, now);
        break;
      case "tick":
        this.#tick(now);
        break;
    }
  }

  // --- the device

  #opened({ owing, seed }: LineEvent & { at: "opened" }, now: number): void {
    this.#wasTried = true;
    this.#receiving = { phase: "idle", heardMs: now, burstUntilMs: 0 };
    this.#isDrained = false;
    this.#take("up", "the device opened");
    this.#recovery.opened(now, seed, owing);
    this.#liveness.opened();
    this.#lastBusyMs = now;
  }

  #drained(now: number): void {
    this.#isDrained = true;
    this.#recovery.heardBytes(now);
    this.#proceed(now);
  }

  /** Calls that waited for the first attempt needn't wait for another. */
  #openFailed(reason: string, now: number): void {
    this.#wasTried = true;
    this.#explain(reason);
    this.#refuseAll("line-down", `it is down (${reason})`, now);
  }

  /** The call in flight fails at once as unknown, those that wait as not sent. */
  #lost({ reason, nothingWritten, discards }: LineEvent & { at: "lost" }, now: number): void {
    const current = this.#current;
    this.#current = undefined;
    this.#isDrained = false;
    this.#isWriting = false;
    if (current !== undefined && !nothingWritten) this.#unanswered(current, now);
    this.#take("down", reason);
    for (const discard of discards) this.#report({ is: "discard", discard });
    const why = `it is down (${reason})`;
    if (current !== undefined && nothingWritten) {
      current.unsent();
      this.#end(current, current.refusal("line-down", why, now));
    } else if (current !== undefined) {
      this.#end(
        current,
        current.failure({ reason: "line-lost", why: `the line was lost before the reply came (${reason})` }, now),
      );
    }
    this.#refuseAll("line-down", why, now);
  }

  // --- calls

  #called(exchange: Exchange, now: number): void {
    const left = exchange.request.caller.gone
      ? this.#unavailable("caller-left", "the client has disconnected, or shut down its side of the connection")
      : undefined;
    const refusal = left ?? this.refusal(now, exchange) ?? this.hindered(exchange.request.service);
    if (refusal !== undefined) this.#end(exchange, refusal);
    else if (this.#isFree(now)) this.#sendOrRecord(exchange, now);
    else this.#queue.add(exchange);
  }

  /** True if a call that came now would be sent at once. */
  #isFree(now: number): boolean {
    return this.#maySend(now) && this.#queue.isEmpty;
  }

  /** Why a call that came now would be refused, a caller's unless said otherwise; undefined if it would be sent, or wait. */
  refusal(now: number, call: Pick<Exchange, "background"> = { background: false }): Fault | undefined {
    if (this.#whyStopping !== undefined) return this.#unavailable("stopping", this.#whyStopping);
    // Before the first attempt to open the device has ended, nobody knows whether there is one.
    if (this.#wasTried && this.#state === "down") return this.#unavailable("line-down", `it is down (${this.reason(now)})`);
    if (this.#isFree(now) || !this.#queue.isFullFor(call)) return undefined;
    return this.#unavailable("queue-full", `${this.#config.queueCallsMax} calls are waiting, which is the limit`);
  }

  #unavailable(reason: FaultReason, state: string): Fault {
    return unavailable(this.#name, reason, state);
  }

  /** Why a service's calls are neither sent nor wait: it was set aside, or another one of its framing was that owes a call's answer. */
  hindered(service: ServiceName): Fault | undefined {
    const hindering = this.#recovery.hindering(service);
    if (hindering === undefined) return undefined;
    const cause = this.#liveness.trouble([hindering]);
    return this.#unavailable("recovering", cause === undefined ? `${hindering} has not answered` : wordsOf(cause));
  }

  #sendOrRecord(exchange: Exchange, now: number): void {
    if (!exchange.isToRecord) this.#send(exchange, now);
    else {
      this.#queue.hold(exchange);
      this.#effects.push({ do: "record", exchange });
    }
  }

  #recorded(exchange: Exchange, now: number): void {
    // The exchange was refused meanwhile, and another may be at the head by now.
    if (this.#queue.head !== exchange) return;
    if (exchange.request.caller.gone) this.#callerGone(exchange, now);
    else {
      this.#queue.headRecorded();
      this.#proceed(now);
    }
  }

  #recordFailed(exchange: Exchange, fault: Fault, now: number): void {
    if (this.#queue.head !== exchange) return;
    this.#queue.remove(exchange);
    this.#end(exchange, fault);
    this.#proceed(now);
  }

  #callerGone(exchange: Exchange, now: number): void {
    const isHead = this.#queue.head === exchange;
    // An exchange in flight runs to its end; only a waiting one is taken out.
    if (!this.#queue.remove(exchange)) return;
    this.#end(exchange, exchange.callerLeft(isHead ? "the request was sent" : "its turn came", now));
    this.#proceed(now);
  }

  #refuseAll(reason: FaultReason, state: string, now: number): void {
    for (const exchange of this.#queue.takeAll()) this.#end(exchange, exchange.refusal(reason, state, now));
  }

  /** True if the line is clean, nothing is in flight, no byte of an unknown frame is pending or about to come, and the terminal listens. */
  #maySend(now: number): boolean {
    return this.#state === "idle" && this.#isPausing(now) && now >= this.#pausesUntilMs && !this.isStopping;
  }

  /** True if no byte of an unknown frame is pending, and none is about to come. */
  #isPausing(now: number): boolean {
    return this.#isStill && now >= this.#receiving.burstUntilMs;
  }

  /** True after the first silence, if nothing is being written and no byte of an unfinished frame is pending. */
  get #isStill(): boolean {
    return this.#isDrained && !this.#isWriting && this.#receiving.phase === "idle";
  }

  /** Sends waiting calls while the line allows it. */
  #proceed(now: number): void {
    while (this.#maySend(now)) {
      const isRecorded = this.#queue.isHeadReady;
      const next = this.#queue.next();
      if (next === undefined) return;
      const hindered = this.hindered(next.request.service);
      if (next.request.caller.gone) this.#end(next, next.callerLeft("its turn came", now));
      else if (hindered !== undefined) this.#end(next, hindered);
      else if (isRecorded) this.#send(next, now);
      else this.#sendOrRecord(next, now);
    }
  }

  #send(exchange: Exchange, now: number): void {
    this.#take("send");
    this.#current = exchange;
    exchange.sent(now);
    const { frame, request } = exchange;
    this.#write(frame, request.service, isIdleQuestion(request) ? undefined : exchange);
  }

  #write(frame: readonly Buffer[], service: ServiceName, exchange: Exchange | undefined): void {
    this.#isWriting = true;
    this.#effects.push({ do: "write", frame, service, exchange });
  }

  #wrote(now: number): void {
    this.#isWriting = false;
    if (this.#current !== undefined) this.#current.wrote(now, this.#msPerByte);
    else {
      if (this.#isRecovering) this.#recovery.wrote(now);
      this.#afterBytes(now);
    }
  }

  // --- frames

  #received(items: readonly Decoded[], receiving: Receiving, now: number): void {
    if (this.#isPausing(now)) this.#babblesSinceMs = undefined;
    this.#receiving = receiving;
    if (items.some(isAnswer)) this.#pausesUntilMs = receiving.heardMs + this.#config.pauseMs;
    if (this.#isRecovering) this.#recovery.heardBytes(now);
    if (items.length > 1) this.#receivedAtOnce(items, now);
    for (const item of items) {
      if (item.kind === "frame") this.#framed(item, now);
      else this.#discarded(item, now);
    }
    // After a whole frame, a call whose reply is overdue fails at once, even if another frame has begun.
    const isBetweenFrames = items.at(-1)?.kind === "frame" || (items.length > 0 && receiving.phase === "in-frame");
    if (isBetweenFrames && this.#current !== undefined && !this.#isWriting) this.#replyDue(this.#current, "idle", now);
    // Bytes that never pause become no discard.
    if (receiving.phase === "garbage") this.#liveness.strayed("babble", now);
    this.#noteBabble(now);
    this.#afterBytes(now);
  }

  /** A line that lets no call out isn't ready, whatever its state was. */
  #noteBabble(now: number): void {
    if (this.#state !== "idle" || this.#isPausing(now)) {
      this.#babblesSinceMs = undefined;
      return;
    }
    this.#babblesSinceMs ??= now;
    if (now < this.#babblesSinceMs + babbleMsMax) return;
    this.#take("stray", "bytes come without a pause, and none of them is an answer: wrong speed, or another device?");
  }

  /**
   * Two different replies in one read: nobody knows which is the call's. The same one twice is no doubt, nor are zeros after a reply, which
   * read as empty frames.
   */
  #receivedAtOnce(items: readonly Decoded[], now: number): void {
    const current = this.#current;
    if (current === undefined || this.#isWriting) return;
    const isReply = (frame: Frame) =>
      frame.isEcho !== true &&
      frame.payloadBytes > 0 &&
      !this.#isStray(frame, jsonOf(readReply(frame.payload)), current.request);
    const frames = items.filter((item) => item.kind === "frame");
    const [first, ...others] = frames.filter(isReply).map(({ payload }) => Buffer.concat(payload));
    if (first === undefined || others.every((each) => each.equals(first))) return;
    this.#fail(current, { reason: "reply-ambiguous", why: "two replies came at once" }, now);
  }

  /** Ends a recovery only after the whole read, since a frame after the probe's answer counts too; then waiting calls are sent. */
  #afterBytes(now: number): void {
    this.#lookClean(now, "the terminal answered: the line is ready");
    this.#proceed(now);
  }

  #framed(frame: Frame, now: number): void {
    if (frame.isEcho === true) {
      this.#report({ is: "echo", frame });
      this.#liveness.echoed(now);
      return;
    }
    const read = readReply(frame.payload);
    const json = jsonOf(read);
    const current = this.#current;
    // Zeros read as empty frames, of a line that is held low or after an answer: a terminal answers nothing by that.
    if (frame.payloadBytes === 0) {
      this.#liveness.strayed("noise", now);
      this.#report({ is: "late", frame });
    } else if (this.#isRecovering) this.#framedInRecovery(frame, json, now);
    else if (current === undefined || this.#isStray(frame, json, current.request)) this.#strayed(frame, json, now);
    else if (this.#isWriting) {
      // A late frame is not the reply, so the next frame may not be it either.
      this.#report({ is: "late", frame });
      this.#fail(current, { reason: "reply-ambiguous", why: "a frame came before the whole request was sent" }, now);
    } else if (isIdleQuestion(current.request)) this.#repliedIdle(current, json, now);
    else if (frame.payloadBytes > this.#replyBytesMaxOf(current)) this.#fail(current, tooLarge, now);
    else if (typeof read === "string") this.#fail(current, { reason: "reply-corrupt", why: `the reply is ${read}` }, now);
    else this.#replied(current, frame, read, now);
  }

  /** On a shared line a reply may be larger than its own service allows. */
  #replyBytesMaxOf({ request: { service } }: Exchange): number {
    return this.#replyBytesMax.get(service) ?? payloadBytesMax;
  }

  #replied(current: Exchange, frame: Frame, read: ReadReply, now: number): void {
    const { service } = current.request;
    this.#current = undefined;
    this.#take("frame");
    this.#liveness.heard(service, now);
    this.#lastBusyMs = now;
    this.#end(current, current.reply(frame, read, now));
    // A service may be out of step all the same, if a stray frame came before this reply.
    if (!this.#recovery.isClean) this.#outOfStep();
  }

  /** Takes any answer to an idle line's question as its end. */
  #repliedIdle({ request: { service } }: Exchange, json: JsonObject | undefined, now: number): void {
    this.#current = undefined;
    this.#take("frame");
    this.#liveness.heard(service, now);
    const isRight = this.#recovery.answeredIdle(service, json, now);
    if (isRight) this.#liveness.probed(service);
    else this.#liveness.refused(service, json);
    if (!this.#recovery.isClean) this.#take("stray", `${service} has answered posline's own question`);
  }

  /** True if a frame that came while a request was out can't be its reply. */
  #isStray({ framing }: Frame, json: JsonObject | undefined, request: LineRequest): boolean {
    return framing !== request.framing || (json !== undefined && this.#recovery.isProbeAnswer(framing, json, request));
  }

  /** Takes a whole frame that nobody asked for: question and answer are out of step. */
  #strayed(frame: Frame, json: JsonObject | undefined, now: number): void {
    this.#report({ is: "late", frame });
    this.#liveness.strayed(isRequest(wholeOf(frame.payload)) ? "till" : "late", now);
    this.#recovery.unasked(frame.framing, json, now);
    // The call that is out goes on: what can't be its reply says nothing of it.
    if (this.#current !== undefined) this.#take("stray");
    else if (this.#recovery.isClean) this.#take("frame");
    else this.#outOfStep();
  }

  #framedInRecovery(frame: Frame, json: JsonObject | undefined, now: number): void {
    const { kind, service } = this.#recovery.heard(frame.framing, json, now);
    if (isRequest(wholeOf(frame.payload))) this.#liveness.requested(service, now);
    else if (service === undefined) this.#liveness.strayed(json === undefined ? "noise" : "late", now);
    else {
      this.#liveness.heard(service, now);
      if (kind === "refusal") this.#liveness.refused(service, json);
      else if (kind === "answer") this.#liveness.probed(service);
    }
    if (kind !== "answer") this.#report({ is: "late", frame });
    else if (json !== undefined) this.#report({ is: "probe answered", service, answer: json });
    this.#take(kind === "answer" ? "frame" : "stray");
  }

  #discarded(discard: Discard, now: number): void {
    this.#report({ is: "discard", discard });
    this.#current?.discarded(discard);
    this.#liveness.discarded(discard, now);
    if (this.#state !== "idle" || discard.checksum === undefined) return;
    // A torn frame is as good a stray as a whole one: the terminal answered something.
    this.#recovery.unasked(discard.checksum.crc32 === undefined ? "length" : "stx", undefined, now);
    if (!this.#recovery.isClean) this.#outOfStep();
  }

  #outOfStep(): void {
    this.#take("stray", "a frame came that was not requested");
  }

  /** Tells recovery that a request has no whole answer. */
  #unanswered({ request }: Exchange, now: number): void {
    if (isIdleQuestion(request)) this.#recovery.lostIdle(request.service, now);
    else this.#recovery.lost(request.service, now);
  }

  /**
   * Ends a call that was sent and has no good reply: its outcome is unknown, unless the request is sent once more, which only harmless ones
   * are.
   */
  #fail(exchange: Exchange, failure: Failure, now: number): void {
    const isTimeout = failure.reason === "no-reply";
    const { service } = exchange.request;
    this.#current = undefined;
    this.#unanswered(exchange, now);
    const silence = isTimeout ? this.#liveness.silence(service, now) : undefined;
    if (isTimeout) this.#liveness.unanswered(service, now);
    // The silence of a service that was set aside is known already and changes nothing.
    this.#take(this.#recovery.isClean ? "clean" : "fail", failure.why);
    // After a timeout a second sending would double the till's wait, and the till asks again anyway.
    if (!isTimeout && exchange.isRepeatable && !this.isStopping) {
      exchange.waitsAgain(failure, now + this.#config.queueWaitMs);
      this.#queue.putFirst(exchange);
    } else this.#end(exchange, exchange.failure(failure, now, silence));
  }

  // --- time

  /** When something is due, unless an event comes before; Infinity when nothing is. */
  nextDueMs(): number {
    if (this.#state === "closed") return never;
    const due = Math.min(this.#queue.nextDueMs, this.#stopDueMs);
    if (!this.#isDrained || this.#isWriting) return due;
    return Math.min(due, this.#lineDueMs(), this.#liveness.reportDueMs);
  }

  #lineDueMs(): number {
    const { phase, heardMs, burstUntilMs } = this.#receiving;
    if (this.#current !== undefined) return this.#current.dueMs(phase, heardMs);
    // A frame that has begun has clocks of its own, which a probe's answer would only start anew.
    if (this.#isRecovering) {
      if (phase === "in-frame") return never;
      if (this.#recovery.isClean) return this.#isStill ? burstUntilMs : never;
      return Math.max(this.#recovery.dueMs(this.#isStill), this.#mayAskMs);
    }
    if (this.#state !== "idle" || !this.#isStill) return never;
    const quietMs = Math.max(burstUntilMs, this.#pausesUntilMs);
    if (this.#queue.hasReady) return quietMs;
    return this.#queue.isEmpty ? Math.max(this.#idleProbeDueMs, quietMs) : never;
  }

  /** When a recovery may ask: what came corrupt has ended, and the terminal listens. */
  get #mayAskMs(): number {
    return Math.max(this.#corruptOverMs, this.#pausesUntilMs);
  }

  /**
   * Until when corrupt bytes may go on: the answer to a question asked meanwhile would be taken for more of them. CR LF after each answer
   * is as corrupt. On a line that never pauses the question is asked all the same.
   */
  get #corruptOverMs(): number {
    const { phase, heardMs } = this.#receiving;
    return phase === "garbage" ? Math.min(heardMs + corruptQuietMs, this.#recovery.askedMs + probeIntervalMs) : 0;
  }

  #tick(now: number): void {
    for (const exchange of this.#queue.expired(now)) this.#expire(exchange, now);
    // Before a line is drained and while it is written to, its moments hang on bytes, which are the link's affair.
    if (!this.#isDrained || this.#isWriting) return;
    this.#liveness.reportDue(now);
    if (this.#current !== undefined) this.#replyDue(this.#current, this.#receiving.phase, now);
    else if (this.#isRecovering) this.#recoveryDue(now);
    else if (this.#maySend(now) && this.#queue.isEmpty) this.#probeIdle(now);
    this.#afterBytes(now);
  }

  #expire(exchange: Exchange, now: number): void {
    const isBeingRecorded = this.#queue.head === exchange && !this.#queue.isHeadReady;
    const waiting: Failure = isBeingRecorded
      ? { reason: "not-recorded", why: "it was still being recorded in the journal" }
      : this.#whyWaiting(now);
    const waitedMs = this.#queue.head === exchange ? now - exchange.cameMs : this.#config.queueWaitMs;
    this.#queue.remove(exchange);
    this.#end(exchange, exchange.refusal(waiting.reason, `${waiting.why}, and the call waited ${durationText(waitedMs)}`, now));
  }

  /** Why a waiting call waits. */
  #whyWaiting(now: number): Failure {
    if (this.#state === "down") return { reason: "line-down", why: "its device is still being opened" };
    if (!this.#isRecovering) return { reason: "waited-too-long", why: "it is busy with other calls" };
    const trouble = this.#trouble();
    const why = trouble === undefined ? [this.#reason, ...this.#awaited(now)].join("; ") : wordsOf(trouble);
    return { reason: "recovering", why: `it is recovering (${this.#withWaits(why, now)})` };
  }

  /** The answers and silences that a recovery waits for, in words. */
  #awaited(now: number): readonly string[] {
    const { answering, out } = this.#recovery;
    const waiting = this.#recovery.waits(now).flatMap(({ kind, service }) => (kind === "one question" ? [service] : []));
    const silent = out.filter((service) => !answering.includes(service) && !waiting.includes(service));
    if (silent.length > 0) return this.#liveness.whyUnproven(silent);
    return answering.length > 0 ? [`older answers of ${answering.join(", ")} may still come`] : [];
  }

  #replyDue(current: Exchange, phase: Receiving["phase"], now: number): void {
    if (now < current.dueMs(phase, this.#receiving.heardMs)) return;
    this.#fail(current, current.dueFor, now);
  }

  /** Believes a silence that was long enough; otherwise sends a probe, if one is due. */
  #recoveryDue(now: number): void {
    if (this.#receiving.phase === "in-frame") return;
    if (this.#isStill && this.#recovery.believeSilence(now).length > 0) {
      this.#lookClean(now, this.#liveness.whyClean(this.#recovery));
      return;
    }
    if (now < this.#mayAskMs) return;
    const asked = this.#recovery.askDue(now);
    if (asked === undefined) return;
    const { service } = asked.lineService;
    this.#liveness.unanswered(service, now);
    this.#write(asked.frame, service, undefined);
  }

  /** Ends the recovery if each service is in step or set aside. */
  #lookClean(now: number, why: string): void {
    if (!this.#isRecovering || !this.#isPausing(now) || !this.#recovery.isClean) return;
    this.#take("clean", why);
    this.#lastBusyMs = now;
  }

  // --- an idle line

  get #idleProbeDueMs(): number {
    if (this.#state !== "idle") return never;
    return this.#recovery.idleDue(this.#config.idleProbeMs, this.#lastBusyMs).dueMs;
  }

  /** Asks a service as any call would, so that a missing answer leads to the same proof. Calls that come meanwhile wait. */
  #probeIdle(now: number): void {
    const { lineService, dueMs } = this.#recovery.idleDue(this.#config.idleProbeMs, this.#lastBusyMs);
    if (now < dueMs || lineService?.probe === undefined) return;
    this.#recovery.askedIdle(lineService.service, now);
    this.#send(new Exchange(this.#name, idleQuestion(lineService), lineService.probe, { cameMs: now, waitUntilMs: now }), now);
  }

  // --- the end

  #stop(graceMs: number, why: string, now: number): void {
    this.#stopDueMs = Math.min(this.#stopDueMs, now + graceMs);
    if (this.#whyStopping !== undefined) return;
    this.#whyStopping = why;
    this.#refuseAll("stopping", why, now);
  }

  #close(now: number): void {
    const why = this.#whyStopping ?? "";
    this.#take("close", why);
    const current = this.#current;
    this.#current = undefined;
    if (current !== undefined) {
      // The line that follows on the device has to know that the call's answer may come.
      this.#unanswered(current, now);
      this.#end(current, current.failure({ reason: "stopping", why: `${why}, and the reply had not come` }, now));
    }
    this.#effects.push({ do: "close" });
  }

  // --- state and effects

  get #isRecovering(): boolean {
    return this.#state === "recovering";
  }

  /** Changes the state: no other place does. An exchange's coming and going isn't reported. */
  #take(event: StateEvent, reason = ""): void {
    const before = this.#state;
    this.#state = nextState(before, event);
    if (before === this.#state || event === "send" || (before === "awaiting" && this.#state === "idle")) return;
    this.#tell(reason);
  }

  #tell(reason: string): void {
    this.#reason = reason;
    this.#report({ is: "state", state: this.#state, reason: this.#withWaits(reason, this.#now) });
  }

  /** Keeps the state and reports another reason for it. */
  #explain(reason: string): void {
    if (this.#reason !== reason) this.#tell(reason);
  }

  /**
   * Ends an exchange. Nobody waits for an idle line's own probe, so its ending is dropped: its meaning was noted when the answer came, or
   * stayed out.
   */
  #end(exchange: Exchange, ending: Ending): void {
    if (!isIdleQuestion(exchange.request)) this.#effects.push({ do: "end", exchange, ending });
  }

  #report(what: LineReported): void {
    this.#effects.push({ do: "report", what });
  }
}

/** A broken frame is taken for an answer as well; noise is none. */
const isAnswer = (item: Decoded) => item.kind === "frame" || item.reason !== "noise";

const jsonOf = (read: ReturnType<typeof readReply>) => (typeof read === "string" ? undefined : read.json);
