import { randomInt } from "node:crypto";
import type { LineConfig } from "../config/config.ts";
import type { Reply, ServiceName } from "../core/call.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Cause } from "../device/open-errors.ts";
import type { OpenTransport } from "../device/transport.ts";
import type { LineService } from "../recovery/standing.ts";
import type { ServiceLiveness } from "../trouble/liveness.ts";
import type { Discard, Frame } from "../wire/decoded.ts";
import { frameOf } from "../wire/framing.ts";
import { LineEngine } from "./engine.ts";
import type { LineEffect, LineEvent, LineReported } from "./events.ts";
import { type Ending, Exchange, type LineRequest, unavailable } from "./exchange.ts";
import { FramedLink } from "./framed-link.ts";
import type { LineState } from "./states.ts";

/** Told what happens on a line, for the log and the status. */
export interface LineReport {
  state(state: LineState, reason: string): void;
  /** Bytes that became no frame. */
  discard(discard: Discard): void;
  /** A whole frame that was given to nobody. */
  late(frame: Frame): void;
  /** A service's probe was answered: the capabilities it names, as parsed. A terminal's own word, of any size. */
  probeAnswered(service: ServiceName, answer: JsonObject): void;
  /** A service has not answered for a while; the likeliest cause, and what to do. */
  unheard(service: ServiceName, cause: Cause): void;
  /** A service that was reported as unheard answers. */
  heardAgain(service: ServiceName): void;
  /** The line gives back what is sent, which is ignored. Called once an opening, with the likeliest cause, and what to do. */
  echoes?(cause: Cause): void;
}

export interface LineOptions {
  readonly name: string;
  readonly config: LineConfig;
  /** The services on this line. */
  readonly services: readonly LineService[];
  readonly open: OpenTransport;
  /**
   * Services that owed a call's answer on the line that had the device before, asked for at the first opening; absent if there was no such
   * line.
   */
  readonly inherited?: (() => readonly ServiceName[]) | undefined;
  readonly report: LineReport;
  /** Sees all that happens on the line, for a recording, a tap or a page; absent if nobody watches. */
  readonly observe?: LineObserve | undefined;
}

/**
 * Sees each event that the engine was given and its effects, before they are carried out. The bytes in them are views of memory that is
 * used again, and must be copied to be kept. Must return at once and never throw, since it stands on the path of each call.
 * @param now The moment of the event, on `nowMs`'s scale.
 * @param engine The engine after the event, to read whether it rests.
 */
export type LineObserve = (
  event: LineEvent,
  effects: readonly LineEffect[],
  now: number,
  engine: Pick<LineEngine, "rest">,
) => void;

/**
 * A serial line, as its callers see it: a request is refused, waits for its turn, or goes out at once, and ends once. The line drives the
 * engine: bytes, calls and time go in as events, and each effect is carried out before the next event is given. It decides nothing, and has
 * one timer.
 */
export class Line {
  readonly name: string;
  readonly #config: LineConfig;
  readonly #engine: LineEngine;
  readonly #link: FramedLink;
  readonly #report: LineReport;
  readonly #observe: LineObserve | undefined;
  readonly #deadline = new Deadline(() => this.#feed({ at: "tick" }));
  /** Events that came while an effect was carried out. */
  readonly #pending: LineEvent[] = [];
  #isFeeding = false;
  #hasOpened = false;
  #lastDevice: string | undefined;
  /** When the engine was last given an event. */
  #fedMs = 0;
  #stopped: Promise<void> | undefined;
  #onStopped: (() => void) | undefined;

  constructor({ name, config, services, open, report, observe, inherited }: LineOptions) {
    this.name = name;
    this.#config = config;
    this.#report = report;
    this.#observe = observe;
    this.#engine = new LineEngine({ name, config, services });
    const traffic = {
      framings: new Set(services.map(({ framing }) => framing)),
      payloadBytesMax: Math.max(...services.map(({ replyBytesMax }) => replyBytesMax)),
    };
    this.#link = new FramedLink(config, traffic, open, {
      opened: () => {
        this.#lastDevice = this.#link.device;
        const owing = this.#hasOpened ? undefined : inherited?.();
        this.#hasOpened = true;
        this.#feed({ at: "opened", seed: randomInt(2 ** 32), ...(owing === undefined ? {} : { owing }) });
      },
      drained: () => this.#feed({ at: "drained" }),
      received: (items, receiving) => this.#feed({ at: "received", items, receiving }),
      wrote: () => this.#feed({ at: "wrote" }),
      lost: (reason, loss) => this.#feed({ at: "lost", reason, ...loss }),
      openFailed: (reason) => this.#feed({ at: "open failed", reason }),
    });
  }

  get state(): LineState {
    return this.#engine.state;
  }

  /** Why the line is in its state, for people. */
  get reason(): string {
    return this.#engine.reason(nowMs());
  }

  /**
   * Services that owe a call's answer, which the line that follows on the same device must know; undefined if this line never had the
   * device.
   */
  get owing(): readonly ServiceName[] | undefined {
    return this.#hasOpened ? this.#engine.owing : undefined;
  }

  /** The state of each service of the line: whether it was heard since the opening, and when. */
  liveness(): readonly ServiceLiveness[] {
    return this.#engine.liveness();
  }

  get waiting(): number {
    return this.#engine.waiting;
  }

  /** The device's real node while it is open, if known. */
  get device(): string | undefined {
    return this.#link.device;
  }

  /** The real node that was open last. */
  get lastDevice(): string | undefined {
    return this.#lastDevice;
  }

  /**
   * Milliseconds by which something due on this line is late: the watchdog's question. 0 if all is well, and while the device is merely
   * away; a few on a busy machine. Whatever is awaited has a due time; if something is awaited and no timer is set, a wake-up was lost and
   * will never come.
   */
  stalledMs(now: number): number {
    const overdueMs = Math.max(this.#deadline.overdueMs(now), this.#link.overdueMs(now));
    if (overdueMs > 0 || !this.#link.isOpen || this.#engine.isStopping) return overdueMs;
    return this.#engine.isAwaiting && !this.#deadline.isSet && !this.#link.isTimed ? now - this.#fedMs : 0;
  }

  /** Begins to open the device, and goes on for ever. */
  start(): void {
    this.#link.start();
  }

  /** Why a call that came now would be refused; undefined if it would be sent, or wait. */
  get refusal(): Fault | undefined {
    return this.#engine.refusal(nowMs());
  }

  /**
   * Sends a request when its turn comes and waits for the reply.
   * @throws Fault `unavailable` (not sent), `timeout` or `broken` (unknown).
   */
  run(request: LineRequest): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const cameMs = nowMs();
      const times = { cameMs, waitUntilMs: cameMs + this.#config.queueWaitMs };
      const exchange = new Exchange(this.name, request, frameOf(request.framing, request.payload, this.#config.crc16), times);
      const end = (ending: Ending) => (ending instanceof Fault ? reject(ending) : resolve(ending));
      exchange.onEnded = end;
      this.#feed({ at: "call", exchange });
      // A call that was sent, or has ended: its caller's leaving changes nothing any more.
      if (exchange.wasSent || exchange.onEnded === undefined) return;
      const leave = () => this.#feed({ at: "caller gone", exchange });
      request.caller.onLeave(leave);
      exchange.onEnded = (ending) => {
        request.caller.offLeave(leave);
        end(ending);
      };
    });
  }

  /**
   * Stops for good: waiting calls are refused, the exchange in flight may end.
   * @param graceMs Milliseconds for the exchange in flight, beside its own timeouts; then its outcome is unknown. If called again, the
   * earlier deadline wins.
   * @param why Reason that refused calls are given: "posline is shutting down".
   */
  stop(graceMs: number, why = "posline is shutting down"): Promise<void> {
    this.#stopped ??= new Promise((resolve) => {
      this.#onStopped = resolve;
    });
    this.#feed({ at: "stop", graceMs, why });
    return this.#stopped;
  }

  /** Gives the engine an event, and carries out its effects; events that come meanwhile are given after it. */
  #feed(event: LineEvent): void {
    if (this.#isFeeding) {
      this.#pending.push(event);
      return;
    }
    this.#isFeeding = true;
    try {
      let next: LineEvent | undefined = event;
      while (next !== undefined) {
        this.#fedMs = nowMs();
        const effects = this.#engine.handle(next, this.#fedMs);
        this.#observe?.(next, effects, this.#fedMs, this.#engine);
        for (const effect of effects) this.#carryOut(effect);
        next = this.#pending.shift();
      }
    } finally {
      this.#isFeeding = false;
    }
    this.#deadline.set(this.#engine.nextDueMs(), this.#fedMs);
  }

  #carryOut(effect: LineEffect): void {
    switch (effect.do) {
      case "write":
        this.#link.write(effect.frame, this.#fedMs);
        break;
      case "record":
        void this.#record(effect.exchange);
        break;
      case "end":
        this.#end(effect.exchange, effect.ending);
        break;
      case "report":
        // A missing or unreadable answer may be another program's doing, which changed the device's settings.
        if (effect.what.is === "state" && effect.what.state === "recovering") this.#link.lookAtSettings();
        passOn(this.#report, effect.what);
        break;
      case "close":
        this.#deadline.dispose();
        void this.#link.stop().then(() => this.#onStopped?.());
        break;
    }
  }

  /** Writes a call's record before its first byte. */
  async #record(exchange: Exchange): Promise<void> {
    try {
      await exchange.request.beforeSend?.();
    } catch (error) {
      const fault = error instanceof Fault ? error : this.#unrecorded(error);
      this.#feed({ at: "record failed", exchange, fault });
      return;
    }
    this.#feed({ at: "recorded", exchange });
  }

  #unrecorded(error: unknown): Fault {
    return unavailable(this.name, "not-recorded", `the call could not be recorded (${String(error)})`);
  }

  #end(exchange: Exchange, ending: Ending): void {
    const { onEnded } = exchange;
    exchange.onEnded = undefined;
    onEnded?.(ending);
  }
}

function passOn(report: LineReport, what: LineReported): void {
  switch (what.is) {
    case "state":
      report.state(what.state, what.reason);
      break;
    case "discard":
      report.discard(what.discard);
      break;
    case "late":
      report.late(what.frame);
      break;
    case "probe answered":
      report.probeAnswered(what.service, what.answer);
      break;
    case "unheard":
      report.unheard(what.service, what.cause);
      break;
    case "heard again":
      report.heardAgain(what.service);
      break;
    case "echoes":
      report.echoes?.(what.cause);
      break;
    case "echo":
      break;
  }
}
