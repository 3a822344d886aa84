import type { LineConfig } from "../../src/config/config.ts";
import { silenceMs } from "../../src/config/limits.ts";
import type { Fault } from "../../src/core/fault.ts";
import { LineEngine } from "../../src/line/engine.ts";
import type { LineEffect, LineEvent } from "../../src/line/events.ts";
import { type Ending, Exchange, type LineRequest } from "../../src/line/exchange.ts";
import { FrameReader } from "../../src/line/frame-reader.ts";
import { reopenMs, silenceMsMax } from "../../src/line/limits.ts";
import type { LineObserve } from "../../src/line/line.ts";
import type { LineState } from "../../src/line/states.ts";
import type { LineService } from "../../src/recovery/standing.ts";
import type { ServiceLiveness } from "../../src/trouble/liveness.ts";
import type { Decoded, Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";
import type { Timeline } from "./timeline.ts";

/**
 * A line in simulated time: the engine and the frame reader of the product, driven by moments in place of a device, timers and
 * promises, as `line.ts` and `framed-link.ts` drive them.
 */

/** The other end of the line. */
export class SimulatedDevice {
  plugged = true;
  readonly #time: Timeline;
  readonly #heard: (framing: Framing, text: string) => void;
  #decoder = newDecoder();
  /** The line that has it open. */
  line: SimulatedLine | undefined;

  constructor(time: Timeline, heard: (framing: Framing, text: string) => void) {
    this.#time = time;
    this.#heard = heard;
  }

  /** Bytes leave; what hasn't left when the plug is pulled never arrives. */
  take(bytes: Buffer): void {
    const decoder = this.#decoder;
    this.#time.after(wireMs, () => {
      if (!this.plugged) return;
      for (const item of decoder.push(bytes)) {
        if (item.kind === "frame") this.#heard(item.framing, Buffer.concat(item.payload).toString());
      }
    });
  }

  /** Sends bytes; lost when nobody has it open. */
  send(bytes: Buffer): void {
    this.line?.hear(bytes);
  }

  opened(line: SimulatedLine): void {
    this.line = line;
    this.#decoder = newDecoder();
  }

  unplug(): void {
    this.plugged = false;
    this.line?.lose();
  }
}

/** Milliseconds from one end to the other. */
const wireMs = 1;

const newDecoder = () => createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });

export interface SimulatedLineOptions {
  /** Default "till". */
  readonly name?: string;
  readonly config: LineConfig;
  readonly services: readonly LineService[];
  readonly time: Timeline;
  readonly device: SimulatedDevice;
  /** What must precede a call's first byte, and what follows: undefined when it is done, or its fault. Perhaps never. */
  readonly record: (request: LineRequest, done: (fault: Fault | undefined) => void) => void;
  readonly observe?: LineObserve | undefined;
  /** How the kernel takes the next write, where not all of it at once. */
  readonly acceptance?: () => Acceptance | undefined;
}

/** A write of which the kernel takes a share at once, and the rest later. */
export interface Acceptance {
  /** From 0 to 1. */
  readonly share: number;
  readonly restMs: number;
}

export class SimulatedLine {
  readonly #options: SimulatedLineOptions;
  readonly #engine: LineEngine;
  #reader: FrameReader;
  #isOpen = false;
  #isStopped = false;
  /** Until when the silence after an opening must last; undefined when it did. */
  #drainUntilMs: number | undefined;
  #drainGiveUpMs = 0;
  readonly #pending: LineEvent[] = [];
  #isFeeding = false;
  #cancelWake = () => {};
  /** Takes back the rest of a write that the kernel hasn't taken yet; undefined when there is none. */
  #cancelRest: (() => void) | undefined;
  /** The kernel has taken none of the write under way. */
  #nothingWritten = false;
  #isKilled = false;

  constructor(options: SimulatedLineOptions) {
    this.#options = options;
    this.#engine = new LineEngine({ name: this.#name, config: options.config, services: options.services });
    this.#reader = this.#newReader();
  }

  get #name(): string {
    return this.#options.name ?? "till";
  }

  get state(): LineState {
    return this.#engine.state;
  }

  /** Why it is in its state, for people. */
  get reason(): string {
    return this.#engine.reason(this.#options.time.now);
  }

  /** Whether each of its services replied, and to all that was asked since. */
  get isHeard(): boolean {
    return this.#engine.liveness().every(({ state }) => state === "heard");
  }

  /** Whether calls of each of its services are sent, or wait. */
  get takesCalls(): boolean {
    const { services } = this.#options;
    return services.every(({ service }) => this.#engine.hindered(service) === undefined);
  }

  /** How many calls wait. */
  get waiting(): number {
    return this.#engine.waiting;
  }

  /** How each of its services does. */
  liveness(): readonly ServiceLiveness[] {
    return this.#engine.liveness();
  }

  /** It has stopped, and given its device back. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  start(): void {
    this.#open();
  }

  /** Its process is killed: nothing is decided any more, and what the kernel took still leaves. */
  kill(): void {
    this.#isKilled = true;
    this.#isStopped = true;
    this.#cancelWake();
    this.#cancelRest?.();
    this.#close();
  }

  /** Gives it a request; what it returns is to be called when its caller leaves. */
  call(request: LineRequest, ended: (ending: Ending) => void): () => void {
    const { config, time } = this.#options;
    const times = { cameMs: time.now, waitUntilMs: time.now + config.queueWaitMs };
    const exchange = new Exchange(this.#name, request, frameOf(request.framing, request.payload, config.crc16), times);
    exchange.onEnded = ended;
    this.#feed({ at: "call", exchange });
    return () => {
      request.caller.leave();
      this.#feed({ at: "caller gone", exchange });
    };
  }

  stop(graceMs = 0): void {
    this.#feed({ at: "stop", graceMs, why: "posline is shutting down" });
  }

  hear(bytes: Buffer): void {
    for (let from = 0; from < bytes.length && this.#isOpen; ) {
      const now = this.#options.time.now;
      const n = bytes.copy(this.#reader.space(), 0, from);
      from += n;
      if (this.#drainUntilMs !== undefined) this.#drainUntilMs = Math.min(now + silenceMs, this.#drainGiveUpMs);
      this.#feed({ at: "received", items: this.#reader.heard(n, now), receiving: this.#reader.receiving });
    }
  }

  lose(): void {
    if (!this.#isOpen) return;
    const nothingWritten = this.#cancelRest !== undefined && this.#nothingWritten;
    this.#close();
    this.#feed({ at: "lost", reason: "unplugged", nothingWritten, discards: this.#reader.reset() });
    this.#options.time.after(reopenMs.first, () => this.#open());
  }

  #newReader(): FrameReader {
    const { config, services } = this.#options;
    return new FrameReader(config, new Set(services.map(({ framing }) => framing)));
  }

  #open(): void {
    const { device, time } = this.#options;
    if (this.#isStopped) return;
    if (!device.plugged) {
      this.#feed({ at: "open failed", reason: "there is no device" });
      time.after(reopenMs.first, () => this.#open());
      return;
    }
    this.#isOpen = true;
    this.#reader = this.#newReader();
    this.#drainUntilMs = time.now + silenceMs;
    this.#drainGiveUpMs = time.now + silenceMsMax;
    device.opened(this);
    this.#feed({ at: "opened", seed: Math.imul(time.now + 1, 0x9e37_79b1) >>> 0 });
  }

  #close(): void {
    this.#isOpen = false;
    this.#cancelRest?.();
    this.#cancelRest = undefined;
    if (this.#options.device.line === this) this.#options.device.line = undefined;
  }

  #feed(event: LineEvent): void {
    if (this.#isKilled) return;
    this.#pending.push(event);
    if (this.#isFeeding) return;
    this.#isFeeding = true;
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
      const { now } = this.#options.time;
      const effects = this.#engine.handle(next, now);
      this.#options.observe?.(next, effects, now, this.#engine);
      for (const effect of effects) this.#carryOut(effect);
    }
    this.#isFeeding = false;
    this.#schedule();
  }

  #carryOut(effect: LineEffect): void {
    switch (effect.do) {
      case "write":
        this.#write(Buffer.concat(effect.frame));
        break;
      case "record": {
        const { exchange } = effect;
        this.#options.record(exchange.request, (fault) =>
          this.#feed(fault === undefined ? { at: "recorded", exchange } : { at: "record failed", exchange, fault }),
        );
        break;
      }
      case "end": {
        const { onEnded } = effect.exchange;
        effect.exchange.onEnded = undefined;
        onEnded?.(effect.ending);
        break;
      }
      case "close":
        this.#isStopped = true;
        this.#close();
        break;
      case "report":
        break;
    }
  }

  #write(bytes: Buffer): void {
    const { acceptance, device, time } = this.#options;
    this.#reader.writes([bytes]);
    const { share, restMs } = acceptance?.() ?? { share: 1, restMs: 0 };
    const taken = Math.floor(bytes.length * share);
    if (taken > 0) device.take(bytes.subarray(0, taken));
    if (taken === bytes.length) {
      this.#wrote();
      return;
    }
    this.#nothingWritten = taken === 0;
    this.#cancelRest = time.after(restMs, () => {
      this.#cancelRest = undefined;
      device.take(bytes.subarray(taken));
      this.#wrote();
    });
  }

  /** One wake-up, at the first of what is due. */
  #schedule(): void {
    this.#cancelWake();
    if (this.#isKilled) return;
    const linkDueMs = this.#isOpen ? Math.min(this.#reader.dueMs, this.#drainUntilMs ?? Number.POSITIVE_INFINITY) : Infinity;
    const dueMs = Math.min(linkDueMs, this.#engine.nextDueMs());
    const { time } = this.#options;
    this.#cancelWake = dueMs === Number.POSITIVE_INFINITY ? () => {} : time.after(dueMs - time.now, () => this.#due());
  }

  #due(): void {
    const { now } = this.#options.time;
    if (this.#isOpen && now >= this.#reader.dueMs) this.#received(this.#reader.overdue(now));
    if (this.#isOpen && this.#drainUntilMs !== undefined && now >= this.#drainUntilMs) {
      this.#feed({ at: "received", items: this.#reader.reset(), receiving: this.#reader.receiving });
      this.#drainUntilMs = undefined;
      this.#feed({ at: "drained" });
    }
    if (now >= this.#engine.nextDueMs()) this.#feed({ at: "tick" });
    else this.#schedule();
  }

  #received(items: readonly Decoded[]): void {
    if (items.length > 0 || this.#reader.between) this.#feed({ at: "received", items, receiving: this.#reader.receiving });
  }

  #wrote(): void {
    const hidden = this.#reader.hidden(this.#options.time.now);
    if (hidden.length > 0) this.#received(hidden);
    this.#feed({ at: "wrote" });
  }
}
