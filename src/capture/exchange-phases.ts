import { emulatedPath, type LineConfig } from "../config/config.ts";
import type { ExchangeName, ExchangeParts, ExchangePhase } from "../core/exchange-phase.ts";
import { Fault } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import { msPerByte } from "../device/transport.ts";
import type { LineEffect, LineEvent } from "../line/engine.ts";
import type { Ending, Exchange } from "../line/exchange.ts";
import type { LineObserve } from "../line/line.ts";

/**
 * How far each exchange of a line has come, and how its time on the line was spent, read from what its engine is given and decides.
 * An exchange's end is known outside the line, with its HTTP answer; `partsOf` gives its parts to whatever reports that.
 */

/** What an exchange's record says by which its parts are found. */
interface EndedExchange {
  readonly requestId: string;
  readonly service: string;
  readonly lineMs: number;
}

/** Exchanges that ended on their line and wait for their record: those that the journal is still writing down. */
const endedMax = 64;

/** One sending of an exchange. */
class Sending {
  readonly exchange: Exchange;
  readonly name: ExchangeName;
  readonly #sentMs: number;
  /** How long its frame takes on the wire, and the reply's. */
  readonly #requestBytesMs: number;
  #replyBytesMs = 0;
  #wroteMs: number | undefined;
  /** When the first byte came of what may be the reply. */
  #replyMs: number | undefined;
  #isReplying = false;

  constructor(exchange: Exchange, line: string, sentMs: number, requestBytesMs: number) {
    const { requestId, service, route } = exchange.request;
    this.exchange = exchange;
    this.name = { requestId, service, line, route };
    this.#sentMs = sentMs;
    this.#requestBytesMs = requestBytesMs;
  }

  /** The kernel took its last byte. */
  wrote(now: number): void {
    this.#wroteMs = now;
  }

  /** Bytes came; true with the first of a frame. */
  received({ items, receiving }: LineEvent & { at: "received" }, byteMs: number, now: number): boolean {
    const frame = items.findLast(({ kind }) => kind === "frame");
    if (frame === undefined && receiving.phase !== "in-frame") return false;
    this.#replyMs ??= now;
    if (frame !== undefined) this.#replyBytesMs = frame.wireBytes * byteMs;
    const isFirst = !this.#isReplying;
    this.#isReplying = true;
    return isFirst;
  }

  /** The frame that came was not the reply. */
  goesOn(): void {
    this.#replyMs = undefined;
    this.#replyBytesMs = 0;
  }

  /** The kernel takes bytes before the wire does, and gives them in pieces after it: neither way took less than its bytes need. */
  parts(lineMs: number): ExchangeParts {
    const replyAt = this.#replyMs === undefined ? lineMs : this.#replyMs - this.#sentMs;
    const wroteAt = this.#wroteMs === undefined ? lineMs : this.#wroteMs - this.#sentMs;
    const requestMs = Math.min(Math.max(wroteAt, this.#requestBytesMs), replyAt);
    const replyMs = Math.min(Math.max(lineMs - replyAt, this.#replyBytesMs), lineMs - requestMs);
    return { requestMs, terminalMs: lineMs - requestMs - replyMs, replyMs };
  }
}

export class ExchangePhases {
  readonly #publish: (exchange: ExchangeName, phase: ExchangePhase) => void;
  readonly #ended: (EndedExchange & { readonly parts: ExchangeParts })[] = [];

  /** @param publish Called on the path of each call: it must return at once and never throw. */
  constructor(publish: (exchange: ExchangeName, phase: ExchangePhase) => void) {
    this.#publish = publish;
  }

  /** Watches one line. */
  watch({ name, config }: { readonly name: string; readonly config: LineConfig }): LineObserve {
    // An emulated line is memory, where bytes take no time.
    const byteMs = config.path === emulatedPath ? 0 : msPerByte(config);
    /** What was sent last, until it has ended. */
    let last: Sending | undefined;
    /** The same while it is written, and while it is awaited; neither while posline's own probe is. */
    let writing: Sending | undefined;
    let awaited: Sending | undefined;
    return (event, effects, now) => {
      if (event.at === "wrote" && writing !== undefined) {
        writing.wrote(now);
        this.#publish(writing.name, "written");
        writing = undefined;
      } else if (event.at === "received" && awaited?.received(event, byteMs, now)) {
        this.#publish(awaited.name, "replying");
      } else if (event.at === "call" && waits(event.exchange, effects)) {
        const { requestId, service, route } = event.exchange.request;
        this.#publish({ requestId, service, line: name, route }, "waiting");
      }
      for (const effect of effects) {
        if (effect.do === "write") {
          const { exchange, frame } = effect;
          awaited = exchange && new Sending(exchange, name, now, bytesOf(frame) * byteMs);
          writing = awaited;
          if (awaited === undefined) continue;
          last = awaited;
          this.#publish(awaited.name, "sent");
        } else if (effect.do === "settle" && last?.exchange === effect.exchange) {
          this.#settled(last, effect.ending);
          if (awaited === last) awaited = undefined;
          if (writing === last) writing = undefined;
          last = undefined;
        }
      }
      if (event.at === "received" && event.receiving.phase === "idle") awaited?.goesOn();
    };
  }

  /**
   * The parts of an exchange that was sent; they are given once. A request id is a client's own, and may come twice at a time: then the
   * time on the line, which has the clock's whole resolution, tells the two apart.
   */
  partsOf({ requestId, service, lineMs }: EndedExchange): ExchangeParts | undefined {
    const at = this.#ended.findIndex(
      (each) => each.requestId === requestId && each.service === service && each.lineMs === lineMs,
    );
    return at === -1 ? undefined : this.#ended.splice(at, 1)[0]?.parts;
  }

  #settled(sending: Sending, ending: Ending): void {
    const lineMs = ending instanceof Fault ? ending.details.lineMs : ending.lineMs;
    // No byte of it went out after all.
    if (lineMs === undefined) return;
    if (this.#ended.length >= endedMax) this.#ended.shift();
    const { requestId, service } = sending.name;
    this.#ended.push({ requestId, service, lineMs, parts: sending.parts(lineMs) });
  }
}

/** Whether a call that came neither went out nor was refused at once. */
function waits(exchange: Exchange, effects: readonly LineEffect[]): boolean {
  return !effects.some((effect) => (effect.do === "write" || effect.do === "settle") && effect.exchange === exchange);
}
