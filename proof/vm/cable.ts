import { createConnection, type Socket } from "node:net";
import { type Connection, type ConnectionHandler, OpenError, type OpenTransport } from "../../src/device/transport.ts";

/**
 * The cable between the emulated terminal and the box's USB adapter: a unix socket of QEMU's, which knows no speed, and so each
 * direction is paced here as on a wire.
 */

/** Milliseconds between two deliveries while bytes are on their way. */
const deliverEveryMs = 4;

/**
 * @param msPerByte Milliseconds that a byte takes.
 * @param pulled Pulls it at once, whatever is on its way.
 */
export function cable(path: string, msPerByte: number, pulled: AbortSignal): OpenTransport {
  return async (handler) => {
    const socket = createConnection(path);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", (error) => reject(new OpenError(`the box is off: ${error.message}`)));
    });
    pulled.addEventListener("abort", () => socket.destroy());
    return new CableOpening(socket, handler, msPerByte);
  };
}

class CableOpening implements Connection {
  readonly #socket: Socket;
  readonly #incoming: Paced;
  readonly #outgoing: Paced;
  #handler: ConnectionHandler | undefined;
  #wroteBytes = 0;

  constructor(socket: Socket, handler: ConnectionHandler, msPerByte: number) {
    this.#socket = socket;
    this.#handler = handler;
    this.#incoming = new Paced(msPerByte, (bytes) => this.#heard(bytes));
    this.#outgoing = new Paced(msPerByte, (bytes, isLast) => {
      socket.write(bytes);
      this.#wroteBytes += bytes.length;
      if (isLast) this.#handler?.onWritten();
    });
    socket.on("data", (bytes) => this.#incoming.push(bytes));
    socket.on("error", () => {});
    socket.on("close", () => {
      const lost = this.#handler;
      this.#end();
      lost?.onClosed("the box was switched off");
    });
  }

  get wroteBytes(): number {
    return this.#wroteBytes;
  }

  write(pieces: readonly Buffer[]): void {
    this.#wroteBytes = 0;
    this.#outgoing.push(Buffer.concat(pieces));
  }

  async close(): Promise<void> {
    this.#end();
    this.#socket.destroy();
  }

  #heard(bytes: Buffer): void {
    for (let from = 0; from < bytes.length && this.#handler !== undefined; ) {
      const copied = bytes.copy(this.#handler.space(), 0, from);
      from += copied;
      this.#handler.onBytes(copied);
    }
  }

  #end(): void {
    this.#handler = undefined;
    this.#incoming.clear();
    this.#outgoing.clear();
  }
}

/** Hands bytes on no faster than a wire would. */
class Paced {
  readonly #msPerByte: number;
  readonly #give: (bytes: Buffer, isLast: boolean) => void;
  #left = Buffer.alloc(0);
  #timer: NodeJS.Timeout | undefined;
  /** Up to when what was handed on has taken its time. */
  #paidMs = 0;

  constructor(msPerByte: number, give: (bytes: Buffer, isLast: boolean) => void) {
    this.#msPerByte = msPerByte;
    this.#give = give;
  }

  push(bytes: Buffer): void {
    if (this.#left.length === 0) this.#paidMs = Math.max(this.#paidMs, performance.now());
    this.#left = Buffer.concat([this.#left, bytes]);
    this.#timer ??= setTimeout(() => this.#work(), deliverEveryMs);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#left = Buffer.alloc(0);
  }

  #work(): void {
    this.#timer = undefined;
    const due = Math.floor((performance.now() - this.#paidMs) / this.#msPerByte);
    const bytes = this.#left.subarray(0, due);
    this.#paidMs += bytes.length * this.#msPerByte;
    this.#left = this.#left.subarray(bytes.length);
    const isLast = this.#left.length === 0;
    if (!isLast) this.#timer = setTimeout(() => this.#work(), deliverEveryMs);
    if (bytes.length > 0) this.#give(bytes, isLast);
  }
}
