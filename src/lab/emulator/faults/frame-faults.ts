import { type Crc16, crc16 } from "../../../wire/crc16.ts";
import { crc32 } from "../../../wire/crc32.ts";
import type { Framing } from "../../../wire/decoded.ts";
import { encodeStx } from "../../../wire/stx.ts";
import type { TransportStep } from "./faulty-transport.ts";
import type { WireFault } from "./wire-fault.ts";

/**
 * The bytes that go out in place of a whole, correct frame that a fault is injected into. Pure: bytes and pauses are named here, and the
 * owner of the line and its clock carries them out. The same fault makes the same of a frame each time.
 */

/** The bytes that ModemManager and its like write into any port that they find (seen in the field: lines). */
const noise = Buffer.from("AT+CPIN?\r\n");

/**
 * Milliseconds of silence after the noise: in a length frame only time tells where the next header is, and a bridge that takes a
 * tenth of a second of silence for it hears this one.
 */
const afterNoiseMs = 200;

/** Bytes by which a length field says too much: less than any answer, so that the next one would be swallowed in part. */
const lengthTooMuchBytes = 16;

/** Bytes before and after the payload: length and CRC-16; STX, CRC-32 and ETX. */
const frameOverhead = { length: { head: 4, tail: 2 }, stx: { head: 1, tail: 5 } } as const;

/** The bytes before and after which a frame is cut into pieces beside its thirds: within the header, and within the CRC. */
const cutsAtEnds = { length: { first: 2, last: 1 }, stx: { first: 1, last: 3 } } as const;

/** The faults of a frame; the others are applied to an answer before it is framed. */
export type FrameFault = Exclude<WireFault, { readonly kind: "late" | "reserved-crc" }>;

/** The steps in place of writing a frame whose payload isn't empty. */
export function frameFaultSteps(fault: FrameFault, frame: Buffer): readonly TransportStep[] {
  switch (fault.kind) {
    case "no-answer":
      return [];
    case "after-next":
      return [{ hold: frame }];
    case "corrupt":
      return [{ bytes: corrupt(frame) }];
    case "truncated":
      return [{ bytes: frame.subarray(0, frame.length >> 1) }];
    case "wrong-length":
      return [{ bytes: wrongLength(frame) }];
    case "pieces":
      return pieces(frame, fault.ms);
    case "noise":
      return [{ bytes: noise }, { waitMs: afterNoiseMs }, { bytes: frame }];
    case "twice":
      // Written in one piece if there is no pause, so that nothing comes between.
      if (fault.ms === 0) return [{ bytes: Buffer.concat([frame, frame]) }];
      return [{ bytes: frame }, { waitMs: fault.ms }, { bytes: frame }];
    case "unplug":
      return [{ unplugMs: fault.ms }];
  }
}

const framingOf = (frame: Buffer): Framing => (frame[0] === 0x02 ? "stx" : "length");

/** Turns one bit of the payload's middle: text without 02 and 03 stays so. */
function corrupt(frame: Buffer): Buffer {
  const framing = framingOf(frame);
  const { head, tail } = frameOverhead[framing];
  const bytes = Buffer.from(frame);
  const payload = bytes.subarray(head, bytes.length - tail);
  for (let at = payload.length >> 1; at < payload.length; at++) {
    payload.writeUInt8(payload.readUInt8(at) ^ 1, at);
    // A CRC-16 sees every change of a single byte. So does a CRC-32, but with 03 written as 20 two of them may look the same.
    if (framing === "length" || !Buffer.concat(encodeStx([payload])).equals(bytes)) break;
  }
  return bytes;
}

function wrongLength(frame: Buffer): Buffer {
  if (framingOf(frame) === "stx") return frame.subarray(0, -1);
  const bytes = Buffer.from(frame);
  bytes.writeUInt32BE(bytes.readUInt32BE(0) + lengthTooMuchBytes, 0);
  return bytes;
}

function pieces(frame: Buffer, pauseMs: number): readonly TransportStep[] {
  const { first, last } = cutsAtEnds[framingOf(frame)];
  const third = Math.floor(frame.length / 3);
  const steps: TransportStep[] = [];
  let from = 0;
  for (const to of [first, third, 2 * third, frame.length - last, frame.length]) {
    // A frame of a few bytes has no thirds.
    if (to <= from) continue;
    if (from > 0) steps.push({ waitMs: pauseMs });
    steps.push({ bytes: frame.subarray(from, to) });
    from = to;
  }
  return steps;
}

/** White space that JSON allows between and after its values (RFC 8259, 2). */
const whiteSpace = Buffer.from(" \t\n\r");

/** Endings that are tried: about 30,000 are needed to find two certain bytes in a CRC-16, and none takes a microsecond. */
const endingsMax = 4 ** 9;

const endingBytes = 9;

/**
 * A reply's payload with JSON white space added, so that its CRC holds 02 and 03, or one of them if no tried ending gives both: a reader
 * that looks for these bytes without counting will take them for a frame's end or beginning.
 */
export function withReservedCrc(payload: Buffer, framing: Framing, kind: Crc16): Buffer {
  const sum = (bytes: Buffer, value: number) =>
    framing === "stx" ? crc32(bytes, 0, bytes.length, value) : crc16(kind, bytes, 0, bytes.length, value);
  const start = framing === "stx" ? sum(payload, 0) : sum(payload, sum(lengthField(payload.length + endingBytes), 0));
  const ending = Buffer.alloc(endingBytes);
  let best = { holds: 0, ending: Buffer.alloc(0) };
  for (let number = 0; number < endingsMax && best.holds < 2; number++) {
    for (let at = 0; at < endingBytes; at++) ending[at] = whiteSpace[(number >> (2 * at)) & 3] ?? 0x20;
    const holds = reservedIn(sum(ending, start), framing === "stx" ? 4 : 2);
    if (holds > best.holds) best = { holds, ending: Buffer.from(ending) };
  }
  return Buffer.concat([payload, best.ending]);
}

function lengthField(bytes: number): Buffer {
  const field = Buffer.alloc(frameOverhead.length.head);
  field.writeUInt32BE(bytes, 0);
  return field;
}

/** How many of 02 and 03 are among the bytes of a checksum. */
function reservedIn(sum: number, bytes: number): number {
  let found = 0;
  for (let at = 0; at < bytes; at++) {
    const byte = (sum >>> (8 * at)) & 0xff;
    if (byte === 0x02) found |= 1;
    if (byte === 0x03) found |= 2;
  }
  return found === 3 ? 2 : found === 0 ? 0 : 1;
}
