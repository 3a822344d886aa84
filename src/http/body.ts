import type { IncomingMessage } from "node:http";
import { Fault } from "../core/fault.ts";
import { bodyBytesFree } from "./limits.ts";

/** A body while it is read and held: until its request is answered it waits for its line. */
export interface Held {
  /** Bytes that came, for the log. */
  requestBytes: number;
  /** Bytes of them that count as held; 0 once they were released. */
  heldBytes: number;
  /** False until the body is there to its end. */
  whole: boolean;
  /** True once nothing more of the request is wanted: it was refused, or its connection is gone. */
  over: boolean;
}

/** Reads bodies within two limits: one body's bytes, and those of all that are held at one time. */
export class BodyReader {
  readonly #bodyBytesMax: number;
  readonly #heldBytesMax: number;
  #heldBytes = 0;

  constructor(bodyBytesMax: number, heldBytesMax: number) {
    this.#bodyBytesMax = bodyBytesMax;
    this.#heldBytesMax = heldBytesMax;
  }

  /** Bytes that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Reads a request's body as the pieces in which it comes. Who asked for it calls `release` when it is needed no more, once
   * per request in whatever way that ends.
   * @param whole Called with the pieces.
   * @param failed Called instead with a Fault `size` or `unavailable`; what still comes is dropped.
   * @throws Fault `size` when the announced length is too large already.
   */
  read(request: IncomingMessage, held: Held, whole: (pieces: readonly Buffer[]) => void, failed: (fault: Fault) => void): void {
    if (Number(request.headers["content-length"] ?? 0) > this.#bodyBytesMax) throw this.#tooLarge();
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => {
      if (held.over) return;
      held.requestBytes += piece.length;
      held.heldBytes += piece.length;
      this.#heldBytes += piece.length;
      pieces.push(piece);
      const tooLarge = held.requestBytes > this.#bodyBytesMax;
      if (!tooLarge && (this.#heldBytes <= this.#heldBytesMax || held.requestBytes <= bodyBytesFree)) return;
      pieces.length = 0;
      this.release(held);
      failed(tooLarge ? this.#tooLarge() : this.#tooMany());
    });
    request.on("end", () => {
      if (held.over) return;
      held.whole = true;
      whole(pieces);
    });
  }

  /** Gives back what a request held, and takes nothing more of it. */
  release(held: Held): void {
    this.#heldBytes -= held.heldBytes;
    held.heldBytes = 0;
    held.over = true;
  }

  #tooLarge(): Fault {
    return new Fault(
      "size",
      `Cannot accept the request: its body is larger than ${this.#bodyBytesMax} bytes, which is the limit`,
    );
  }

  #tooMany(): Fault {
    const state = `bodies of other requests take ${this.#heldBytesMax} bytes, which is the limit`;
    return new Fault("unavailable", `Cannot accept the request: ${state}: nothing was sent, it is safe to send again`, {
      retryAfterS: 1,
    });
  }
}
