import type { LineConfig } from "../config/config.ts";
import type { Crc16 } from "../wire/crc16.ts";
import type { Framing } from "../wire/decoded.ts";
import { encodeLength } from "../wire/length.ts";
import { encodeStx } from "../wire/stx.ts";

/** A payload in its frame; the payload's pieces are the same buffers. */
export function frameOf(framing: Framing, payload: readonly Buffer[], crc16: Crc16): readonly Buffer[] {
  return framing === "stx" ? encodeStx(payload) : encodeLength(crc16, payload);
}

/** Bytes in pieces. */
export function bytesOf(pieces: readonly Buffer[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** Milliseconds that a byte takes on the wire, with its start, parity and stop bits. */
export function msPerByte(config: Pick<LineConfig, "baudRate" | "dataBits" | "parity" | "stopBits">): number {
  const bits = 1 + config.dataBits + (config.parity === "none" ? 0 : 1) + config.stopBits;
  return (bits * 1000) / config.baudRate;
}
