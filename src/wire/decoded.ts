/**
 * Bytes to frames. This room does no I/O, has no clock and knows no service: bytes in, a list out, time stays outside.
 *
 * A decoder owns the memory that the kernel writes into: `space()` gives the place of the next bytes, `advance(n)` says that n came. It is
 * eager (a frame is reported with its last byte), total (any bytes are accepted) and never throws. Payloads are views of that memory, which
 * is never copied, moved or written to again.
 */

/** How a frame is delimited: by a length in front, or by STX and ETX. */
export type Framing = "length" | "stx";

/** A whole, correct frame. */
export interface Frame {
  readonly kind: "frame";
  readonly framing: Framing;
  /** The payload in order: one piece, or more when the frame outgrew the buffer it began in. */
  readonly payload: readonly Buffer[];
  readonly payloadBytes: number;
  /** All bytes of the frame on the wire, framing included, except zeros that were read as an empty frame before. */
  readonly wireBytes: number;
  /** Set by the writer of the same bytes: they came back. */
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
  /** The first of these bytes, at most 16, as hex: enough to recognise `AT` or a foreign frame. A card number may be in it. */
  readonly head: string;
  /** For `checksum`: the CRC that came, and the one that each reading gives, as hex. */
  readonly checksum?: { readonly got: string; readonly arc?: string; readonly umts?: string; readonly crc32?: string };
}

export type Decoded = Frame | Discard;

/** Turns bytes into frames. */
export interface Decoder {
  /** The place of the next bytes: never empty, valid until the next call of `advance` or `push`. */
  space(): Buffer;
  /** Says that `n` bytes were written at the start of `space()`. */
  advance(n: number): readonly Decoded[];
  /** Copies bytes that lie elsewhere into `space()`, and advances. For tests and in-memory lines. */
  push(chunk: Uint8Array): readonly Decoded[];
  /**
   * Called when the line is quiet: takes up sync again in the first answer among the pending bytes, if that is a whole and right frame,
   * whatever was taken for a frame before. The bytes before it become a discard. If there is none, or the first one is cut short or broken,
   * nothing changes: of two answers, which one belongs to which call isn't known here.
   */
  find(): readonly Decoded[];
  /** Starts afresh: pending bytes become a discard. */
  reset(): readonly Discard[];
  /** Bytes that came and belong to no frame or discard yet. */
  readonly pendingBytes: number;
  /**
   * The kind of the pending bytes: `none`; `start` of a length frame whose length isn't complete; `body` of a frame; `lost`, bytes that can
   * be no frame, kept until `reset`.
   */
  readonly phase: "none" | "start" | "body" | "lost";
  /** Bytes still missing of a frame whose length is known; 0 otherwise. */
  readonly missingBytes: number;
}
