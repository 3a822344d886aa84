import type { Cause } from "../../src/device/open-errors.ts";
import { type Connection, type ConnectionHandler, OpenError, type OpenTransport } from "../../src/device/transport.ts";
import type { Crc16 } from "../../src/wire/crc16.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";

/** The other end of a line in memory: hears whole writes, and says what a test wants, when it wants. */
export class FakeLine {
  /** Every write, in order. */
  readonly written: Buffer[] = [];
  /** The payloads of the frames that this end takes for whole. */
  readonly asked: string[] = [];
  openings = 0;
  isOpen = false;
  /** False when output is stopped. */
  takes = true;
  refuses: Cause | undefined;
  /** Called with each frame that is whole by this end's reading of CRC16. */
  onAsked: (text: string, framing: Framing) => void = () => {};
  /** Called with each write, whatever is in it. */
  onWrite: (bytes: Buffer) => void = () => {};
  /** Called once it is open. */
  onOpen: () => void = () => {};
  readonly #crc16: Crc16;
  #handler: ConnectionHandler | undefined;

  constructor(crc16: Crc16 = "arc") {
    this.#crc16 = crc16;
  }

  readonly open: OpenTransport = async (handler) => {
    if (this.refuses !== undefined) throw new OpenError(this.refuses);
    this.openings++;
    this.isOpen = true;
    this.#handler = handler;
    setTimeout(() => this.onOpen(), 1);
    return this.#opening(handler);
  };

  #opening(handler: ConnectionHandler): Connection {
    const write = (pieces: readonly Buffer[]) => {
      const bytes = Buffer.concat(pieces);
      this.written.push(bytes);
      if (!this.takes) return;
      handler.onWritten();
      this.onWrite(bytes);
      const decoder = createDecoder({ stx: true, length: true, crc16: this.#crc16, payloadBytesMax: 1 << 20 });
      for (const item of decoder.push(bytes)) {
        if (item.kind !== "frame") continue;
        const text = Buffer.concat(item.payload).toString();
        this.asked.push(text);
        this.onAsked(text, item.framing);
      }
    };
    const close = async () => {
      this.isOpen = false;
    };
    return { write, wroteBytes: 0, close };
  }

  /** Sends bytes after so many milliseconds; lost when nobody has it open. */
  send(bytes: Buffer, afterMs = 5): void {
    setTimeout(() => {
      if (!this.isOpen || this.#handler === undefined) return;
      for (let from = 0; from < bytes.length; ) {
        const copied = bytes.copy(this.#handler.space(), 0, from);
        from += copied;
        this.#handler.onBytes(copied);
      }
    }, afterMs);
  }

  /** Sends three bytes that are no frame every 20 ms, while it is open. */
  readonly babble = (): void => {
    if (!this.isOpen) return;
    this.send(Buffer.from([0, 0, 1]), 0);
    setTimeout(this.babble, 20);
  };

  reply(framing: Framing, text: string, afterMs = 5): void {
    this.send(Buffer.concat(frameOf(framing, [Buffer.from(text)], this.#crc16)), afterMs);
  }

  lose(reason: string, afterMs: number): void {
    setTimeout(() => this.isOpen && this.#handler?.onClosed(reason), afterMs);
  }
}
