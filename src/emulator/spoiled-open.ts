import { Deadline, nowMs } from "../core/clock.ts";
import { bytesOf } from "../core/pieces.ts";
import { type Connection, type ConnectionHandler, OpenError, type OpenTransport } from "../device/transport.ts";

/**
 * A conduit whose cable is bad on purpose: what is written goes out otherwise, or not at all, as whoever spoils it says. What is
 * heard comes as it is.
 *
 * What is spoiled counts as written once it is taken over, as by a kernel's buffer, and the bad cable then takes its own time with
 * it. So who writes isn't thought to hang while an answer comes in pieces for half a minute.
 */

/** One thing to do in place of writing a frame; several are done in order. */
export type Delivery =
  | { readonly bytes: Buffer }
  /** Nothing goes out for so long, counted from when the bytes before have left on the wire. */
  | { readonly waitMs: number }
  /** Held back until the next frame is written, and written right before it. */
  | { readonly hold: Buffer }
  /** The opening is lost, and opening anew is refused for so long. */
  | { readonly unplugMs: number };

export interface SpoiledOptions {
  readonly open: OpenTransport;
  /** Gives what is to be done in place of writing a frame; undefined: it goes out as it is. */
  readonly spoil: (frame: readonly Buffer[]) => readonly Delivery[] | undefined;
  /** Milliseconds that a byte takes on the wire; 0 for none. */
  readonly msPerByte: number;
  /** Pulls the cable for so many milliseconds at both of its ends; without it only the opening here is lost. */
  readonly unplug?: (ms: number) => void;
}

/** Bytes that the bad cable takes over ahead of sending them: with more, a kernel's buffer is full, too. */
const takenBytesMax = 256 * 1024;

/** Opens what `options.open` opens, with a bad cable before it. */
export function spoiledOpen(options: SpoiledOptions): OpenTransport {
  const cable = new Cable();
  return async (handler) => {
    cable.check();
    const opening = new SpoiledConnection(options, cable, handler);
    await opening.open();
    return opening;
  };
}

/** What outlives an opening: until when the cable is unplugged. */
class Cable {
  #untilMs = 0;

  unplug(ms: number): void {
    this.#untilMs = Math.max(this.#untilMs, nowMs() + ms);
  }

  check(): void {
    const leftMs = Math.ceil(this.#untilMs - nowMs());
    if (leftMs > 0) throw new OpenError(`it is unplugged on purpose: it comes back in ${leftMs} ms`);
  }
}

/** What was taken over and is still to be done. */
type Step = Exclude<Delivery, { readonly hold: Buffer }>;

/** Where bytes go that come between a loss and the closing after it. */
const nowhere = Buffer.alloc(4_096);

class SpoiledConnection implements Connection {
  readonly #options: SpoiledOptions;
  readonly #cable: Cable;
  /** Whoever uses this opening; undefined once it is lost or closed. */
  #handler: ConnectionHandler | undefined;
  #below: Connection | undefined;
  #steps: Step[] = [];
  /** Bytes among the steps. */
  #takenBytes = 0;
  /** What waits for the next frame. */
  #held: Buffer[] = [];
  /** The opening below is writing, or a wait isn't over. */
  #busy = false;
  /** What is being written below is a frame as it is, and its writer hears of its end. */
  #direct = false;
  /** Bytes of the frame whose writer hasn't been told yet that it is taken over; undefined when there is none. */
  #untoldBytes: number | undefined;
  #wroteBytes = 0;
  /** When the bytes that went out last have left on the wire. */
  #outMs = 0;
  readonly #deadline = new Deadline(() => this.#done());

  constructor(options: SpoiledOptions, cable: Cable, handler: ConnectionHandler) {
    this.#options = options;
    this.#cable = cable;
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

  get wroteBytes(): number {
    return this.#direct ? (this.#below?.wroteBytes ?? 0) : this.#wroteBytes;
  }

  write(frame: readonly Buffer[]): void {
    const deliveries = this.#options.spoil(frame);
    this.#wroteBytes = 0;
    if (deliveries === undefined && !this.#busy && this.#held.length === 0) {
      this.#direct = true;
      this.#send(frame);
      return;
    }
    this.#untoldBytes = bytesOf(frame);
    for (const bytes of this.#held.splice(0)) this.#take({ bytes });
    for (const each of deliveries ?? [{ bytes: Buffer.concat(frame) }]) {
      if ("hold" in each) this.#held.push(each.hold);
      else this.#take(each);
    }
    this.#work();
  }

  close(): Promise<void> {
    this.#end();
    return this.#below?.close() ?? Promise.resolve();
  }

  #take(step: Step): void {
    if ("bytes" in step) this.#takenBytes += step.bytes.length;
    this.#steps.push(step);
  }

  /** Does what can be done now, and then tells the writer what was taken over. */
  #work(): void {
    while (!this.#busy) {
      const step = this.#steps.shift();
      if (step === undefined) break;
      if ("bytes" in step) {
        this.#takenBytes -= step.bytes.length;
        this.#send([step.bytes]);
      } else if ("waitMs" in step) {
        this.#wait(step.waitMs);
      } else {
        this.#unplug(step.unplugMs);
      }
    }
    if (this.#untoldBytes === undefined || this.#takenBytes > takenBytesMax) return;
    this.#wroteBytes = this.#untoldBytes;
    this.#untoldBytes = undefined;
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

  /** What was under way is over. */
  #done(): void {
    this.#busy = false;
    this.#work();
  }

  #unplug(ms: number): void {
    this.#cable.unplug(ms);
    this.#options.unplug?.(ms);
    this.#lose("it was unplugged on purpose");
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
    this.#untoldBytes = undefined;
    this.#deadline.dispose();
  }
}
