import type { LineConfig } from "../config/config.ts";
import { barrierIntervalMs } from "../config/limits.ts";
import type { Reply } from "../core/call.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import type { Fault } from "../core/fault.ts";
import type { JsonObject } from "../envelope/json.ts";
import { readReply, rehearseReply } from "../envelope/reply.ts";
import type { Decoded, Discard, Frame } from "../wire/decoded.ts";
import { Channel } from "./channel.ts";
import type { Open } from "./conduit.ts";
import { Exchange, type LineRequest, unavailable } from "./exchange.ts";
import { frameOf, msPerByte } from "./frame.ts";
import { type Peer, Recovery } from "./recovery.ts";
import type { LineState } from "./states.ts";
import { LineStatus } from "./status.ts";
import { Turns } from "./turns.ts";

/**
 * One serial line: one request in flight, and proof that the line is clean before the next. It knows frames, services that owe
 * and the shape of a barrier's answer, and no route. The device, its bytes and their clocks are its channel's; here is the one
 * clock of the answer that is awaited, or of the proof.
 */

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

export class Line {
  readonly name: string;
  readonly #config: LineConfig;
  readonly #report: LineReport;
  readonly #recovery: Recovery;
  readonly #status: LineStatus;
  readonly #turns: Turns;
  readonly #channel: Channel;
  readonly #deadline = new Deadline(() => this.#due(nowMs()));
  readonly #msPerByte: number;

  #current: Exchange | undefined;
  #stopping: Promise<void> | undefined;
  #ended: (() => void) | undefined;

  constructor({ name, config, peers, open, report }: LineOptions) {
    this.name = name;
    this.#config = config;
    this.#report = report;
    this.#recovery = new Recovery(peers, { lateReplyMs: config.lateReplyMs, barrierIntervalMs });
    this.#msPerByte = msPerByte(config);
    this.#status = new LineStatus((state, reason) => report.state(state, reason));
    this.#turns = new Turns(config, () => this.#whyWaiting());
    this.#channel = new Channel(config, new Set(peers.map((peer) => peer.framing)), open, {
      opened: (now) => this.#opened(now),
      hushed: (now) => this.#hushed(now),
      heard: (decoded, now) => this.#heard(decoded, now),
      wrote: (now) => this.#wrote(now),
      lost: (reason, loss) => this.#lost(reason, loss),
      failed: (reason) => this.#status.explain(reason),
    });
  }

  get state(): LineState {
    return this.#status.state;
  }

  /** Why it is in its state, for people. */
  get reason(): string {
    return this.#status.reason;
  }

  get waiting(): number {
    return this.#turns.size;
  }

  /** Begins to open the device, and goes on for ever. */
  start(): void {
    this.#channel.start();
  }

  /**
   * Sends a request when its turn comes and waits for the reply.
   * @throws Fault `unavailable` (not sent), `timeout` or `broken` (unknown).
   */
  run(request: LineRequest): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const now = nowMs();
      const sendsNow = this.#maySend() && this.#turns.size === 0;
      const refusal = this.#refusal(request, sendsNow);
      if (refusal !== undefined) {
        reject(refusal);
        return;
      }
      const frame = frameOf(request.framing, request.payload, this.#config.crc16);
      const exchange = new Exchange(this.name, request, frame, now, { resolve, reject });
      if (sendsNow) {
        this.#send(exchange, now);
      } else {
        this.#turns.take(exchange, now);
      }
    });
  }

  /**
   * Stops for good: waiting calls are refused, the exchange in flight may end.
   * @param graceMs How long it may take to end before its outcome is unknown.
   */
  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<void> {
    this.#turns.refuseAll("posline is shutting down");
    if (this.#current !== undefined) {
      const ended = new Promise<void>((resolve) => {
        this.#ended = resolve;
      });
      const timer = setTimeout(() => this.#ended?.(), graceMs);
      await ended;
      clearTimeout(timer);
    }
    this.#deadline.dispose();
    this.#status.take("close", "posline is shutting down");
    const current = this.#current;
    this.#current = undefined;
    current?.fail("broken", "posline shut down before the reply came");
    await this.#channel.stop();
  }

  // --- openings

  #opened(now: number): void {
    this.#status.take("up", "the device opened");
    this.#recovery.begin(now);
  }

  #hushed(now: number): void {
    if (!this.#lookClean(now, "the line is silent, and nobody owes an answer")) this.#recovery.begin(now);
    this.#settled(now);
  }

  /** The device is gone: whoever awaits a reply learns it at once, and whoever waits is told that nothing was sent. */
  #lost(reason: string, { untouched, discards }: { readonly untouched: boolean; readonly discards: readonly Discard[] }): void {
    this.#deadline.clear();
    const current = this.#current;
    this.#current = undefined;
    if (current !== undefined && !untouched) this.#recovery.owe(current.request.service, current.request.barrierShaped);
    this.#status.take("down", reason);
    for (const discard of discards) this.#report.discard(discard);
    const why = `it is down (${reason})`;
    if (untouched) {
      current?.unsent();
      current?.refuse(why);
    } else {
      current?.fail("broken", `the line was lost before the reply came (${reason})`);
    }
    this.#turns.refuseAll(why);
    this.#ended?.();
  }

  // --- sending

  /** Clean, nothing out, and no byte of an unknown frame pending. */
  #maySend(): boolean {
    return this.#status.state === "idle" && this.#channel.still && this.#stopping === undefined;
  }

  #pump(now: number): void {
    while (this.#maySend()) {
      const next = this.#turns.next();
      if (next === undefined) return;
      this.#send(next, now);
    }
  }

  #send(exchange: Exchange, now: number): void {
    this.#status.take("send");
    this.#current = exchange;
    exchange.sent(now);
    this.#channel.write(exchange.frame, now);
  }

  #wrote(now: number): void {
    this.#current?.wrote(now, this.#msPerByte);
    if (this.#current === undefined) this.#settled(now);
    else this.#schedule(now);
  }

  // --- hearing

  #heard(decoded: readonly Decoded[], now: number): void {
    if (this.#status.state === "recovering") this.#recovery.heardBytes(now);
    for (const item of decoded) {
      if (item.kind === "frame") this.#framed(item, now);
      else this.#discarded(item, now);
    }
    if (decoded.length === 0 && this.#turns.size > 0 && this.#channel.ending) rehearseReply();
    this.#settled(now);
  }

  /** After something came or was due: what waits may go out, and the clock is set anew. */
  #settled(now: number): void {
    // Looked for here, once the whole read is decoded: a frame behind the barrier's answer counts too.
    this.#lookClean(now, "the barrier was answered");
    // The next request goes out before the reply reaches its caller: whoever awaits it runs after this.
    this.#pump(now);
    this.#schedule(now);
  }

  #framed(frame: Frame, now: number): void {
    const read = readReply(frame.payload);
    const current = this.#current;
    if (this.#status.state === "recovering") {
      const heard = this.#recovery.heard(frame.framing, read?.json, now);
      if (heard === "late") this.#report.late(frame);
      this.#status.take(heard === "late" ? "stray" : "frame");
    } else if (current === undefined) {
      this.#strayed(frame, read?.json, now);
    } else if (read !== undefined && this.#recovery.isLeftOver(frame.framing, read.json, current.request)) {
      this.#strayed(frame, read.json, now);
    } else if (frame.framing !== current.request.framing) {
      this.#strayed(frame, read?.json, now);
    } else if (this.#channel.writing) {
      // Not the reply, so the next frame may not be it either.
      this.#report.late(frame);
      this.#fail(current, "broken", "a frame came before the request was out", now);
    } else if (read === undefined) {
      this.#fail(current, "broken", "the reply is no JSON object", now);
    } else if (read.status !== "success" && this.#recovery.isDoubtful(frame.framing, now)) {
      this.#report.late(frame);
      this.#fail(current, "broken", "an error came that may answer what was asked before it", now);
    } else {
      this.#current = undefined;
      this.#status.take("frame");
      if (!current.request.barrierShaped) this.#recovery.replied(current.request.service);
      current.answer(frame, read, now);
      if (this.#recovery.owes) this.#outOfStep(now);
      this.#ended?.();
    }
  }

  /** A whole frame for nobody, other than a left-over barrier answer, says that question and answer are out of step. */
  #strayed(frame: Frame, json: JsonObject | undefined, now: number): void {
    this.#report.late(frame);
    const explained = json !== undefined && this.#recovery.heardLeftOver(frame.framing, json, now);
    if (!explained) this.#recovery.oweUnlessExplained(frame.framing);
    if (this.#status.state === "awaiting") this.#status.take("stray");
    else if (explained) this.#status.take("frame");
    else this.#outOfStep(now);
  }

  #outOfStep(now: number): void {
    this.#status.take("stray", "a frame came that nobody asked for");
    this.#recovery.begin(now);
  }

  #discarded(discard: Discard, now: number): void {
    this.#report.discard(discard);
    if (this.#current !== undefined) this.#current.heard(discard.reason);
    else if (this.#status.state === "idle" && discard.checksum !== undefined) {
      // As good a stray as a whole one: it answered something.
      this.#recovery.oweUnlessExplained(discard.checksum.crc32 === undefined ? "length" : "stx");
      this.#outOfStep(now);
    }
  }

  /** Sent, and no good reply: the service owes an answer, so the line must be proven clean. */
  #fail(exchange: Exchange, kind: "timeout" | "broken", why: string, now: number): void {
    this.#current = undefined;
    this.#recovery.owe(exchange.request.service, exchange.request.barrierShaped);
    this.#status.take("fail", why);
    this.#recovery.begin(now);
    if (kind === "broken" && exchange.repeatable && this.#stopping === undefined) {
      this.#turns.takeAgain(exchange, now);
    } else {
      exchange.fail(kind, why);
    }
    this.#ended?.();
  }

  // --- the clock

  /** Sets the clock to whatever is due next; while bytes are awaited or written, that is the channel's affair. */
  #schedule(now: number): void {
    let due = Number.POSITIVE_INFINITY;
    if (this.#channel.hushed && !this.#channel.writing) {
      if (this.#current !== undefined) due = this.#current.dueMs(this.#channel);
      else if (this.#status.state === "recovering") due = this.#recovery.dueMs(this.#channel.still);
    }
    this.#deadline.set(due, now);
  }

  #due(now: number): void {
    if (!this.#channel.hushed || this.#channel.writing) return;
    if (this.#current !== undefined) this.#dueForReply(this.#current, now);
    else if (this.#status.state === "recovering") this.#dueForRecovery(now);
    this.#settled(now);
  }

  #dueForReply(current: Exchange, now: number): void {
    if (now < current.dueMs(this.#channel)) return;
    const { kind, why } = current.dueFor;
    this.#fail(current, kind, why, now);
  }

  #dueForRecovery(now: number): void {
    if (this.#channel.still && this.#recovery.settleBySilence(now)) {
      this.#lookClean(now, "it was silent for long, so no answer is expected any more");
    } else {
      const barrier = this.#recovery.barrierDue(now);
      if (barrier !== undefined) this.#channel.write(barrier, now);
    }
  }

  #lookClean(now: number, why: string): boolean {
    if (this.#status.state !== "recovering" || !this.#channel.still || !this.#recovery.isClean(now)) return false;
    this.#status.take("clean", why);
    return true;
  }

  // --- words

  #refusal({ caller }: LineRequest, sendsNow: boolean): Fault | undefined {
    if (this.#stopping !== undefined) return unavailable(this.name, "posline is shutting down", 5);
    if (this.#status.state === "down") return unavailable(this.name, `it is down (${this.#status.reason})`, 1);
    if (caller.gone) return unavailable(this.name, "the caller has left", 1);
    if (sendsNow || !this.#turns.isFull) return undefined;
    return unavailable(this.name, `${this.#turns.size} calls are waiting, which is the limit`, 1);
  }

  #whyWaiting(): string {
    if (this.#status.state !== "recovering") return "it is busy";
    return `it is recovering (${this.#status.reason}; ${this.#recovery.owing.join(", ")} may still owe an answer)`;
  }
}
