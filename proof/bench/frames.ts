import { crc16, crc32 } from "crc";
import type { Decoder, Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";

/** Frames to decode, made without our own code, and the decoder to decode them with. */

export const payloadBytesMax = 1 << 20;

export function frameOf(framing: Framing, payload: Buffer): Buffer {
  if (framing === "length") {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(payload.length);
    const checked = Buffer.concat([head, payload]);
    const tail = Buffer.alloc(2);
    tail.writeUInt16BE(crc16(checked));
    return Buffer.concat([checked, tail]);
  }
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(payload));
  return Buffer.concat([Buffer.of(2), payload, sum.map((byte) => (byte === 3 ? 0x20 : byte)), Buffer.of(3)]);
}

export function decoderOf(framing: Framing): Decoder {
  const wanted = { length: framing === "length", stx: framing === "stx" };
  return createDecoder({ ...wanted, crc16: "arc", payloadBytesMax, answers: true });
}
