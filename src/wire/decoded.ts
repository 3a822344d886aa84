/**
 * Bytes to frames. This room does no I/O, has no clock and knows no service: bytes in, a list out, time stays outside.
 *
 * A decoder owns the memory that the kernel writes into: `space()` says where the next bytes go, `advance(n)` says that n
 * came. It is eager (a frame is reported with its last byte), total (any bytes are accepted) and never throws. What it hands
 * out are views of that memory, which is never copied, moved or written to again.
 */

/** How a frame is delimited: by a length in front, or by STX and ETX. */
export type Framing = "length" | "stx";

/** One whole, correct frame. */
export interface Frame {
  readonly kind: "frame";
  readonly framing: Framing;
  /** The payload in order: one piece, or more when the frame outgrew the buffer it began in. */
  readonly payload: readonly Buffer[];
  readonly payloadBytes: number;
  /** All bytes of the frame on the wire, framing included, but for zeros that were read as an empty frame before. */
  readonly wireBytes: number;
  /** Set by whoever wrote the same bytes last: they came back. */
  readonly isEcho?: true;
}

/**
 * Why bytes became no frame. `noise`: they belong to no frame. `checksum`: a whole frame with a wrong CRC. `oversize`: a
 * frame larger than the cap. `reset`: a frame that was cut short when the decoder was reset.
 */
export type DiscardReason = "noise" | "checksum" | "oversize" | "reset";

/** Bytes that became no frame. */
export interface Discard {
  readonly kind: "discard";
  readonly reason: DiscardReason;
  readonly wireBytes: number;
  /** The first bytes of it, at most 16, as hex: enough to recognise `AT` or a foreign frame. A card number may be in it. */
  readonly head: string;
  /** For `checksum`: what came and what each reading of the CRC gives, as hex. */
  readonly checksum?: { readonly got: string; readonly arc?: string; readonly umts?: string; readonly crc32?: string };
}

export type Decoded = Frame | Discard;

/** Turns bytes into frames. */
export interface Decoder {
  /** Where the next bytes go: never empty, valid until the next call of `advance` or `push`. */
  space(): Buffer;
  /** Says that `n` bytes were written at the start of `space()`. */
  advance(n: number): readonly Decoded[];
  /** The same for bytes that lie elsewhere: copies them into `space()`. For tests and in-memory lines. */
  push(chunk: Uint8Array): readonly Decoded[];
  /**
   * To be called when the line is quiet: takes up sync again in the first answer among the pending bytes, where that is a whole and right
   * frame, whatever was taken for a frame before. What stood before it becomes a discard. Where there is none, or the first one is cut
   * short or broken, nothing changes: of two, which is whose isn't known here.
   */
  find(): readonly Decoded[];
  /** Starts afresh: whatever is pending becomes a discard. */
  reset(): readonly Discard[];
  /** Bytes that came and belong to no frame or discard yet. */
  readonly pendingBytes: number;
  /**
   * What the pending bytes are: `none`; `start` of a length frame whose length isn't complete; `body` of a frame;
   * `lost`, bytes that can be no frame, kept until `reset`.
   */
  readonly phase: "none" | "start" | "body" | "lost";
  /** Bytes still missing of a frame whose length is known; 0 otherwise. */
  readonly missingBytes: number;
}
