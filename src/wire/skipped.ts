import type { Discard, DiscardReason } from "./decoded.ts";
import type { Memory } from "./memory.ts";

/** The list that discards are reported to; it may hold frames too. */
interface Discards {
  push(discard: Discard): unknown;
}

/** Broken frames that wait for their report, at most: a device that sends them without a pause and without an end takes no memory. */
const waitingMax = 100;

/**
 * Bytes that can be no frame, from where sync was lost to where it comes back. Only their number and head are kept: a device that babbles
 * for a day takes no memory, and makes one discard.
 *
 * If answers come in length frames, a whole one may lie among such bytes. So the last of them are held, as many as the largest frame has,
 * and broken frames are reported only once it is known that they were no part of an answer.
 */
export class Skipped {
  bytes = 0;
  /** Why sync was lost, until it is reported. */
  reason: "noise" | "oversize" = "noise";

  /** Count of bytes after the last broken frame, and the first of them as hex. */
  private runBytes = 0;
  private head = "";
  /** Discards from before these bytes that are yet to be reported. */
  private waiting: Discard[] = [];
  private readonly memory: Memory;
  private readonly heldMax: number;

  /** @param heldMax Bytes that are held, at most; 0 if nothing is looked for among them. */
  constructor(memory: Memory, heldMax: number) {
    this.memory = memory;
    this.heldMax = heldMax;
  }

  /** Skips the window's first `n` bytes. */
  skip(n: number): void {
    if (this.head.length < 32) this.head += this.memory.hex(0, n, 16 - this.head.length / 2);
    this.runBytes += n;
    this.pass(n);
  }

  /** Skips the window's first `n` bytes, which are a frame that failed. */
  reject(found: Discards, reason: DiscardReason, n: number, checksum?: Discard["checksum"]): void {
    this.endRun();
    this.waiting.push({ kind: "discard", reason, wireBytes: n, head: this.memory.hex(0, n), ...(checksum && { checksum }) });
    this.pass(n);
    if (this.heldMax === 0 || this.waiting.length > waitingMax) this.report(found);
  }

  /** Reports all that was skipped since the last time, if anything was. */
  report(found: Discards): void {
    if (this.bytes === 0) return;
    this.endRun();
    for (const discard of this.waiting) found.push(discard);
    this.forget();
  }

  /** Brings held bytes back into the window, and returns their count. */
  rewind(): number {
    const held = this.memory.rewind();
    this.bytes -= held;
    return held;
  }

  /** After `rewind`: the window's first `n` bytes are skipped still. */
  skipAgain(n: number): void {
    this.pass(n);
  }

  /** After `rewind`: the window's first `n` bytes, and all that was skipped before, are noise. */
  reportAsNoise(found: Discards, n: number): void {
    const head = this.bytes === 0 ? this.memory.hex(0, n) : (this.waiting[0]?.head ?? this.head);
    const wireBytes = this.bytes + n;
    if (wireBytes > 0) found.push({ kind: "discard", reason: "noise", wireBytes, head });
    this.memory.drop(n);
    this.forget();
  }

  private pass(n: number): void {
    this.bytes += n;
    this.memory.pass(n, this.heldMax);
  }

  private endRun(): void {
    const { runBytes, head, reason } = this;
    if (runBytes > 0) this.waiting.push({ kind: "discard", reason, wireBytes: runBytes, head });
    this.runBytes = 0;
    this.head = "";
    this.reason = "noise";
  }

  private forget(): void {
    this.waiting = [];
    this.runBytes = 0;
    this.head = "";
    this.reason = "noise";
    this.bytes = 0;
    this.memory.pass(0, 0);
  }
}
