import type { LineConfig } from "../config/config.ts";
import { headerMs, payloadMsMin, replyPayloadBytesMax } from "../config/limits.ts";
import type { Decoded, Decoder, Discard, Framing } from "../wire/decoded.ts";
import { createDecoder } from "../wire/decoder.ts";
import { msPerByte } from "./frame.ts";
import { corruptQuietMs } from "./limits.ts";

/**
 * What is heard on one opening of a line: a decoder together with the clocks of a frame that has begun. Time, not bytes, finds
 * the next frame after a broken one; here is the time.
 */
export class Reader {
  readonly #decoder: Decoder;
  readonly #msPerByte: number;
  /** When the last bytes came. */
  heardMs = 0;
  /** When the bytes that are pending began to come; undefined when none are. */
  #beganMs: number | undefined;

  constructor(config: LineConfig, framings: ReadonlySet<Framing>) {
    this.#decoder = createDecoder({
      stx: framings.has("stx"),
      length: framings.has("length"),
      crc16: config.crc16,
      payloadBytesMax: replyPayloadBytesMax,
    });
    this.#msPerByte = msPerByte(config);
  }

  space(): Buffer {
    return this.#decoder.space();
  }

  /** Takes `n` bytes that were put into `space()`. */
  heard(n: number, now: number): readonly Decoded[] {
    this.heardMs = now;
    const decoded = this.#decoder.advance(n);
    this.#beganMs = this.between ? undefined : (this.#beganMs ?? now);
    return decoded;
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

  /** When the pending bytes have had their time; Infinity when none are pending. */
  get dueMs(): number {
    if (this.#beganMs === undefined) return Number.POSITIVE_INFINITY;
    const { phase, pendingBytes, missingBytes } = this.#decoder;
    if (phase === "lost") return this.heardMs + corruptQuietMs;
    if (phase === "start") return this.#beganMs + headerMs;
    return this.#beganMs + Math.max(payloadMsMin, 2 * (pendingBytes + missingBytes) * this.#msPerByte);
  }

  /** Gives up what is pending. */
  reset(): readonly Discard[] {
    this.#beganMs = undefined;
    return this.#decoder.reset();
  }
}
