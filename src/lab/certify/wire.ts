import type { LineConfig } from "../../config/config.ts";
import { messageOf } from "../../core/error-code.ts";
import type { OpenTransport } from "../../device/transport.ts";
import { wholeOf } from "../../envelope/json.ts";
import { silenceMsMax } from "../../line/limits.ts";
import { ProbeLink, type ReceivedItem } from "../../line/probe-link.ts";
import type { Crc16 } from "../../wire/crc16.ts";
import type { Framing } from "../../wire/decoded.ts";
import { frameOf } from "../../wire/framing.ts";

/** The line to the terminal under test: bytes out, and all that comes back, told apart. */

/** What came after something was sent. */
export interface HeardBytes {
  /** Whole frames, in order, and when they came on `nowMs`'s scale. */
  readonly frames: readonly { readonly payload: Buffer; readonly atMs: number }[];
  /** Bytes that belong to no whole frame. */
  readonly strayBytes: number;
  /** The first bytes that came, in hexadecimal; empty if all belong to whole frames. */
  readonly strayHead: string;
  /** Bytes that came since the exchange before, when nothing was asked. */
  readonly unaskedBytes: number;
  /** A whole frame came whose checksum is wrong by either reading. */
  readonly isChecksumWrong: boolean;
  /** The field that each answer has can be read in the bytes: they came at the right speed. */
  readonly isReadable: boolean;
  /** What was sent came back. */
  readonly isEcho: boolean;
  /** The line took no bytes. */
  readonly isStuck: boolean;
}

/** That a frame may take, once it has begun, at least. */
const frameMs = 10_000;
/** Shown of what is no frame: too few for a card's number. */
const headBytes = 8;

export class Wire {
  /** The reading of CRC16 that the terminal has, as far as it is known. */
  crc16: Crc16;
  /** True if an answer came by this reading. */
  isProven = false;
  readonly #made: () => ProbeLink;
  readonly #open: OpenTransport;
  readonly #quietMs: number;
  #link: ProbeLink;
  /** Why the line could not be opened again. */
  #unopened: string | undefined;

  /** @param quietMs Without a byte, after which an answer is over: copies and stray bytes behind it have come by then. */
  constructor(config: LineConfig, framings: ReadonlySet<Framing>, open: OpenTransport, quietMs: number) {
    this.#made = () => new ProbeLink(config, framings, frameMs);
    this.#link = this.#made();
    this.#open = open;
    this.#quietMs = quietMs;
    this.crc16 = config.crc16;
  }

  /** Why the line was lost; undefined while it isn't. */
  get lost(): string | undefined {
    return this.#link.lost ?? this.#unopened;
  }

  /** Opens the line, anew if it is open. @throws OpenError saying why it can't be opened. */
  async open(): Promise<void> {
    await this.close();
    this.#link = this.#made();
    try {
      await this.#link.open(this.#open);
    } catch (error) {
      this.#unopened = messageOf(error);
      throw error;
    }
    this.#link.clearReceived();
  }

  async close(): Promise<void> {
    await this.#link.close();
  }

  /**
   * Sends bytes, and hears until a whole frame of this framing came and the line is quiet again, or for so long.
   * @param isSeveral True if another frame may come, which may have begun: it is heard to its end.
   */
  async send(bytes: Buffer, framing: Framing, waitMs: number, isSeveral: boolean): Promise<HeardBytes> {
    const link = this.#link;
    await link.waitForFrameEnd();
    const unaskedBytes = link.rawBytes;
    link.clearReceived();
    const isSent = (received: ReceivedItem) => this.#isSent(received, bytes);
    const isAnswer = (received: ReceivedItem) => isWhole(received, framing) && !isSent(received);
    const ending = await link.request([bytes], isAnswer, waitMs);
    await link.silence(this.#quietMs, silenceMsMax);
    if (isSeveral) await link.waitForFrameEnd();
    const echoes = link.received.filter(isSent);
    const frames = link.received.filter(isAnswer);
    const [first] = frames;
    if (first !== undefined && framing === "length") {
      this.crc16 = first.crc16;
      this.isProven = true;
    }
    const own = [...frames, ...echoes].reduce((sum, { item }) => sum + item.wireBytes, 0);
    const strayBytes = Math.max(0, link.rawBytes - own);
    const head = link.raw
      .subarray(0, headBytes)
      .toString("hex")
      .replaceAll(/(..)(?=.)/g, "$1 ");
    const isWrong = ({ item }: ReceivedItem) => item.kind === "discard" && item.checksum !== undefined;
    const heard: HeardBytes = {
      frames: frames.flatMap(({ item, atMs }) => (item.kind === "frame" ? [{ payload: wholeOf(item.payload), atMs }] : [])),
      strayBytes,
      strayHead: strayBytes === 0 ? "" : head,
      unaskedBytes,
      isChecksumWrong: frames.length === 0 && link.received.some(isWrong),
      isReadable: link.raw.includes('"status"'),
      isEcho: echoes.length > 0,
      isStuck: ending === "stuck",
    };
    link.clearReceived();
    return heard;
  }

  /** Hears frames that may still come, until nothing came for so long. */
  async listen(framing: Framing, ms: number): Promise<readonly Buffer[]> {
    const link = this.#link;
    await link.silence(ms, 2 * ms + silenceMsMax);
    const frames = link.received.filter((received) => isWhole(received, framing));
    link.clearReceived();
    return frames.flatMap(({ item }) => (item.kind === "frame" ? [wholeOf(item.payload)] : []));
  }

  #isSent({ item, crc16 }: ReceivedItem, bytes: Buffer): boolean {
    return item.kind === "frame" && Buffer.concat(frameOf(item.framing, item.payload, crc16)).equals(bytes);
  }
}

/** True of a frame with a content: zeros look like an empty one. */
function isWhole({ item }: ReceivedItem, framing: Framing): boolean {
  return item.kind === "frame" && item.framing === framing && item.payloadBytes > 0;
}

/** The same frame with a checksum that is wrong by either reading. */
export function withWrongChecksum(frame: Buffer, framing: Framing): Buffer {
  const hurt = Buffer.from(frame);
  // Behind an STX frame's checksum stands its end. Neither letter is a byte that a checksum may not have.
  const at = hurt.length - (framing === "stx" ? 2 : 1);
  hurt[at] = hurt[at] === 0x41 ? 0x42 : 0x41;
  return hurt;
}
