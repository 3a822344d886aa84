import type { LineConfig } from "../config/config.ts";
import { barrierIntervalMs, silenceMs } from "../config/limits.ts";
import type { Presence, Reply, ServiceName } from "../core/call.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import type { JsonObject } from "../envelope/json.ts";
import { type ReadReply, readReply } from "../envelope/reply.ts";
import type { Discard, Frame, Framing } from "../wire/decoded.ts";
import type { Ear, Open, Opening } from "./conduit.ts";
import { bytesOf, frameOf, msPerByte } from "./frame.ts";
import { corruptQuietMs, silenceMsMax, writeMsMin } from "./limits.ts";
import { Opener } from "./opener.ts";
import { CallQueue, type Waiting } from "./queue.ts";
import { Reader } from "./reader.ts";
import { type Peer, Recovery } from "./recovery.ts";
import { type LineEvent, type LineState, nextState } from "./states.ts";

/**
 * One serial line: a device that is opened again for ever, one request in flight, and proof that the line is clean before the
 * next. It knows frames, services that owe and the shape of a barrier's answer, and no route.
 */

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
}

/** What a line tells of itself, for the log and the status. */
export interface LineReport {
  state(state: LineState, reason: string): void;
  /** Bytes that became no frame. */
  discard(discard: Discard): void;
  /** A whole frame that was given to nobody. */
  late(frame: Frame): void;
}

export interface LineOptions {
  readonly name: string;
  readonly config: LineConfig;
  /** The services on this line. */
  readonly peers: readonly Peer[];
  readonly open: Open;
  readonly report: LineReport;
}

interface Exchange extends Waiting {
  readonly request: LineRequest;
  readonly frame: readonly Buffer[];
  readonly frameBytes: number;
  readonly cameMs: number;
  sentMs: number;
  /** It was written once already, and is waiting to be written again. */
  repeated: boolean;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (fault: Fault) => void;
}

export class Line {
  readonly name: string;
  readonly #config: LineConfig;
  readonly #report: LineReport;
  readonly #recovery: Recovery;
  readonly #queue: CallQueue<Exchange>;
  readonly #opener: Opener;
  readonly #deadline = new Deadline(() => this.#due(nowMs()));
  readonly #framings: ReadonlySet<Framing>;
  readonly #msPerByte: number;

  #state: LineState = "down";
  #reason = "it was not opened yet";
  #opening: Opening | undefined;
  #reader: Reader;
  #current: Exchange | undefined;
  /** True until the last byte of what is being written was taken over. */
  #writing = false;
  /** By when the write must be done, or the reply must have begun. */
  #answerDueMs = 0;
  /** A frame with a wrong checksum came instead of the reply. */
  #corrupt = false;
  /** Until when the silence after an opening must last; undefined when it did. */
  #hushUntilMs: number | undefined;
  #hushGiveUpMs = 0;
  #stopped: (() => void) | undefined;
  #stopping = false;

  constructor(options: LineOptions) {
    this.name = options.name;
    this.#config = options.config;
    this.#report = options.report;
    this.#recovery = new Recovery(options.peers, {
      lateReplyMs: options.config.lateReplyMs,
      barrierIntervalMs: barrierIntervalMs,
    });
    this.#framings = new Set(options.peers.map((peer) => peer.framing));
    this.#msPerByte = msPerByte(options.config);
    this.#reader = new Reader(options.config, this.#framings);
    this.#queue = new CallQueue(options.config.queueCallsMax, (exchange) => this.#waitedTooLong(exchange));
    this.#opener = new Opener(options.open, () => this.#newEar(), {
      opened: (opening) => this.#up(opening),
      failed: (reason) => this.#failedToOpen(reason),
    });
  }

  get state(): LineState {
    return this.#state;
  }

  /** Why it is in its state, for people. */
  get reason(): string {
    return this.#reason;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Begins to open the device, and goes on for ever. */
  start(): void {
    this.#opener.start();
  }

  /**
   * Sends a request when its turn comes and waits for the reply.
   * @throws Fault `unavailable` (not sent), `timeout` or `broken` (unknown).
   */
  run(request: LineRequest): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const refusal = this.#refusal();
      if (refusal !== undefined) {
        reject(refusal);
        return;
      }
      const frame = frameOf(request.framing, request.payload, this.#config.crc16);
      const now = nowMs();
      const exchange: Exchange = {
        request,
        frame,
        frameBytes: bytesOf(frame),
        cameMs: now,
        sentMs: 0,
        repeated: false,
        urgent: request.urgent,
        waitUntilMs: now + this.#config.queueWaitMs,
        caller: request.caller,
        resolve,
        reject,
      };
      if (this.#maySend() && this.#queue.size === 0) {
        this.#send(exchange, now);
      } else if (!this.#queue.add(exchange, () => this.#left(exchange))) {
        reject(this.#unavailable(`${this.#queue.size} calls are waiting, which is the limit`, 1));
      }
    });
  }

  /**
   * Stops for good: waiting calls are refused, the exchange in flight may end.
   * @param graceMs How long it may take to end before its outcome is unknown.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    for (const exchange of this.#queue.drain()) exchange.reject(this.#notSent(exchange, "posline is shutting down"));
    if (this.#current !== undefined) {
      const ended = new Promise<void>((resolve) => {
        this.#stopped = resolve;
      });
      const timer = setTimeout(() => this.#stopped?.(), graceMs);
      await ended;
      clearTimeout(timer);
    }
    this.#opener.stop();
    this.#deadline.dispose();
    const opening = this.#opening;
    this.#opening = undefined;
    if (this.#state !== "closed") this.#go("close", "posline is shutting down");
    const current = this.#current;
    this.#current = undefined;
    current?.reject(this.#unknown(current, "broken", "posline shut down before the reply came"));
    await opening?.close();
  }

  // --- openings

  #newEar(): Ear {
    const ear: Ear = {
      space: () => this.#reader.space(),
      heard: (n) => this.#heard(n),
      wrote: () => this.#wrote(),
      lost: (reason) => this.#lost(reason),
    };
    return ear;
  }

  #up(opening: Opening): void {
    const now = nowMs();
    this.#opening = opening;
    this.#reader = new Reader(this.#config, this.#framings);
    this.#writing = false;
    this.#hushUntilMs = now + silenceMs;
    this.#hushGiveUpMs = now + silenceMsMax;
    this.#go("up", "the device opened");
    this.#recovery.begin(now);
    this.#schedule(now);
  }

  #failedToOpen(reason: string): void {
    if (this.#reason === reason) return;
    this.#reason = reason;
    this.#report.state(this.#state, reason);
  }

  /** The device is gone: whoever awaits a reply learns it at once, and whoever waits is told that nothing was sent. */
  #lost(reason: string): void {
    const opening = this.#opening;
    if (opening === undefined) return;
    this.#opening = undefined;
    this.#deadline.clear();
    const current = this.#current;
    this.#current = undefined;
    const nothingSent = this.#writing && opening.wroteBytes === 0;
    if (current !== undefined && !nothingSent) this.#recovery.owe(current.request.service, current.request.barrierShaped);
    this.#go("down", reason);
    const closed = opening.close();
    for (const discard of this.#reader.reset()) this.#discarded(discard, nowMs());
    if (current !== undefined) {
      if (nothingSent) current.reject(this.#notSent(current, `it is down (${reason})`));
      else current.reject(this.#unknown(current, "broken", `the line was lost before the reply came (${reason})`));
    }
    for (const exchange of this.#queue.drain()) exchange.reject(this.#notSent(exchange, `it is down (${reason})`));
    this.#stopped?.();
    this.#opener.again(closed);
  }

  // --- sending

  /** Clean, nothing out, and no byte of an unknown frame pending. */
  #maySend(): boolean {
    return this.#state === "idle" && this.#reader.between && !this.#stopping;
  }

  #pump(now: number): void {
    while (this.#maySend()) {
      const next = this.#queue.next();
      if (next === undefined) return;
      this.#send(next, now);
    }
  }

  #send(exchange: Exchange, now: number): void {
    this.#go("send", "");
    this.#current = exchange;
    this.#corrupt = false;
    exchange.sentMs = now;
    this.#write(exchange.frame, exchange.frameBytes, now);
  }

  #write(frame: readonly Buffer[], frameBytes: number, now: number): void {
    this.#writing = true;
    this.#answerDueMs = now + writeMsMin + 2 * frameBytes * this.#msPerByte;
    this.#deadline.set(this.#answerDueMs, now);
    this.#opening?.write(frame);
  }

  #wrote(): void {
    this.#writing = false;
    const current = this.#current;
    if (current === undefined) return;
    const now = nowMs();
    // The operating system took the bytes over at once; the wire takes its time.
    this.#answerDueMs = now + current.request.replyTimeoutMs + current.frameBytes * this.#msPerByte;
    this.#schedule(now);
  }

  // --- hearing

  #heard(n: number): void {
    const now = nowMs();
    if (this.#hushUntilMs !== undefined) this.#hushUntilMs = Math.min(now + silenceMs, this.#hushGiveUpMs);
    for (const item of this.#reader.heard(n, now)) {
      if (item.kind === "frame") this.#framed(item, now);
      else this.#discarded(item, now);
    }
    this.#settled(now);
  }

  /** After bytes were looked at: what waits may go out, and the clocks are set anew. */
  #settled(now: number): void {
    // The next request goes out before the reply reaches its caller: whoever awaits it runs after this.
    this.#pump(now);
    this.#schedule(now);
  }

  #framed(frame: Frame, now: number): void {
    const read = readReply(frame.payload);
    const current = this.#current;
    if (current !== undefined) {
      const { request } = current;
      if (this.#writing || frame.framing !== request.framing) this.#strayed(frame, read?.json, now);
      else if (read === undefined) this.#fail(current, "broken", "the reply is no JSON object", now);
      else if (this.#recovery.isLeftOver(frame.framing, read.json, request)) this.#strayed(frame, read.json, now);
      else this.#replied(current, frame, read, now);
    } else if (this.#state === "recovering") {
      if (this.#recovery.heard(frame.framing, read?.json, now) === "barrier") this.#go("frame", "");
      else this.#strayed(frame, read?.json, now);
      if (this.#recovery.clean && this.#hushUntilMs === undefined) this.#go("clean", "the barrier was answered");
    } else {
      this.#strayed(frame, read?.json, now);
    }
  }

  /** A whole frame for nobody. While the line was clean, it says that question and answer are out of step. */
  #strayed(frame: Frame, json: JsonObject | undefined, now: number): void {
    this.#report.late(frame);
    if (this.#state === "recovering") {
      this.#go("stray", "");
    } else if (json !== undefined && this.#recovery.heardLeftOver(frame.framing, json)) {
      this.#go(this.#state === "idle" ? "frame" : "stray", "");
    } else if (this.#state === "idle") {
      this.#recovery.oweAll(frame.framing);
      this.#go("stray", "a frame came that nobody asked for");
      this.#recovery.begin(now);
    } else {
      this.#go("stray", "");
    }
  }

  #replied(exchange: Exchange, frame: Frame, { status, code }: ReadReply, now: number): void {
    this.#current = undefined;
    this.#go("frame", "");
    const queueMs = exchange.sentMs - exchange.cameMs;
    exchange.resolve({ payload: frame.payload, status, code, queueMs, lineMs: now - exchange.sentMs });
    this.#stopped?.();
  }

  #discarded(discard: Discard, now: number): void {
    this.#report.discard(discard);
    if (this.#state === "recovering") this.#recovery.heardNoise(now);
    // Noise may come before a reply; a broken frame is taken to be the reply.
    if (this.#current !== undefined && discard.reason !== "noise") this.#corrupt = true;
  }

  /** Sent, and no good reply: the service owes an answer, so the line must be proven clean. */
  #fail(exchange: Exchange, kind: "timeout" | "broken", why: string, now: number): void {
    this.#current = undefined;
    const { request } = exchange;
    this.#recovery.owe(request.service, request.barrierShaped);
    this.#go("fail", why);
    this.#recovery.begin(now);
    if (kind === "broken" && request.repeatable && !exchange.repeated && !request.caller.gone && !this.#stopping) {
      exchange.repeated = true;
      exchange.waitUntilMs = now + this.#config.queueWaitMs;
      this.#queue.putFirst(exchange, () => this.#left(exchange));
    } else {
      exchange.reject(this.#unknown(exchange, kind, why));
    }
    this.#stopped?.();
  }

  // --- clocks

  /** Sets the clock to whatever is due next. */
  #schedule(now: number): void {
    let due = this.#reader.dueMs;
    if (this.#current !== undefined) {
      if (this.#corrupt) due = Math.min(due, this.#reader.heardMs + corruptQuietMs, this.#answerDueMs);
      // A frame that has begun has clocks of its own.
      else if (this.#writing || !this.#reader.begun) due = Math.min(due, this.#answerDueMs);
    } else if (this.#hushUntilMs !== undefined) {
      due = Math.min(due, this.#hushUntilMs);
    } else if (this.#state === "recovering") {
      due = Math.min(due, this.#writing ? this.#answerDueMs : this.#recovery.dueMs);
    }
    this.#deadline.set(due, now);
  }

  #due(now: number): void {
    if (this.#opening === undefined) return;
    if (this.#writing && now >= this.#answerDueMs) {
      this.#lost(`it took no bytes for ${Math.round(writeMsMin)} ms: check flow control and the cable`);
      return;
    }
    if (now >= this.#reader.dueMs) {
      for (const discard of this.#reader.reset()) this.#discarded(discard, now);
    }
    if (this.#current !== undefined) this.#dueForReply(this.#current, now);
    else if (this.#hushUntilMs !== undefined) this.#dueForHush(this.#hushUntilMs, now);
    else if (this.#state === "recovering") this.#dueForRecovery(now);
    if (this.#opening !== undefined) this.#settled(now);
  }

  #dueForReply(current: Exchange, now: number): void {
    if (this.#writing) return;
    const quiet = now >= this.#reader.heardMs + corruptQuietMs || now >= this.#answerDueMs;
    if (this.#corrupt && quiet) {
      this.#fail(current, "broken", "the reply came corrupt", now);
    } else if (now >= this.#answerDueMs && !this.#reader.begun) {
      this.#fail(current, "timeout", `no reply came within ${current.request.replyTimeoutMs} ms`, now);
    }
  }

  #dueForHush(until: number, now: number): void {
    if (now < until) return;
    this.#hushUntilMs = undefined;
    for (const discard of this.#reader.reset()) this.#discarded(discard, now);
    if (this.#recovery.clean) this.#go("clean", "the line is silent, and nobody owes an answer");
    else this.#recovery.begin(now);
  }

  #dueForRecovery(now: number): void {
    if (this.#writing) return;
    if (this.#reader.between && this.#recovery.settleBySilence(now)) {
      this.#go("clean", `nothing came for ${this.#config.lateReplyMs} ms`);
      return;
    }
    const barrier = this.#recovery.barrierDue(now);
    if (barrier !== undefined) this.#write(barrier, bytesOf(barrier), now);
  }

  // --- words

  #go(event: LineEvent, why: string): void {
    const before = this.#state;
    this.#state = nextState(before, event);
    const told = before === this.#state || event === "send" || (event === "frame" && before === "awaiting");
    if (told) return;
    this.#reason = why;
    this.#report.state(this.#state, why);
  }

  #refusal(): Fault | undefined {
    if (this.#stopping) return this.#unavailable("posline is shutting down", 5);
    if (this.#state === "down") return this.#unavailable(`it is down (${this.#reason})`, 1);
    return undefined;
  }

  #unavailable(state: string, retryAfterS: number, queueMs = 0): Fault {
    const message = `Cannot send to line ${this.name}: ${state}: nothing was sent, it is safe to send again`;
    return new Fault("unavailable", message, { retryAfterS, queueMs });
  }

  /** Refuses a call that waits: not sent, unless it was sent once and waited for its second turn. */
  #notSent(exchange: Exchange, state: string): Fault {
    if (exchange.repeated) return this.#unknown(exchange, "broken", `the reply came corrupt, and then ${state}`);
    return this.#unavailable(state, 1, nowMs() - exchange.cameMs);
  }

  #waitedTooLong(exchange: Exchange): void {
    const what = this.#state === "recovering" ? `it is recovering (${this.#recoveringWhy()})` : "it is busy";
    exchange.reject(this.#notSent(exchange, `${what}, and the call waited ${this.#config.queueWaitMs} ms`));
  }

  #recoveringWhy(): string {
    return `${this.#reason}; ${this.#recovery.owing.join(", ")} may still owe an answer`;
  }

  #left(exchange: Exchange): void {
    exchange.reject(this.#notSent(exchange, "the caller left before its turn"));
  }

  #unknown(exchange: Exchange, kind: "timeout" | "broken", why: string): Fault {
    const message = `No reply from line ${this.name}: ${why}: ${exchange.request.adviceWhenUnknown}`;
    const queueMs = exchange.sentMs - exchange.cameMs;
    return new Fault(kind, message, { queueMs, lineMs: nowMs() - exchange.sentMs });
  }
}
