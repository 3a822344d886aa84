import type { LineConfig } from "../config/config.ts";
import type { Reply } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { Fault } from "../core/fault.ts";
import type { Open } from "./conduit.ts";
import { Dialogue } from "./dialogue.ts";
import { Exchange, type LineRequest, unavailable } from "./exchange.ts";
import { frameOf } from "./frame.ts";
import type { ServiceLiveness } from "./liveness.ts";
import type { Peer } from "./peer.ts";
import type { LineReport } from "./report.ts";
import type { LineState } from "./states.ts";
import { Turns } from "./turns.ts";

export interface LineOptions {
  readonly name: string;
  readonly config: LineConfig;
  /** The services on this line. */
  readonly peers: readonly Peer[];
  readonly open: Open;
  readonly report: LineReport;
}

/**
 * One serial line, as its callers see it: a request is refused, waits for its turn, or goes out at once, and ends once. It knows
 * frames, services that owe and the shape of a barrier's answer, and no route. What goes over the line is its dialogue's affair.
 */
export class Line {
  readonly name: string;
  readonly #config: LineConfig;
  readonly #turns: Turns;
  readonly #dialogue: Dialogue;
  #whyStopping = "";

  constructor({ name, config, peers, open, report }: LineOptions) {
    this.name = name;
    this.#config = config;
    this.#turns = new Turns(
      name,
      config,
      () => this.#dialogue.standing.whyWaiting(nowMs()),
      () => this.#dialogue.proceed(nowMs()),
    );
    this.#dialogue = new Dialogue({ name, config, peers, open, report }, this.#turns);
  }

  get state(): LineState {
    return this.#dialogue.standing.state;
  }

  /** Why it is in its state, for people. */
  get reason(): string {
    return this.#dialogue.standing.reason(nowMs());
  }

  /** How each service of the line does: whether it was heard since the opening, and when. */
  liveness(now: number): readonly ServiceLiveness[] {
    return this.#dialogue.standing.liveness(now);
  }

  get waiting(): number {
    return this.#turns.size;
  }

  /** The device's real node while it is open, where that is known. */
  get device(): string | undefined {
    return this.#dialogue.device;
  }

  /**
   * For how many milliseconds something that was due on this line has not happened: the watchdog's question. 0 when all is well,
   * and while the device is merely away; a few on a busy machine.
   */
  stalledMs(now: number): number {
    return this.#dialogue.stalledMs(now);
  }

  /** Begins to open the device, and goes on for ever. */
  start(): void {
    this.#dialogue.start();
  }

  /** Why a call that came now would be refused; undefined when it would be sent, or wait. */
  get refusal(): Fault | undefined {
    return this.#refusal(this.#sendsNow);
  }

  /**
   * Sends a request when its turn comes and waits for the reply.
   * @throws Fault `unavailable` (not sent), `timeout` or `broken` (unknown).
   */
  run(request: LineRequest): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const now = nowMs();
      const sendsNow = this.#sendsNow;
      const left = request.caller.gone ? unavailable(this.name, "the caller has left", 1) : undefined;
      const refusal = left ?? this.#refusal(sendsNow);
      if (refusal !== undefined) {
        reject(refusal);
        return;
      }
      const frame = frameOf(request.framing, request.payload, this.#config.crc16);
      const times = { cameMs: now, waitUntilMs: now + this.#config.queueWaitMs };
      const exchange = new Exchange(this.name, request, frame, times, { resolve, reject });
      if (sendsNow && request.beforeSend === undefined) {
        this.#dialogue.send(exchange, now);
      } else if (sendsNow && request.beforeSend !== undefined) {
        this.#turns.prepare(exchange, request.beforeSend, now);
      } else {
        this.#turns.take(exchange);
        this.#dialogue.wait(now);
      }
    });
  }

  /**
   * Stops for good: waiting calls are refused, the exchange in flight may end.
   * @param graceMs Milliseconds it has for that before its outcome is unknown, beside its own time-outs. Told again, the sooner end holds.
   * @param why What those are told who wait, or come now: "posline is shutting down".
   */
  stop(graceMs: number, why = "posline is shutting down"): Promise<void> {
    this.#whyStopping = why;
    this.#turns.refuseAll(why);
    return this.#dialogue.stop(graceMs, why);
  }

  get #sendsNow(): boolean {
    return this.#dialogue.maySend && this.#turns.isFree;
  }

  #refusal(sendsNow: boolean): Fault | undefined {
    if (this.#dialogue.stopping) return unavailable(this.name, this.#whyStopping, 5);
    if (this.#dialogue.standing.isAway) return unavailable(this.name, `it is down (${this.reason})`, 1);
    if (sendsNow || !this.#turns.isFull) return undefined;
    return unavailable(this.name, `${this.#turns.size} calls are waiting, which is the limit`, 1);
  }
}
