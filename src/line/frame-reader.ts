import type { LineConfig } from "../config/config.ts";
import { headerMs, payloadBytesMax, payloadMsMin } from "../config/limits.ts";
import { bytesOf } from "../core/pieces.ts";
import { msPerByte } from "../device/transport.ts";
import type { Decoded, Decoder, Discard, Framing } from "../wire/decoded.ts";
import { createDecoder } from "../wire/decoder.ts";

import {
  burstMsMax,
  corruptQuietMs,
  fullBytesMin,
  payloadMsMax,
  restAfterMs,
  restBeforeMs,
  restBytesMax,
  restMsMax,
  restMsMin,
} from "./limits.ts";

/** Bytes of a frame before its payload. */
const headBytes: Readonly<Record<Framing, number>> = { stx: 1, length: 4 };

/** The state of what is being received. */
export interface Receiving {
  /** `in-frame`: a frame has begun, and its own clocks count. `garbage`: bytes that can't be a frame, kept until a pause. */
  readonly phase: "idle" | "in-frame" | "garbage";
  /** When the last bytes came. */
  readonly heardMs: number;
  /** Until when a frame that just ended may go on, as a copy of it would; 0 if its end was seen. */
  readonly burstUntilMs: number;
}

/**
 * The bytes of one opening of a line: a decoder together with the clocks of a frame that has begun. After a broken frame only time, not
 * bytes, finds the next one; time is kept here.
 */
export class FrameReader {
  readonly #decoder: Decoder;
  readonly #msPerByte: number;
  readonly #sendsAnew: boolean;
  /** When the last bytes came. */
  heardMs = 0;
  /** Until when a frame that just ended may go on: a copy of it would come without a pause. 0 if its end was seen. */
  burstUntilMs = 0;
  /** When the pending bytes began to come; undefined if none are pending. */
  #beganMs: number | undefined;
  /** Bytes a millisecond of the last frame; 0 if not known. */
  #lastPace = 0;
  /** Bytes that came at once when the frame began, with nothing left to gather before: bytes come in pieces of that size. */
  #pieceBytes = 0;
  /** True if the last bytes were left to gather. */
  #rested = false;
  /** True if the frame that is coming filled the kernel's buffer. */
  #fills = false;
  /** True if an answer was looked for among the pending bytes since the last of them came. */
  #isLookedThrough = false;
  /** The frame written last on this opening, and its length. */
  #written: readonly Buffer[] = [];
  #writtenBytes = 0;

  /**
   * @param payloadMax Bytes of the largest payload that may come, if not the largest of all.
   * @param sendsAnew True if the other end sends its next frame by itself, as a till does that got no answer.
   */
  constructor(
    config: LineConfig,
    framings: ReadonlySet<Framing>,
    payloadMax: number = payloadBytesMax,
    sendsAnew: boolean = false,
  ) {
    this.#decoder = createDecoder({
      stx: framings.has("stx"),
      length: framings.has("length"),
      crc16: config.crc16,
      payloadBytesMax: payloadMax,
      // A request among stray bytes isn't carried out: its sender hears nothing, and asks how it stands.
      answers: !sendsAnew,
    });
    this.#msPerByte = msPerByte(config);
    this.#sendsAnew = sendsAnew;
  }

  /** Notes a written frame: from now on it may come back. */
  writes(frame: readonly Buffer[]): void {
    this.#written = frame;
    this.#writtenBytes = bytesOf(frame);
  }

  space(): Buffer {
    return this.#decoder.space();
  }

  /** Takes `n` bytes that were put into `space()`. */
  heard(n: number, now: number): readonly Decoded[] {
    this.heardMs = now;
    this.burstUntilMs = 0;
    this.#isLookedThrough = false;
    const decoded = this.#decoder.advance(n);
    const [first] = decoded;
    if (first?.kind === "frame") {
      if (this.between) this.burstUntilMs = this.#burstUntilMs(first.wireBytes, n, now);
      this.#frameCame(first.wireBytes, now);
    }
    if (this.between) this.#beganMs = undefined;
    // Bytes pending after a whole frame began now, whenever that frame began.
    else if (this.#beganMs === undefined || decoded.length > 0) {
      this.#beganMs = now;
      this.#pieceBytes = n;
      this.#fills = false;
    }
    if (n >= fullBytesMin) this.#fills = true;
    return this.#marked(decoded);
  }

  /** The decoded items, with an echo marked as one. */
  #marked(decoded: readonly Decoded[]): readonly Decoded[] {
    if (!decoded.some((item) => this.#isEcho(item))) return decoded;
    return decoded.map((item) => (item.kind === "frame" && this.#isEcho(item) ? { ...item, isEcho: true } : item));
  }

  /** True if an item is the frame written last. No answer is: each begins otherwise than any request. */
  #isEcho(item: Decoded): boolean {
    if (item.kind !== "frame" || item.wireBytes !== this.#writtenBytes) return false;
    const from = headBytes[item.framing];
    const payload = Buffer.concat(this.#written).subarray(from, from + item.payloadBytes);
    return payload.equals(Buffer.concat(item.payload));
  }

  /** True when no byte of an unfinished frame is pending. */
  get between(): boolean {
    return this.#decoder.phase === "none";
  }

  /** True when a frame has begun, and its own clocks count. */
  get begun(): boolean {
    const { phase } = this.#decoder;
    return phase === "start" || phase === "body";
  }

  /** The state of what is being received now. */
  get receiving(): Receiving {
    const phase = this.between ? "idle" : this.begun ? "in-frame" : "garbage";
    return { phase, heardMs: this.heardMs, burstUntilMs: this.burstUntilMs };
  }

  /** When `overdue` is to be called; Infinity if nothing is pending. */
  get dueMs(): number {
    const overMs = this.#overMs;
    const isToBeLookedThrough = !this.#isLookedThrough && !this.#sendsAnew && this.#decoder.phase === "body";
    return isToBeLookedThrough ? Math.min(overMs, this.heardMs + corruptQuietMs) : overMs;
  }

  /** When the pending bytes have had their time; Infinity if none are pending. */
  get #overMs(): number {
    if (this.#beganMs === undefined) return Number.POSITIVE_INFINITY;
    const { phase, pendingBytes, missingBytes } = this.#decoder;
    if (phase === "lost") return this.heardMs + corruptQuietMs;
    if (phase === "start") return this.#beganMs + headerMs;
    // A header that lies about megabytes buys no time: once nothing comes for `payloadMsMin`, nothing will. Requests sent anew every few
    // seconds would be swallowed one after the other as its payload, so with `sendsAnew` only bytes that came count.
    const wireMs = 2 * (pendingBytes + (this.#sendsAnew ? 0 : missingBytes)) * this.#msPerByte;
    const wholeMs = Math.min(payloadMsMax, Math.max(payloadMsMin, wireMs));
    return Math.min(this.#beganMs + wholeMs, this.heardMs + payloadMsMin);
  }

  /**
   * Milliseconds until the frame that is coming could be whole, and a little less; 0 if that isn't known or is soon. The pace is measured,
   * and the faster of this frame's and the last one's counts, since a USB adapter's pace has little to do with the baud rate. Bytes that
   * would fill the kernel's buffer meanwhile are not left to gather: their sender would have to wait.
   */
  restMs(): number {
    const missing = this.#decoder.missingBytes;
    if (this.#beganMs === undefined || missing === 0 || this.#fills) return 0;
    const pace = Math.max(this.#lastPace, paceOf(this.#decoder.pendingBytes, this.heardMs - this.#beganMs));
    if (pace === 0) return 0;
    // The last piece may come sooner, by as much as a piece takes.
    const wholeInMs = (missing - this.#pieceBytes) / pace;
    const gatheredMs = restBytesMax / Math.max(pace, 1 / this.#msPerByte);
    const restMs = Math.floor(Math.min(wholeInMs - restBeforeMs, restMsMax, gatheredMs));
    this.#rested = restMs >= restMsMin;
    return this.#rested ? restMs : 0;
  }

  /**
   * Until when a copy of the frame would begin. Bytes come in pieces of one size, so a piece that is cut short is the last, and a full one
   * may not be: then two pieces' time is waited. A frame that came at once tells nothing.
   */
  #burstUntilMs(frameBytes: number, readBytes: number, now: number): number {
    const pieceBytes = this.#pieceBytes;
    if (this.#beganMs === undefined) return 0;
    const fits = frameBytes % pieceBytes === 0 || (readBytes >= pieceBytes && !this.#rested);
    const pace = fits ? paceOf(frameBytes, now - this.#beganMs) : 0;
    return pace === 0 ? 0 : now + Math.min((2 * pieceBytes) / pace, burstMsMax);
  }

  /** Remembers how fast a frame came. A frame that was whole when a rest ended came faster than anyone can tell. */
  #frameCame(bytes: number, now: number): void {
    const pace = this.#beganMs === undefined || this.#rested ? 0 : paceOf(bytes, now - this.#beganMs);
    this.#lastPace = pace;
    this.#rested = false;
  }

  /** The line has paused: finds the answer that stray bytes have hidden, or else gives up pending bytes that have had their time. */
  overdue(now: number): readonly Decoded[] {
    this.#isLookedThrough = true;
    const found = this.hidden(now);
    return found.length === 0 && now >= this.#overMs ? this.reset() : found;
  }

  /** Finds the answer that stray bytes among the pending ones have hidden, with what follows it. */
  hidden(now: number): readonly Decoded[] {
    const found = this.#decoder.find();
    if (found.length > 0) this.#beganMs = this.between ? undefined : now;
    return this.#marked(found);
  }

  /** Gives up the pending bytes. */
  reset(): readonly Discard[] {
    this.#beganMs = undefined;
    return this.#decoder.reset();
  }
}

/** Bytes a millisecond; 0 if they came in too short a time to tell. */
function paceOf(bytes: number, ms: number): number {
  return ms < restAfterMs ? 0 : bytes / ms;
}
