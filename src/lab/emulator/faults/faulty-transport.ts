import { Deadline, nowMs } from "../../../core/clock.ts";
import { bytesOf } from "../../../core/pieces.ts";
import { type Connection, type ConnectionHandler, OpenError, type OpenTransport } from "../../../device/transport.ts";

/**
 * A transport that injects faults: a written frame goes out changed, late or not at all, as `stepsFor` says. Received bytes pass unchanged.
 *
 * A faulty frame counts as written once it is queued, as by a kernel's buffer, and its steps then take their time. So the writer isn't
 * thought to hang while an answer goes out in pieces for half a minute.
 */

/** A step in place of writing a frame; several are done in order. */
export type TransportStep =
  | { readonly bytes: Buffer }
  /** A pause, counted from when the bytes before have left on the wire. */
  | { readonly waitMs: number }
  /** Held back until the next frame is written, and written right before it. */
  | { readonly hold: Buffer }
  /** A loss of the connection; opening anew is refused for so long. */
  | { readonly unplugMs: number };

export interface FaultyTransportOptions {
  readonly open: OpenTransport;
  /** The steps in place of writing a frame; undefined: it goes out as it is. */
  readonly stepsFor: (frame: readonly Buffer[]) => readonly TransportStep[] | undefined;
  /** Milliseconds that a byte takes on the wire; 0 for none. */
  readonly msPerByte: number;
  /** Unplugs both ends for so many milliseconds; without it only the connection here is lost. */
  readonly unplug?: (ms: number) => void;
}

/** Bytes that are queued ahead of sending them: a kernel's buffer is full at some point, too. */
const queuedBytesMax = 256 * 1024;

/** Opens `options.open`, with faults injected into written frames. */
export function faultyTransport(options: FaultyTransportOptions): OpenTransport {
  const outage = new Outage();
  return async (handler) => {
    outage.check();
    const opening = new FaultyConnection(options, outage, handler);
    await opening.open();
    return opening;
  };
}

/** The memory that outlives a connection: until when it can't be opened again. */
class Outage {
  #untilMs = 0;

  unplug(ms: number): void {
    this.#untilMs = Math.max(this.#untilMs, nowMs() + ms);
  }

  check(): void {
    const leftMs = Math.ceil(this.#untilMs - nowMs());
    // The text has no time in it, so that it stays the same: the log says a line's reason once.
    if (leftMs > 0) throw new OpenError("the emulator has unplugged it: it comes back by itself");
  }
}

/** A step in the queue. */
type TimedStep = Exclude<TransportStep, { readonly hold: Buffer }>;

/** Memory for bytes that come between a loss and the closing after it. */
const nowhere = Buffer.alloc(4_096);

class FaultyConnection implements Connection {
  readonly #options: FaultyTransportOptions;
  readonly #outage: Outage;
  /** The user of this connection; undefined once it is lost or closed. */
  #handler: ConnectionHandler | undefined;
  #below: Connection | undefined;
  #steps: TimedStep[] = [];
  /** Bytes among the steps. */
  #queuedBytes = 0;
  /** Frames that wait for the next frame. */
  #held: Buffer[] = [];
  /** True while the connection below is writing, or a wait isn't over. */
  #busy = false;
  /** True while the connection below writes an unchanged frame, whose writer hears of its end. */
  #direct = false;
  /** Bytes of the frame whose writer doesn't know yet that it is queued; undefined if there is none. */
  #unreportedBytes: number | undefined;
  #wroteBytes = 0;
  /** When the last bytes sent have left on the wire. */
  #outMs = 0;
  readonly #deadline = new Deadline(() => this.#done());

  constructor(options: FaultyTransportOptions, outage: Outage, handler: ConnectionHandler) {
    this.#options = options;
    this.#outage = outage;
    this.#handler = handler;
  }

  async open(): Promise<void> {
    this.#below = await this.#options.open({
      space: () => this.#handler?.space() ?? nowhere,
      onBytes: (n) => this.#handler?.onBytes(n),
      coalesceMs: () => this.#handler?.coalesceMs?.() ?? 0,
      onWritten: () => this.#wrote(),
      onClosed: (reason) => this.#lose(reason),
    });
  }

  get isAccepted(): boolean {
    return this.#below?.isAccepted === true;
  }

  get wroteBytes(): number {
    return this.#direct ? (this.#below?.wroteBytes ?? 0) : this.#wroteBytes;
  }

  write(frame: readonly Buffer[]): void {
    const steps = this.#options.stepsFor(frame);
    this.#wroteBytes = 0;
    if (steps === undefined && !this.#busy && this.#held.length === 0) {
      this.#direct = true;
      this.#send(frame);
      return;
    }
    this.#unreportedBytes = bytesOf(frame);
    for (const bytes of this.#held.splice(0)) this.#enqueue({ bytes });
    for (const each of steps ?? [{ bytes: Buffer.concat(frame) }]) {
      if ("hold" in each) this.#held.push(each.hold);
      else this.#enqueue(each);
    }
    this.#work();
  }

  close(): Promise<void> {
    this.#end();
    return this.#below?.close() ?? Promise.resolve();
  }

  #enqueue(step: TimedStep): void {
    if ("bytes" in step) this.#queuedBytes += step.bytes.length;
    this.#steps.push(step);
  }

  /** Does the steps that can be done now, and then reports queued frames to the writer. */
  #work(): void {
    while (!this.#busy) {
      const step = this.#steps.shift();
      if (step === undefined) break;
      if ("bytes" in step) {
        this.#queuedBytes -= step.bytes.length;
        this.#send([step.bytes]);
      } else if ("waitMs" in step) {
        this.#wait(step.waitMs);
      } else {
        this.#unplug(step.unplugMs);
      }
    }
    if (this.#unreportedBytes === undefined || this.#queuedBytes > queuedBytesMax) return;
    this.#wroteBytes = this.#unreportedBytes;
    this.#unreportedBytes = undefined;
    this.#handler?.onWritten();
  }

  #send(pieces: readonly Buffer[]): void {
    this.#busy = true;
    this.#outMs = Math.max(nowMs(), this.#outMs) + bytesOf(pieces) * this.#options.msPerByte;
    this.#below?.write(pieces);
  }

  #wrote(): void {
    if (!this.#direct) {
      this.#done();
      return;
    }
    this.#wroteBytes = this.wroteBytes;
    this.#direct = false;
    this.#busy = false;
    this.#handler?.onWritten();
  }

  #wait(ms: number): void {
    const now = nowMs();
    this.#busy = true;
    this.#deadline.set(Math.max(now, this.#outMs) + ms, now);
  }

  /** Ends the step under way. */
  #done(): void {
    this.#busy = false;
    this.#work();
  }

  #unplug(ms: number): void {
    this.#outage.unplug(ms);
    this.#options.unplug?.(ms);
    this.#lose("the emulator has unplugged it");
  }

  #lose(reason: string): void {
    const handler = this.#handler;
    this.#end();
    handler?.onClosed(reason);
  }

  #end(): void {
    this.#handler = undefined;
    this.#steps = [];
    this.#held = [];
    this.#unreportedBytes = undefined;
    this.#deadline.dispose();
  }
}
