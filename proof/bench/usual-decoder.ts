import { crc16, crc32 } from "crc";

/**
 * The usual way to cut frames out of chunks, to compare with: keep what is pending in one Buffer, concatenate every chunk to
 * it, look whether a frame is whole, and check it with npm `crc`.
 */

export type UsualDecoder = { push(chunk: Buffer): Buffer[] };

/** Length u32 BE, payload, CRC-16 over both. */
export function usualLengthDecoder(payloadBytesMax: number): UsualDecoder {
  let pending = Buffer.alloc(0);
  return {
    push(chunk) {
      const payloads: Buffer[] = [];
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 4) {
        const payloadBytes = pending.readUInt32BE(0);
        if (payloadBytes > payloadBytesMax) throw new Error(`Cannot decode: a frame of ${payloadBytes} bytes is too large`);
        if (pending.length < payloadBytes + 6) break;
        const checked = pending.subarray(0, payloadBytes + 4);
        if (crc16(checked) === pending.readUInt16BE(payloadBytes + 4)) payloads.push(checked.subarray(4));
        pending = pending.subarray(payloadBytes + 6);
      }
      return payloads;
    },
  };
}

/** STX, payload, CRC-32 of the payload with 03 written as 20, ETX. */
export function usualStxDecoder(payloadBytesMax: number): UsualDecoder {
  let pending = Buffer.alloc(0);
  return {
    push(chunk) {
      const payloads: Buffer[] = [];
      pending = Buffer.concat([pending, chunk]);
      for (let etx = pending.indexOf(3); etx >= 0; etx = pending.indexOf(3)) {
        const stx = pending.lastIndexOf(2, etx - 5);
        const payload = pending.subarray(stx + 1, etx - 4);
        const wanted = Buffer.alloc(4);
        wanted.writeUInt32BE(crc32(payload));
        for (let i = 0; i < 4; i++) if (wanted[i] === 3) wanted[i] = 0x20;
        if (stx >= 0 && wanted.equals(pending.subarray(etx - 4, etx))) payloads.push(payload);
        pending = pending.subarray(etx + 1);
      }
      if (pending.length > payloadBytesMax + 6) throw new Error("Cannot decode: no frame ends within the limit");
      return payloads;
    },
  };
}
