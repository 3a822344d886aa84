import type { Crc16 } from "./crc16.ts";
import type { Framing } from "./decoded.ts";
import { encodeLength } from "./length.ts";
import { encodeStx } from "./stx.ts";

const encoders: Readonly<Record<Framing, (payload: readonly Buffer[], crc16: Crc16) => readonly Buffer[]>> = {
  stx: (payload) => encodeStx(payload),
  length: (payload, crc16) => encodeLength(crc16, payload),
};

/** A payload in its frame; the payload's pieces are the same buffers. */
export function frameOf(framing: Framing, payload: readonly Buffer[], crc16: Crc16): readonly Buffer[] {
  return encoders[framing](payload, crc16);
}
