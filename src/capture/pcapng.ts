/**
 * Writes pcapng (IETF draft-ietf-opsawg-pcapng): a section, an interface for each line, a block for each frame. Small enough to be
 * written by hand, and no package writes it as a stream.
 */

/** LINKTYPE_WIRESHARK_UPPER_PDU: a frame whose dissector is named in front of it. */
export const upperPdu = 252;

/** LINKTYPE_RTAC_SERIAL: bytes of a serial line, with the moment and the direction of each piece. */
export const rtacSerial = 250;

const blocks = { section: 0x0a0d0d0a, interface: 1, packet: 6 } as const;

/** Microseconds: as fine as the clock of the line engine. */
const timeResolution = 6;

/** Bytes of a packet that are written: Wireshark takes a file for damaged at the first packet that has more, and shows none behind it. */
const packetBytesMax = 262_144;

/** Direction bits of a packet's flags. */
const flags = { in: 1, out: 2 } as const;

export interface Packet {
  /** What the interface is called: a line, or a device. */
  readonly line: string;
  /** Milliseconds since 1970, with a fraction. */
  readonly timeMs: number;
  readonly direction: "in" | "out";
  readonly bytes: Buffer;
}

export class PcapngWriter {
  readonly #linkType: number;
  readonly #program: string;
  readonly #interfaces = new Map<string, number>();

  /** @param program What wrote the file, with its version. */
  constructor(linkType: typeof upperPdu | typeof rtacSerial, program: string) {
    this.#linkType = linkType;
    this.#program = program;
  }

  /** The section's head, with which a file begins. */
  start(): Buffer {
    const head = Buffer.alloc(16);
    head.writeUInt32LE(0x1a2b3c4d, 0);
    head.writeUInt16LE(1, 4);
    // Its length isn't known beforehand.
    head.writeBigInt64LE(-1n, 8);
    return block(blocks.section, head, [[4, Buffer.from(this.#program)]]);
  }

  /** A frame, behind its interface if it is the first there. Of one that is too long its beginning is written, and its length. */
  packet({ line, timeMs, direction, bytes }: Packet): Buffer {
    const known = this.#interfaces.get(line);
    const id = known ?? this.#interfaces.size;
    this.#interfaces.set(line, id);
    const time = BigInt(Math.round(timeMs * 1_000));
    const kept = bytes.subarray(0, packetBytesMax);
    const head = Buffer.alloc(20);
    head.writeUInt32LE(id, 0);
    head.writeUInt32LE(Number(time >> 32n), 4);
    head.writeUInt32LE(Number(time & 0xffff_ffffn), 8);
    head.writeUInt32LE(kept.length, 12);
    head.writeUInt32LE(bytes.length, 16);
    const direct = Buffer.alloc(4);
    direct.writeUInt32LE(flags[direction]);
    const packet = block(blocks.packet, Buffer.concat([head, padded(kept)]), [[2, direct]]);
    return known === undefined ? Buffer.concat([this.#interface(line), packet]) : packet;
  }

  #interface(line: string): Buffer {
    const head = Buffer.alloc(8);
    head.writeUInt16LE(this.#linkType, 0);
    return block(blocks.interface, head, [
      [2, Buffer.from(line)],
      [9, Buffer.from([timeResolution])],
    ]);
  }
}

type Option = readonly [code: number, value: Buffer];

function block(type: number, body: Buffer, options: readonly Option[]): Buffer {
  const tail = options.map(([code, value]) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(code, 0);
    head.writeUInt16LE(value.length, 2);
    return Buffer.concat([head, padded(value)]);
  });
  const length = 8 + body.length + tail.reduce((sum, { length: bytes }) => sum + bytes, 0) + 4 + 4;
  const head = Buffer.alloc(8);
  head.writeUInt32LE(type, 0);
  head.writeUInt32LE(length, 4);
  return Buffer.concat([head, body, ...tail, Buffer.alloc(4), head.subarray(4)]);
}

/** Everything stands at multiples of four bytes. */
export function padded(bytes: Buffer): Buffer {
  return bytes.length % 4 === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(4 - (bytes.length % 4))]);
}
