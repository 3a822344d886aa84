import { crc32 as zlibCrc32 } from "node:zlib";

/** CRC-32 as zlib, PNG and Ethernet have it ("123456789" gives 0xCBF43926): the fiscal contract's "CRC32". */

/** The CRC of `bytes[from, to)`, carried on from `value`, the CRC of the bytes before: so a frame is summed while it comes. */
export function crc32(bytes: Uint8Array, from: number, to: number, value = 0): number {
  return zlibCrc32(bytes.subarray(from, to), value);
}
