import type { IncomingMessage, ServerResponse } from "node:http";
import { Fault } from "../core/fault.ts";

/** Reads bodies within two limits: one body's bytes, and those of all that are held at one time. */
export class BodyReader {
  readonly #bodyBytesMax: number;
  readonly #heldBytesMax: number;
  #heldBytes = 0;

  constructor(bodyBytesMax: number, heldBytesMax: number) {
    this.#bodyBytesMax = bodyBytesMax;
    this.#heldBytesMax = heldBytesMax;
  }

  /**
   * Reads a request's body as the pieces in which it comes.
   * @param whole Called with the pieces and their bytes.
   * @param failed Called instead with a Fault `size` or `unavailable`; what still comes is dropped.
   * @throws Fault `size` when the announced length is too large already.
   */
  read(
    request: IncomingMessage,
    response: ServerResponse,
    whole: (pieces: readonly Buffer[], bytes: number) => void,
    failed: (fault: Fault) => void,
  ): void {
    if (Number(request.headers["content-length"] ?? 0) > this.#bodyBytesMax) throw this.#tooLarge();
    if (request.headers.expect !== undefined) response.writeContinue();
    const pieces: Buffer[] = [];
    let bytes = 0;
    let over = false;
    request.on("data", (piece: Buffer) => {
      if (over) return;
      bytes += piece.length;
      this.#heldBytes += piece.length;
      pieces.push(piece);
      if (bytes <= this.#bodyBytesMax && this.#heldBytes <= this.#heldBytesMax) return;
      over = true;
      pieces.length = 0;
      failed(bytes > this.#bodyBytesMax ? this.#tooLarge() : this.#tooMany());
    });
    request.on("end", () => {
      if (!over) whole(pieces, bytes);
    });
    // Held until it is answered: until then the body waits for its line.
    response.on("close", () => {
      this.#heldBytes -= bytes;
    });
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
