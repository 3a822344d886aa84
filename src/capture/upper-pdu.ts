import { type CapturedFrame, checksumVerdicts, frameOutcomes, frameRoles } from "./captured-frame.ts";
import { padded } from "./pcapng.ts";

/**
 * A frame as Wireshark's "exported PDU" (LINKTYPE_WIRESHARK_UPPER_PDU): tags that name the dissector and say in words what the frame
 * is, for those who have no plugin; then a small header of our own, and the payload. `scripts/wireshark/posline.lua` reads it.
 *
 * The payload stands there without framing and checksum: what was masked matches no checksum, and the real one would tell a masked
 * card number from all others. So its verdict stands in the header.
 */

const tags = { end: 0, dissectorName: 12, protocolColumn: 33, direction: 35 } as const;

/** The header's version: another one is read by another plugin. */
const headerVersion = 1;

/** Bytes of the header before its texts. */
const fixedBytes = 12;

const bits = { out: 1, masked: 2 } as const;

/** Bytes of one text in the header, whose length is one byte. */
const textBytesMax = 255;

const framings = [undefined, "length", "stx"] as const;

export function upperPduOf(frame: CapturedFrame): Buffer {
  const direction = Buffer.alloc(4);
  direction.writeUInt32BE(frame.direction === "out" ? 0 : 1);
  return Buffer.concat([
    tag(tags.dissectorName, "posline"),
    // A tag for the info column came with Wireshark 4.2, and older ones show this one as well.
    tag(tags.protocolColumn, `posline ${infoOf(frame)}`),
    tag(tags.direction, direction),
    tag(tags.end, ""),
    headerOf(frame),
    frame.payload,
  ]);
}

/** What the frame is, in one line. */
function infoOf({ role, service, route, outcome, reason, checksum, wireBytes, masked }: CapturedFrame): string {
  return [
    service,
    route,
    role,
    outcome === "answered" ? undefined : outcome,
    reason,
    checksum === "wrong" ? "checksum wrong" : undefined,
    wireBytes > 0 ? `${wireBytes} bytes` : undefined,
    masked ? "masked" : "NOT MASKED",
  ]
    .filter((word) => word !== undefined && word !== "")
    .join(" ");
}

function headerOf(frame: CapturedFrame): Buffer {
  const fixed = Buffer.alloc(fixedBytes);
  const texts = [frame.service, frame.route, frame.requestId, frame.reason, frame.sums].map(text);
  const headerBytes = texts.reduce((sum, { length }) => sum + length, fixedBytes);
  fixed[0] = headerVersion;
  fixed[1] = (frame.direction === "out" ? bits.out : 0) | (frame.masked ? bits.masked : 0);
  fixed[2] = frameRoles.indexOf(frame.role);
  fixed[3] = checksumVerdicts.indexOf(frame.checksum);
  fixed[4] = framings.indexOf(frame.framing);
  fixed[5] = frame.outcome === undefined ? 0 : frameOutcomes.indexOf(frame.outcome) + 1;
  fixed.writeUInt16BE(headerBytes, 6);
  fixed.writeUInt32BE(frame.wireBytes, 8);
  return Buffer.concat([fixed, ...texts]);
}

/** A text behind the byte of its length. */
function text(value = ""): Buffer {
  const bytes = Buffer.from(value).subarray(0, textBytesMax);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function tag(code: number, value: string | Buffer): Buffer {
  const bytes = padded(typeof value === "string" ? Buffer.from(value) : value);
  const head = Buffer.alloc(4);
  head.writeUInt16BE(code, 0);
  head.writeUInt16BE(bytes.length, 2);
  return Buffer.concat([head, bytes]);
}
