import { randomBytes } from "node:crypto";
import type { LineConfig } from "../config/config.ts";
import { payloadBytesMax, payloadMsMin } from "../config/limits.ts";
import type { Contract } from "../contract/contract.ts";
import { routeOf, selectorOf } from "../contract/contracts.ts";
import type { Call, Reply, ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { checkFirst, Fault, nothingSent } from "../core/fault.ts";
import { everythingRead } from "../core/loop-turns.ts";
import { bytesOf } from "../core/pieces.ts";
import { Presence } from "../core/presence.ts";
import { msPerByte, type OpenTransport } from "../device/transport.ts";
import { faultOnLine } from "../envelope/fault.ts";
import { wholeOf } from "../envelope/json.ts";
import { formLineFault, formPayload, type ReceivedRequest, readFormLine, readTextLine } from "../envelope/request.ts";
import type { Decoded, Discard, Frame, Framing } from "../wire/decoded.ts";
import { frameOf } from "../wire/framing.ts";
import type { Receiving } from "./frame-reader.ts";
import { FramedLink } from "./framed-link.ts";
import { type Answering, Inbox, InboxCaller, type Job } from "./inbox.ts";
import { corruptQuietMs, shortWireMs, unreadQuietMs } from "./limits.ts";
import { Standstill } from "./standstill.ts";

/**
 * Reads request frames from a line, hands them to the service's handler one after the other, and frames the answers: here calls enter from
 * a line. By the contracts a broken bank or qr frame is dropped, and a broken fiscal frame is answered as an invalid request.
 */

/** Bytes of the shortest request in its frame: `/sale` with its length and its CRC. */
const requestBytesMin = 11;

/** A request from a line, and its answer. */
export interface LineExchange {
  readonly call: Call;
  /** Milliseconds that the request waited for another. */
  readonly waitedMs: number;
  /** Milliseconds that the service took. */
  readonly tookMs: number;
  readonly ending: Reply | Fault;
  /** The payload that was given, or kept back; empty if nothing may be said. */
  readonly payload: readonly Buffer[];
  /** False if nobody awaited the answer any more, and none was given. */
  readonly given: boolean;
}

export interface LineListenerReport {
  discard(discard: Discard): void;
  /** The line opened, could not be opened, or was lost. */
  state(reason: string, isOpen: boolean): void;
  exchange?(exchange: LineExchange): void;
  /** Received bytes became these items, before anything is made of them. */
  received?(items: readonly Decoded[]): void;
  /** A frame is about to be written. */
  writes?(frame: readonly Buffer[]): void;
  /** A whole frame came for none of the services here; `cause` says why. */
  unaddressed?(frame: Frame, cause: string): void;
  /** The line gives back what is written. Called once an opening. */
  echoes?(): void;
  /** A bug: something failed that should not. */
  error?(error: unknown): void;
}

/** A handler that also learns for how many milliseconds the call has waited, since its till has waited as long. */
export type LineHandler = (call: Call, waitedMs: number) => Promise<Reply>;

/** A service that is answered on a line. */
interface ListeningService {
  readonly contract: Contract;
  /** The service's name, if it isn't its contract's. */
  readonly service?: ServiceName | undefined;
  readonly handler: LineHandler;
  /** Milliseconds for which a till may still await the answer of a route; for ever if absent. */
  readonly awaitedMs?: (route: string) => number;
}

/** A request and the service that it asks. */
interface Asked {
  readonly asked: ListeningService;
  readonly request: ReceivedRequest;
}

/** Why a frame is for no service, and the fault that a service answers it with, if one does. */
interface Unaddressed {
  readonly cause: string;
  readonly refusal?: { readonly contract: Contract; readonly fault: Fault };
}

export interface LineListenerOptions {
  readonly config: LineConfig;
  readonly open: OpenTransport;
  readonly services: readonly ListeningService[];
  /** Requests that are answered; `all` by default. */
  readonly answering?: Answering;
  /** True if a terminal is played, to which a form is a request in an STX frame alone (fiscal contract, Endpoints). */
  readonly isTerminal?: true;
  /** Makes a `traceparent` for each call, if it is to go on to others. */
  readonly newTrace?: () => string;
  readonly report: LineListenerReport;
}

export class LineListener {
  readonly #options: LineListenerOptions;
  readonly #link: FramedLink;
  readonly #inbox: Inbox;
  /** The till that sent the request that is being answered. */
  #caller: Presence = new Presence();
  #busy = false;
  /** Called when something came or went, while a request waits for bytes to end, or for its answer to be out. */
  #stilled: (() => void) | undefined;
  /** Why the listener finishes; undefined while it doesn't. */
  #finishing: string | undefined;
  #finished: (() => void) | undefined;
  #stopped = false;
  /** The last write, which ends once it is out or its opening is lost; and the function that ends it. */
  #writing: Promise<void> = Promise.resolve();
  #wrote: (() => void) | undefined;
  /** True if the line has given back what was written on this opening. */
  #echoes = false;
  /** When the last answer is out on the wire; the kernel takes bytes before the wire does. */
  #outMs = 0;
  /** When bytes came last. */
  #heardMs = 0;
  /** Tells how old bytes that are read now may be, if that decides whether a request is carried out. */
  readonly #standstill: Standstill | undefined;
  /** Since when the pending frame may have lain in the kernel, if the process stood still. */
  #staleMs: number | undefined;
  /** Whether an unreadable frame is answered: only the first since a silence, or since a readable one. */
  #answersUnread = true;
  readonly #idStart = randomBytes(4).toString("hex");
  #count = 0;

  constructor(options: LineListenerOptions) {
    this.#options = options;
    const { config, open, services, report, answering = "all" } = options;
    this.#inbox = new Inbox(answering, (job) => this.#givenUp(job));
    this.#standstill = this.#isNewest ? new Standstill() : undefined;
    const framings = new Set(services.map(({ contract }) => contract.framing));
    const traffic = { framings, payloadBytesMax, sendsAnew: true };
    this.#link = new FramedLink(config, traffic, open, {
      opened: () => {
        this.#echoes = false;
        report.state("the device opened", true);
      },
      drained: () => {},
      received: (items, receiving) => this.#heard(items, receiving),
      wrote: () => this.#wrote?.(),
      lost: (reason, { discards }) => this.#lost(reason, discards),
      openFailed: (reason) => report.state(reason, false),
    });
  }

  start(): void {
    this.#standstill?.start();
    this.#link.start();
  }

  /**
   * Gives the device back once the answer that is being written is out, within a write's own time. Requests without an answer stay without
   * one.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#dropRequests();
    await this.#writing;
    this.#standstill?.stop();
    await this.#link.stop();
  }

  /**
   * Lets the request in work end and its answer go out, and gives the device back. Other requests are refused.
   * @param why Reason that they are given: "posline is shutting down".
   */
  async finish(why = "posline is shutting down"): Promise<void> {
    this.#finishing = why;
    this.#stilled?.();
    if (this.#busy) {
      await new Promise<void>((resolve) => {
        this.#finished = resolve;
      });
    }
    await this.stop();
  }

  #lost(reason: string, discards: readonly Discard[]): void {
    this.#options.report.received?.(discards);
    for (const discard of discards) this.#options.report.discard(discard);
    this.#options.report.state(reason, false);
    // Bytes that the kernel had left of the answer go nowhere.
    this.#outMs = 0;
    this.#staleMs = undefined;
    this.#abandon();
  }

  /** Gives up all requests: nobody waits for answers any more. */
  #abandon(): void {
    this.#dropRequests();
    this.#wrote?.();
  }

  #dropRequests(): void {
    this.#inbox.drop();
    this.#stilled?.();
    this.#caller.leave();
  }

  #heard(decoded: readonly Decoded[], { phase }: Receiving): void {
    if (this.#stopped) return;
    const now = nowMs();
    const cameMs = this.#staleMs ?? this.#standstill?.earliestMs(now) ?? now;
    // The rest of a frame is read later, and the frame is as old as its beginning.
    this.#staleMs = cameMs < now && phase !== "idle" ? cameMs : undefined;
    if (now - Math.max(this.#heardMs, this.#outMs) >= unreadQuietMs) this.#answersUnread = true;
    this.#heardMs = now;
    this.#options.report.received?.(decoded);
    for (const item of decoded) {
      if (item.kind === "discard") this.#discarded(item);
      else if (item.isEcho === true) this.#noteEcho();
      // A request that the kernel kept from before the opening must not be carried out: its till has given up.
      else if (this.#link.isDrained) this.#inbox.take({ frame: item, heardMs: cameMs });
    }
    this.#stilled?.();
    this.#begin();
  }

  #discarded(discard: Discard): void {
    this.#options.report.discard(discard);
    if (!this.#link.isDrained) return;
    const isNoise = discard.reason === "noise";
    // After bytes that belong to no frame, a whole request isn't found either until there was a silence.
    if (isNoise && discard.wireBytes < requestBytesMin) return;
    const fiscal = this.#options.services.find(({ contract }) => contract.framing === "stx");
    // Only an STX frame can be seen to be broken and fiscal: a length frame without its length may be for any service.
    const isFiscal = fiscal !== undefined && discard.head.startsWith("02");
    if (isFiscal && !isNoise) this.#inbox.take({ broken: fiscal.contract, heardMs: nowMs() });
    else this.#inbox.supersede();
  }

  #begin(): void {
    if (this.#busy) return;
    this.#busy = true;
    void this.#answerAll();
  }

  async #answerAll(): Promise<void> {
    for (let job = this.#inbox.next(); job !== undefined; job = this.#inbox.next()) await this.#answer(job);
    this.#busy = false;
    this.#finished?.();
  }

  async #answer(job: Job): Promise<void> {
    if ("broken" in job) {
      const fault = new Fault("malformed", "Cannot read the frame: its CRC is wrong");
      return this.#refuseUnread(job.broken, job.broken.framing, fault);
    }
    const read = this.#readRequest(job.frame);
    if ("cause" in read) return this.#refuseUnaddressed(job.frame, read);
    this.#answersUnread = true;
    const { contract, handler, awaitedMs = () => Number.POSITIVE_INFINITY } = read.asked;
    const call = this.#callOf(read);
    if (this.#isNewest) await this.#stillness();
    if (!this.#inbox.wanted) return this.#givenUp(job);
    const beganMs = nowMs();
    const waitedMs = beganMs - job.heardMs;
    this.#caller = call.caller;
    const ending = await this.#ending(handler, call, waitedMs);
    const payload = payloadOf(contract, call, ending);
    const tookMs = nowMs() - beganMs;
    if (this.#isNewest) {
      await everythingRead();
      await this.#stillness();
    }
    // The handler has timeouts of its own. If the process stood still they came late, and the answer would be taken for the next one.
    const given = this.#isAwaited && nowMs() - job.heardMs <= awaitedMs(call.route);
    const isWritten = given && payload.length > 0;
    if (isWritten) await this.#write(job.frame.framing, payload);
    this.#report({ call, waitedMs, tookMs, ending, payload, given });
    const hasEffect = routeOf(contract, call.route)?.effect !== "none";
    // Requests that only read may be carried out twice, and posline's own probes ask the same again and again.
    if (isWritten && this.#isNewest && hasEffect) await this.#wentOut();
  }

  /**
   * Waits until the answer is out on the wire, which takes seconds on a slow line; until then the request is in work. A till that gives up
   * meanwhile and asks the same once more gets this answer, and nothing is carried out twice. Bytes that it has begun to send by then are
   * waited for.
   */
  async #wentOut(): Promise<void> {
    if (this.#outMs - nowMs() <= shortWireMs) return;
    const giveUpMs = this.#outMs + payloadMsMin;
    while (!this.#stopped && this.#finishing === undefined && this.#link.isDrained && !this.#inbox.isAsked) {
      const now = nowMs();
      const isOut = now >= this.#outMs;
      if (now >= giveUpMs || (isOut && this.#link.isStill)) break;
      await this.#stirred((isOut ? giveUpMs : this.#outMs) - now);
    }
  }

  get #isNewest(): boolean {
    return this.#options.answering === "newest";
  }

  /** True if the till still awaits this answer: its opening wasn't lost, and the till sends nothing by now, whose answer it may await. */
  get #isAwaited(): boolean {
    return this.#inbox.wanted && (!this.#isNewest || this.#link.isStill);
  }

  /** True if nothing else is asked by now, on the opening that there is. */
  get #mayBeWanted(): boolean {
    return this.#inbox.wanted || (!this.#stopped && this.#link.isDrained && !this.#inbox.isAsked);
  }

  /**
   * Waits for the end of bytes that come, since only that tells whether they are another request, in whose favour this one is given up, or
   * the same once more. The wait is no longer than for the rest of a frame. After a broken frame there is one too, which may be the same
   * again.
   */
  async #stillness(): Promise<void> {
    const untilMs = nowMs() + payloadMsMin;
    while (this.#mayBeWanted && !this.#link.isStill && nowMs() < untilMs) {
      await this.#stirred(untilMs - nowMs());
    }
  }

  /**
   * Waits for the silence after an unreadable frame; true if there was one. The frame may have been noise ahead of a request: an error
   * would be taken for the answer to that request, which is carried out.
   */
  async #isQuietBehind(): Promise<boolean> {
    const untilMs = nowMs() + payloadMsMin;
    while (this.#inbox.wanted && nowMs() < untilMs) {
      const now = nowMs();
      const quietMs = this.#heardMs + corruptQuietMs;
      if (this.#link.isStill && now >= quietMs) break;
      await this.#stirred(now < quietMs ? quietMs - now : untilMs - now);
    }
    await everythingRead();
    return this.#isAwaited;
  }

  /**
   * Waits until something comes or goes, for so many milliseconds at most. A clock that ends the wait may run ahead of bytes that are to be
   * read.
   */
  async #stirred(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#stilled = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#stilled = undefined;
    await everythingRead();
  }

  async #ending(handler: LineHandler, call: Call, waitedMs: number): Promise<Reply | Fault> {
    try {
      if (this.#finishing !== undefined) throw stoppingFault(call, this.#finishing);
      return await handler(call, waitedMs);
    } catch (error) {
      if (error instanceof Fault) return error;
      this.#options.report.error?.(error);
      return new Fault("broken", `Cannot answer: internal error in posline, please report it. ${checkFirst[call.contract]}`);
    }
  }

  /** Refuses a frame that asks nobody here: fiscal answers an unreadable form as an invalid request, otherwise nothing is said. */
  async #refuseUnaddressed(frame: Frame, { cause, refusal }: Unaddressed): Promise<void> {
    this.#options.report.unaddressed?.(frame, cause);
    if (refusal !== undefined) await this.#refuseUnread(refusal.contract, frame.framing, refusal.fault);
  }

  /**
   * Answers an unreadable frame, but none that follows it without a silence: if the answer comes back damaged, or another listener answers
   * it, there would be no end.
   */
  async #refuseUnread(contract: Contract, framing: Framing, fault: Fault): Promise<void> {
    if (!this.#answersUnread) return;
    this.#answersUnread = false;
    if (this.#isNewest && !(await this.#isQuietBehind())) return;
    await this.#write(framing, faultOnLine(contract, undefined, fault));
  }

  /** Notes that the frame written last came back: nobody's request, whatever it says. */
  #noteEcho(): void {
    if (!this.#echoes) this.#options.report.echoes?.();
    this.#echoes = true;
  }

  /** Reports a request that isn't carried out, since nobody awaits its answer by now. */
  #givenUp(job: Job): void {
    const read = "frame" in job ? this.#readRequest(job.frame) : undefined;
    if (read === undefined || "cause" in read) return;
    const { contract } = read.asked;
    const call = this.#callOf(read);
    const ending = new Fault(
      "unavailable",
      `Cannot send ${call.route}: the till no longer waits for the answer. ${nothingSent}`,
      {
        reason: "caller-left",
      },
    );
    const waitedMs = nowMs() - job.heardMs;
    this.#report({ call, waitedMs, tookMs: 0, ending, payload: payloadOf(contract, call, ending), given: false });
  }

  /** Reports an exchange; a log that fails must not change an answer. */
  #report(exchange: LineExchange): void {
    try {
      this.#options.report.exchange?.(exchange);
    } catch (error) {
      this.#options.report.error?.(error);
    }
  }

  /**
   * Reads the service and the request out of a frame. In a length frame the port in front of the route selects the service (qr.md,
   * Endpoints).
   */
  #readRequest({ framing, payload }: Frame): Asked | Unaddressed {
    const { services, isTerminal } = this.#options;
    const whole = wholeOf(payload);
    if (framing === "stx") {
      const fiscal = services.find(({ contract }) => contract.framing === "stx");
      return readForm(fiscal, whole);
    }
    const text = readTextLine(whole);
    if (text === undefined) return { cause: "it begins with neither a route nor a :port and a route" };
    const asked = services.find(({ contract }) => isSelected(contract, text.prefix));
    if (asked === undefined) return { cause: unselected(text.prefix, services) };
    if (asked.contract.envelope !== "form") return { asked, request: text };
    return isTerminal === true
      ? { cause: "its framing is bank's and qr's: send fiscal an STX frame" }
      : readForm(asked, formPayload(text));
  }

  #callOf({ asked: { contract, service = contract.service }, request: { route, body } }: Asked): Call {
    const requestId = `${this.#idStart}-${(++this.#count).toString(36)}`;
    const caller = new InboxCaller(this.#inbox);
    const trace = this.#options.newTrace?.();
    return { service, contract: contract.service, route, body, requestId, trace, key: undefined, caller };
  }

  /** Writes an answer in the framing of its request. */
  #write(framing: Framing, payload: readonly Buffer[]): Promise<void> {
    const frame = frameOf(framing, payload, this.#options.config.crc16);
    this.#outMs = nowMs() + bytesOf(frame) * msPerByte(this.#options.config);
    this.#options.report.writes?.(frame);
    this.#writing = new Promise((resolve) => {
      this.#wrote = () => {
        this.#wrote = undefined;
        resolve();
      };
      this.#link.write(frame, nowMs());
    });
    return this.#writing;
  }
}

function isSelected(contract: Contract, prefix: string): boolean {
  return prefix === "" ? contract.framing === "length" && contract.linePrefix === "" : prefix === selectorOf(contract);
}

function unselected(prefix: string, services: readonly ListeningService[]): string {
  const has = services.map(({ contract, service = contract.service }) => `${service} (${selectorOf(contract)})`);
  return `${prefix === "" ? "a route without a :port" : prefix} selects no service of this line, which has ${has.join(", ")}`;
}

/** @param asked The service here that takes forms, if there is one. */
function readForm(asked: ListeningService | undefined, form: Buffer): Asked | Unaddressed {
  if (asked === undefined) return { cause: "this line has no service that takes forms" };
  const request = readFormLine(form);
  if (request !== undefined) return { asked, request };
  const fault = formLineFault(form);
  return { cause: fault.message, refusal: { contract: asked.contract, fault } };
}

function stoppingFault({ route }: Call, why: string): Fault {
  return new Fault("unavailable", `Cannot send ${route}: ${why}. ${nothingSent}`, { reason: "stopping" });
}

/** The payload of an ending on the line: the service's bytes, or a fault. */
function payloadOf(contract: Contract, { route }: Call, ending: Reply | Fault): readonly Buffer[] {
  return ending instanceof Fault ? faultOnLine(contract, route, ending) : ending.payload;
}
