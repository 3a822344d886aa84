import type { Discard, DiscardReason } from "./decoded.ts";
import type { Memory } from "./memory.ts";

/** Where discards are reported to: a list that may hold frames too. */
interface Discards {
  push(discard: Discard): unknown;
}

/** Reports the window's first `n` bytes as a discard and drops them. */
export function discard(
  memory: Memory,
  found: Discards,
  reason: DiscardReason,
  n: number,
  checksum?: Discard["checksum"],
): void {
  const head = memory.hex(0, n);
  found.push({ kind: "discard", reason, wireBytes: n, head, ...(checksum && { checksum }) });
  memory.drop(n);
}

/**
 * Bytes that can be no frame, from where sync was lost to where it comes back. Only their number and head are kept: a device
 * that babbles for a day takes no memory, and makes one discard.
 */
export class Skipped {
  bytes = 0;
  /** Why sync was lost, until it is reported. */
  reason: "noise" | "oversize" = "noise";

  private head = "";
  private readonly memory: Memory;

  constructor(memory: Memory) {
    this.memory = memory;
  }

  /** Drops the window's first `n` bytes. */
  skip(n: number): void {
    if (this.head.length < 32) this.head += this.memory.hex(0, n, 16 - this.head.length / 2);
    this.memory.drop(n);
    this.bytes += n;
  }

  /** Reports all that was skipped since the last time, if anything was, as one discard. */
  report(found: Discards): void {
    if (this.bytes > 0) found.push({ kind: "discard", reason: this.reason, wireBytes: this.bytes, head: this.head });
    this.bytes = 0;
    this.head = "";
    this.reason = "noise";
  }
}
