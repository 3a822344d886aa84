import { type Connection, type ConnectionHandler, OpenError, type OpenTransport } from "../../src/device/transport.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";

/** A device as a test wants it: plugged or not, taking what is written at once, a little, or not at all. */
export class FakeDevice {
  plugged = true;
  /** Bytes of each write that are taken over at once; the rest waits for `takeRest`. */
  takesBytes = Number.POSITIVE_INFINITY;
  /** Milliseconds from the write to the other end. */
  wireMs = 1;
  openings = 0;
  /** Every byte that was taken over, in order. */
  readonly written: Buffer[] = [];
  readonly #heard: (framing: Framing, text: string) => void;
  #opening: FakeConnection | undefined;

  constructor(heard: (framing: Framing, text: string) => void = () => {}) {
    this.#heard = heard;
  }

  readonly open: OpenTransport = async (handler) => {
    if (!this.plugged) throw new OpenError("there is no device: check the cable");
    this.openings++;
    this.#opening = new FakeConnection(this, handler, this.#heard);
    return this.#opening;
  };

  get isOpen(): boolean {
    return this.#opening?.isOpen ?? false;
  }

  /** Sends a whole, correct frame. */
  reply(framing: Framing, text: string): void {
    this.send(frame(framing, text));
  }

  /** Sends bytes as they are; lost when nobody has it open. */
  send(bytes: Buffer): void {
    this.#opening?.hear(bytes);
  }

  takeRest(): void {
    this.#opening?.takeRest();
  }

  unplug(reason = "the device was unplugged or hung up"): void {
    this.plugged = false;
    this.#opening?.lose(reason);
  }

  plug(): void {
    this.plugged = true;
  }
}

export function frame(framing: Framing, text: string): Buffer {
  return Buffer.concat(frameOf(framing, [Buffer.from(text)], "arc"));
}

class FakeConnection implements Connection {
  wroteBytes = 0;
  isOpen = true;
  readonly #device: FakeDevice;
  readonly #handler: ConnectionHandler;
  readonly #heard: (framing: Framing, text: string) => void;
  readonly #decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
  #rest: Buffer = Buffer.alloc(0);

  constructor(device: FakeDevice, handler: ConnectionHandler, heard: (framing: Framing, text: string) => void) {
    this.#device = device;
    this.#handler = handler;
    this.#heard = heard;
  }

  write(pieces: readonly Buffer[]): void {
    if (this.#rest.length > 0) throw new Error("two writes at a time");
    if (!this.isOpen) throw new Error("written after its end");
    const all = Buffer.concat(pieces);
    const taken = all.subarray(0, this.#device.takesBytes);
    this.wroteBytes = taken.length;
    this.#rest = all.subarray(taken.length);
    this.#travel(taken);
    if (this.#rest.length === 0) this.#handler.onWritten();
  }

  takeRest(): void {
    const rest = this.#rest;
    if (rest.length === 0) return;
    this.#rest = Buffer.alloc(0);
    this.wroteBytes += rest.length;
    this.#travel(rest);
    this.#handler.onWritten();
  }

  hear(bytes: Buffer): void {
    for (let from = 0; from < bytes.length && this.isOpen; ) {
      const space = this.#handler.space();
      const copied = bytes.copy(space, 0, from);
      from += copied;
      this.#handler.onBytes(copied);
    }
  }

  lose(reason: string): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#handler.onClosed(reason);
  }

  async close(): Promise<void> {
    this.isOpen = false;
  }

  #travel(bytes: Buffer): void {
    if (bytes.length === 0) return;
    const copy = Buffer.from(bytes);
    this.#device.written.push(copy);
    setTimeout(() => {
      // What hadn't left when the plug was pulled never arrives.
      if (!this.#device.plugged) return;
      for (const item of this.#decoder.push(copy)) {
        if (item.kind === "frame") this.#heard(item.framing, Buffer.concat(item.payload).toString());
      }
    }, this.#device.wireMs);
  }
}
