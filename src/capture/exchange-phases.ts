import { emulatedPath, type LineConfig } from "../config/config.ts";
import type { ExchangeName, ExchangeParts, ExchangePhase } from "../core/exchange-phase.ts";
import { Fault } from "../core/fault.ts";
import type { ExchangeRecord } from "../core/log-fields.ts";
import { bytesOf } from "../core/pieces.ts";
import { msPerByte } from "../device/transport.ts";
import type { LineEffect, LineEvent } from "../line/events.ts";
import type { Ending, Exchange, LineRequest } from "../line/exchange.ts";
import type { LineObserve } from "../line/line.ts";

/**
 * How far each exchange of a line has come, and how its time on the line was spent, read from what its engine is given and decides.
 * A till's call ends outside the line, with its HTTP answer; `partsOf` gives its parts to whatever reports that. A question that posline
 * asks by itself has no such answer, so its end is reported here: each beginning that is reported gets an end.
 */

/** What an exchange's record says by which its parts are found. */
type RecordedExchange = Pick<ExchangeRecord, "requestId" | "service" | "lineMs" | "result">;

/** How a question that posline asked by itself ended. */
export interface QuestionEnd {
  readonly line: string;
  readonly record: ExchangeRecord;
  /** Where it was sent. */
  readonly parts: ExchangeParts | undefined;
}

/** Called on the path of each call: both must return at once and never throw. */
export interface PhasesReport {
  phase(exchange: ExchangeName, phase: ExchangePhase): void;
  questionEnded(end: QuestionEnd): void;
}

/**
 * Exchanges that ended on their line and wait for their record: those that the journal is still writing down, and questions, of which
 * one may be a followed call's answer.
 */
const endedMax = 64;

/** What was sent, once it has ended on its line. */
interface EndedSending {
  readonly requestId: string;
  readonly service: string;
  readonly background: boolean;
  readonly lineMs: number;
  readonly parts: ExchangeParts;
}

/** A sending of an exchange. */
class SentCall {
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
    this.exchange = exchange;
    this.name = nameOf(exchange, line);
    this.#sentMs = sentMs;
    this.#requestBytesMs = requestBytesMs;
  }

  /** The kernel took its last byte. */
  wrote(now: number): void {
    this.#wroteMs = now;
  }

  /** Bytes came; true with the first of a frame. */
  received({ items, receiving }: LineEvent & { at: "received" }, byteMs: number, now: number): boolean {
    const frame = items.findLast((item) => item.kind === "frame" && item.isEcho !== true);
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
  readonly #report: PhasesReport;
  readonly #ended: EndedSending[] = [];

  constructor(report: PhasesReport) {
    this.#report = report;
  }

  /** Watches one line. */
  watch({ name, config }: { readonly name: string; readonly config: LineConfig }): LineObserve {
    // An emulated line is memory, where bytes take no time.
    const byteMs = config.path === emulatedPath ? 0 : msPerByte(config);
    /** What was sent last, until it has ended. */
    let last: SentCall | undefined;
    /** The same while it is written, and while it is awaited; neither while posline's own probe is. */
    let writing: SentCall | undefined;
    let awaited: SentCall | undefined;
    return (event, effects, now) => {
      if (event.at === "wrote" && writing !== undefined) {
        writing.wrote(now);
        this.#report.phase(writing.name, "written");
        writing = undefined;
      } else if (event.at === "received" && awaited?.received(event, byteMs, now)) {
        this.#report.phase(awaited.name, "replying");
      } else if (event.at === "call" && waits(event.exchange, effects)) {
        this.#report.phase(nameOf(event.exchange, name), "waiting");
      }
      for (const effect of effects) {
        if (effect.do === "write") {
          const { exchange, frame } = effect;
          awaited = exchange && new SentCall(exchange, name, now, bytesOf(frame) * byteMs);
          writing = awaited;
          if (awaited === undefined) continue;
          last = awaited;
          this.#report.phase(awaited.name, "sent");
        } else if (effect.do === "end") {
          const { exchange, ending } = effect;
          const sending = last?.exchange === exchange ? last : undefined;
          const parts = sending === undefined ? undefined : this.#partsOfEnded(sending, ending);
          // What is refused as it comes had no phase.
          const hasBegun = sending !== undefined || event.at !== "call" || event.exchange !== exchange;
          if (exchange.request.background && hasBegun) {
            this.#report.questionEnded({ line: name, record: recordOf(exchange.request, ending), parts });
          }
          if (sending === undefined) continue;
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
   * time on the line, which has the clock's whole resolution, tells the two apart. It also finds the question that a followed call is
   * answered with.
   */
  partsOf({ requestId, service, lineMs, result }: RecordedExchange): ExchangeParts | undefined {
    const at = this.#ended.findIndex(
      (each) =>
        each.service === service &&
        each.lineMs === lineMs &&
        (each.requestId === requestId || (each.background && result !== undefined)),
    );
    return at === -1 ? undefined : this.#ended.splice(at, 1)[0]?.parts;
  }

  #partsOfEnded(sending: SentCall, ending: Ending): ExchangeParts | undefined {
    const { lineMs } = ending instanceof Fault ? ending.details : ending;
    // No byte of it went out after all.
    if (lineMs === undefined) return undefined;
    if (this.#ended.length >= endedMax) this.#ended.shift();
    const { requestId, service, background } = sending.exchange.request;
    const parts = sending.parts(lineMs);
    this.#ended.push({ requestId, service, background, lineMs, parts });
    return parts;
  }
}

function nameOf({ request }: Exchange, line: string): ExchangeName {
  const { requestId, callId, service, route, key, amount, about, background } = request;
  return { requestId, callId, service, line, route, key, amount, about, background };
}

/** What a question's end says, with the fields of a call's. */
function recordOf({ requestId, service, route, about, payload, caller }: LineRequest, ending: Ending): ExchangeRecord {
  const isFault = ending instanceof Fault;
  const { queueMs = 0, lineMs = 0 } = isFault ? ending.details : ending;
  return {
    requestId,
    about,
    service,
    route,
    key: undefined,
    outcome: isFault ? ending.outcome : "answered",
    reason: isFault ? ending.reason : undefined,
    httpStatus: undefined,
    status: isFault ? undefined : ending.status,
    code: isFault ? undefined : ending.code,
    queueMs,
    lineMs,
    requestBytes: bytesOf(payload),
    replyBytes: isFault ? 0 : bytesOf(ending.payload),
    left: caller.gone,
    message: isFault ? ending.message : undefined,
  };
}

/** Whether a call that came neither went out nor was refused at once. */
function waits(exchange: Exchange, effects: readonly LineEffect[]): boolean {
  return !effects.some((effect) => (effect.do === "write" || effect.do === "end") && effect.exchange === exchange);
}
