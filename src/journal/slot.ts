import { crc32 } from "../wire/crc32.ts";

/**
 * A slot of the ring: a record's text with its sequence number, in 512 bytes, a sector of every disk there is. A slot that a
 * power cut tore, at whatever byte, is known by its checksum; one that was never written is all zeros.
 *
 * | bytes | what |
 * | --- | --- |
 * | 0-3 | `PSLJ` |
 * | 4 | version, 1 |
 * | 5 | 0 |
 * | 6-7 | bytes of the text, u16 |
 * | 8-15 | sequence number, u64 |
 * | 16-19 | slots of its ring, u32 |
 * | 20-23 | CRC-32 of all other bytes |
 * | 24-511 | the text, in UTF-8, then zeros |
 *
 * Numbers are big-endian. The place of a record is its sequence number modulo the slots of its ring; that these stand in each
 * slot makes the file readable whatever it was cut to or had appended.
 */

/** Bytes of a slot. */
export const slotBytes = 512;

const magic = Buffer.from("PSLJ");
const version = 1;
const slotsAt = 16;
const crcAt = 20;
const textAt = 24;

/** Records written at once, so that a power cut tears no more of them: less than half of the smallest ring. */
export const batchMax = 48;

/** Bytes of the longest text that fits. */
export const textBytesMax = slotBytes - textAt;

/**
 * Writes a slot of a ring of so many.
 * @throws RangeError when the text doesn't fit.
 */
export function writeSlot(sequence: number, text: string, slots: number): Buffer {
  const bytes = Buffer.byteLength(text);
  if (bytes > textBytesMax) throw new RangeError(`Cannot write a record: it has ${bytes} bytes, and ${textBytesMax} fit`);
  const slot = Buffer.alloc(slotBytes);
  magic.copy(slot);
  slot.writeUInt8(version, 4);
  slot.writeUInt16BE(bytes, 6);
  slot.writeBigUInt64BE(BigInt(sequence), 8);
  slot.writeUInt32BE(slots, slotsAt);
  slot.write(text, textAt);
  slot.writeUInt32BE(sumOf(slot), crcAt);
  return slot;
}

/** A slot as it was written. */
export interface WholeSlot {
  readonly sequence: number;
  readonly text: string;
  /** Slots of its ring. */
  readonly slots: number;
}

/** What a slot holds: a record, nothing yet, something broken, or what a later posline wrote. */
export type Slot = WholeSlot | "empty" | "bad" | "newer";

/** Reads a slot; total, whatever stands in it. */
export function readSlot(slot: Buffer): Slot {
  if (slot.length !== slotBytes) return "bad";
  if (slot[0] === 0 && slot.equals(zeros)) return "empty";
  if (slot.compare(magic, 0, magic.length, 0, magic.length) !== 0 || slot.readUInt32BE(crcAt) !== sumOf(slot)) return "bad";
  if (slot[4] !== version) return "newer";
  const bytes = slot.readUInt16BE(6);
  const sequence = Number(slot.readBigUInt64BE(8));
  const slots = slot.readUInt32BE(slotsAt);
  if (bytes > textBytesMax || !Number.isSafeInteger(sequence) || slots === 0) return "bad";
  return { sequence, text: slot.toString("utf8", textAt, textAt + bytes), slots };
}

const zeros = Buffer.alloc(slotBytes);

function sumOf(slot: Buffer): number {
  return crc32(slot, textAt, slotBytes, crc32(slot, 0, crcAt));
}
