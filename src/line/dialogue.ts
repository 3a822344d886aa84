import { payloadBytesMax } from "../config/limits.ts";
import { present, type ServiceName } from "../core/call.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { readReply, rehearseReply } from "../envelope/reply.ts";
import type { Decoded, Discard, Frame } from "../wire/decoded.ts";
import { Channel } from "./channel.ts";
import { Exchange, type LineRequest, type Outcome, tooLarge } from "./exchange.ts";
import { msPerByte } from "./frame.ts";
import { probeReplyMs } from "./limits.ts";
import type { LineOptions } from "./line.ts";
import type { Peer } from "./peer.ts";
import type { LineReport } from "./report.ts";
import { Standing } from "./standing.ts";
import type { Turns } from "./turns.ts";

/**
 * Question and answer on one line: one request in flight, and proof that the line is clean before the next, which it takes from
 * those that wait. What a frame is to the line is decided here. The device, its bytes and their clocks are its channel's; here
 * is the one clock of the answer that is awaited, or of the proof.
 */
export class Dialogue {
  readonly standing: Standing;
  readonly #report: LineReport;
  readonly #turns: Turns;
  readonly #channel: Channel;
  readonly #deadline = new Deadline(() => this.#due(nowMs()));
  readonly #msPerByte: number;
  readonly #replyBytesMax: ReadonlyMap<ServiceName, number>;

  #current: Exchange | undefined;
  readonly #name: string;
  #stopping: Promise<void> | undefined;
  /** How long the exchange in flight may take, once it is to stop. */
  readonly #grace = new Deadline(() => this.#ended?.());
  #ended: (() => void) | undefined;
  /** When it last looked for what is due next. */
  #scheduledMs = 0;

  constructor({ name, config, peers, open, report }: LineOptions, turns: Turns) {
    this.#name = name;
    this.#report = report;
    this.#turns = turns;
    this.#msPerByte = msPerByte(config);
    this.standing = new Standing(name, config, peers, report);
    this.#replyBytesMax = new Map(peers.map(({ service, replyBytesMax }) => [service, replyBytesMax]));
    const traffic = {
      framings: new Set(peers.map((peer) => peer.framing)),
      payloadBytesMax: Math.max(...this.#replyBytesMax.values()),
    };
    this.#channel = new Channel(config, traffic, open, {
      opened: (now) => this.standing.opened(now),
      hushed: (now) => this.#hushed(now),
      heard: (decoded, now) => this.#heard(decoded, now),
      wrote: (now) => this.#wrote(now),
      lost: (reason, loss) => this.#lost(reason, loss),
      failed: (reason) => this.#notOpened(reason),
    });
  }

  /** Begins to open the device, and goes on for ever. */
  start(): void {
    this.#channel.start();
  }

  get device(): string | undefined {
    return this.#channel.device;
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /**
   * Stops for good; the exchange in flight may end.
   * @param graceMs Milliseconds it has for that before its outcome is unknown, beside its own time-outs. Told again, the sooner end holds.
   */
  stop(graceMs: number, why: string): Promise<void> {
    const now = nowMs();
    this.#grace.hasten(now + graceMs, now);
    this.#stopping ??= this.#stop(why);
    return this.#stopping;
  }

  async #stop(why: string): Promise<void> {
    if (this.#current !== undefined && !this.standing.isProbing) {
      await new Promise<void>((resolve) => {
        this.#ended = resolve;
      });
    }
    this.#grace.dispose();
    this.#deadline.dispose();
    this.standing.closed(why);
    const current = this.#current;
    this.#current = undefined;
    current?.fail("broken", `${why}, and the reply had not come`);
    await this.#channel.stop();
  }

  #hushed(now: number): void {
    this.standing.hushed(this.#channel.still, now);
    this.#settled(now);
  }

  /** It is tried again. Whoever has waited for the first attempt needn't wait for another. */
  #notOpened(reason: string): void {
    this.standing.failedToOpen(reason);
    this.#turns.refuseAll(`it is down (${reason})`);
  }

  /** The device is gone: whoever awaits a reply learns it at once, and whoever waits is told that nothing was sent. */
  #lost(reason: string, { untouched, discards }: { readonly untouched: boolean; readonly discards: readonly Discard[] }): void {
    this.#deadline.clear();
    const current = this.#current;
    this.#current = undefined;
    this.standing.lost(reason, untouched ? undefined : current?.request);
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

  // --- asking

  /** Clean, nothing out, no byte of an unknown frame pending, and none about to come. */
  get maySend(): boolean {
    if (this.standing.state !== "idle" || !this.#channel.still || this.#stopping !== undefined) return false;
    const { burstUntilMs } = this.#channel;
    return burstUntilMs === 0 || nowMs() >= burstUntilMs;
  }

  /** Sends a request; only while it may be sent. */
  send(exchange: Exchange, now: number): void {
    this.standing.sent();
    this.#write(exchange, now);
  }

  #write(exchange: Exchange, now: number): void {
    this.#current = exchange;
    exchange.sent(now);
    this.#channel.write(exchange.frame, now);
  }

  /** A call waits: it goes out when it may. */
  wait(now: number): void {
    if (this.standing.state === "idle") this.#schedule(now);
  }

  /** What waits goes out while it may, and the clock is set to what is due then. */
  proceed(now: number): void {
    while (this.maySend) {
      const next = this.#turns.next(now);
      if (next === undefined) break;
      this.send(next, now);
    }
    this.#schedule(now);
  }

  #wrote(now: number): void {
    this.#current?.wrote(now, this.#msPerByte);
    if (this.#current === undefined) this.#settled(now);
    else this.#schedule(now);
  }

  // --- hearing

  #heard(decoded: readonly Decoded[], now: number): void {
    this.standing.heardBytes(now);
    for (const item of decoded) {
      if (item.kind === "frame") this.#framed(item, now);
      else this.#discarded(item, now);
    }
    if (decoded.length === 0 && this.#turns.size > 0 && this.#channel.ending) rehearseReply();
    this.#settled(now);
  }

  #settled(now: number): void {
    // Looked for here, once the whole read is decoded: a frame behind the barrier's answer counts too.
    this.standing.lookClean(this.#channel.still, now, "the barrier was answered");
    // The next request goes out before the reply reaches its caller: whoever awaits it runs after this.
    this.proceed(now);
  }

  #framed(frame: Frame, now: number): void {
    const read = readReply(frame.payload);
    const json = typeof read === "string" ? undefined : read.json;
    const current = this.#current;
    if (this.standing.recovering) {
      this.standing.framed(frame, json, now);
    } else if (current === undefined || this.standing.isStray(frame, json, current.request)) {
      this.standing.strayed(frame, json, now);
    } else if (this.#channel.writing) {
      // Not the reply, so the next frame may not be it either.
      this.#report.late(frame);
      this.#fail(current, "broken", "a frame came before the request was out", now);
    } else if (frame.payloadBytes > this.#replyBytesMaxOf(current)) {
      this.#fail(current, "broken", tooLarge, now);
    } else if (typeof read === "string") {
      this.#fail(current, "broken", `the reply is ${read}`, now);
    } else if (read.status !== "success" && this.standing.isDoubtful(frame, now)) {
      this.#report.late(frame);
      this.#fail(current, "broken", "an error came that may answer what was asked before it", now);
    } else {
      this.#current = undefined;
      this.standing.replied(current.request, now);
      current.answer(frame, read, now);
      this.standing.told(now);
      this.#ended?.();
    }
  }

  /** On a shared line a reply may be larger than its own service allows. */
  #replyBytesMaxOf({ request: { service } }: Exchange): number {
    return this.#replyBytesMax.get(service) ?? payloadBytesMax;
  }

  #discarded(discard: Discard, now: number): void {
    this.#report.discard(discard);
    this.#current?.heard(discard.reason);
    this.standing.discarded(discard, now);
  }

  /** Sent, and no good reply: told as unknown, or asked once more where that does no harm. */
  #fail(exchange: Exchange, kind: "timeout" | "broken", why: string, now: number): void {
    this.#current = undefined;
    this.standing.failed(exchange.request, kind, why, now);
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
    this.#scheduledMs = now;
    let due = Number.POSITIVE_INFINITY;
    if (this.#channel.hushed && !this.#channel.writing) {
      if (this.#current !== undefined) due = this.#current.dueMs(this.#channel);
      else if (!this.standing.recovering) due = this.#sendDueMs;
      // A frame that has begun has clocks of its own, which a barrier's answer would only wind up again.
      else if (!this.#channel.begun) due = this.standing.dueMs(this.#channel.still);
      due = Math.min(due, this.standing.reportDueMs);
    }
    this.#deadline.set(due, now);
  }

  /** When what waits may go out on a clean line, or a probe is due; a call that is being recorded, or pending bytes, come first. */
  get #sendDueMs(): number {
    const { burstUntilMs, still } = this.#channel;
    if (this.#turns.wanting) return burstUntilMs === 0 ? Number.POSITIVE_INFINITY : burstUntilMs;
    return still && this.#turns.isFree ? Math.max(this.standing.probeDueMs, burstUntilMs) : Number.POSITIVE_INFINITY;
  }

  /**
   * For how many milliseconds something that was due has not happened. Whatever is awaited has a clock; where something is
   * awaited and none is set, a wake-up was lost, and it will never come.
   */
  stalledMs(now: number): number {
    const overdueMs = Math.max(this.#deadline.overdueMs(now), this.#channel.overdueMs(now), this.#turns.overdueMs(now));
    if (overdueMs > 0 || this.#channel.opening === undefined || this.stopping) return overdueMs;
    const awaits = this.#current !== undefined || this.standing.recovering || this.#turns.wanting;
    return awaits && !this.#deadline.isSet && !this.#channel.isTimed ? now - this.#scheduledMs : 0;
  }

  #due(now: number): void {
    if (!this.#channel.hushed || this.#channel.writing) return;
    this.standing.reportDue(now);
    if (this.#current !== undefined) this.#dueForReply(this.#current, now);
    else if (this.standing.recovering) this.#dueForRecovery(now);
    else if (this.maySend && this.#turns.isFree) this.#probe(now);
    // Or a burst has had its time.
    this.#settled(now);
  }

  #dueForReply(current: Exchange, now: number): void {
    if (now < current.dueMs(this.#channel)) return;
    const { kind, why } = current.dueFor;
    this.#fail(current, kind, why, now);
  }

  #dueForRecovery(now: number): void {
    if (this.#channel.begun) return;
    const barrier = this.standing.due(this.#channel.still, now)?.barrier;
    if (barrier !== undefined) this.#channel.write(barrier, now);
  }

  /**
   * Asks a service on an idle line whether it is still there: an exchange like any other, so that an answer that stays out leads to
   * the same proof as a call's. Whoever calls meanwhile waits behind it.
   */
  #probe(now: number): void {
    const peer = this.standing.probeDue(now);
    if (peer?.barrier === undefined) return;
    const request = probeOf(peer);
    const times = { cameMs: now, waitUntilMs: now };
    this.standing.sent(true);
    this.#write(new Exchange(this.#name, request, peer.barrier, times, nobody), now);
  }
}

/** A probe's ending is the line's own affair: what it proves is noted where its answer comes, or stays out. */
const nobody: Outcome = { resolve: () => {}, reject: () => {} };

function probeOf({ service, framing }: Peer): LineRequest {
  return {
    service,
    framing,
    payload: [],
    replyTimeoutMs: probeReplyMs,
    urgent: false,
    repeatable: false,
    barrierShaped: true,
    adviceWhenUnknown: "",
    caller: present(),
  };
}
