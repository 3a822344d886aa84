import type { IncomingMessage } from "node:http";
import { Fault, nothingSent } from "../core/fault.ts";
import { GatheredPieces } from "../core/pieces.ts";
import { bodyBytesFree } from "./limits.ts";

/** The body of a request while it is read, and then kept until the request is answered. */
export interface BodyState {
  /** Bytes received, for the log. */
  requestBytes: number;
  /** How many of these bytes count as held; 0 once they were released. */
  heldBytes: number;
  /** True once no more of the body is wanted: the request was refused or answered, or its connection is gone. */
  bodyDone: boolean;
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

  /**
   * Reads a request's body as the pieces in which it comes. The caller calls `release` once the body is no longer needed, once per request
   * however that ends.
   * @param complete Called with the pieces.
   * @param failed Called instead with a Fault `size` or `unavailable`; bytes that still come are dropped.
   * @throws Fault `size` if the announced length is too large already.
   */
  read(
    request: IncomingMessage,
    state: BodyState,
    complete: (pieces: readonly Buffer[]) => void,
    failed: (fault: Fault) => void,
  ): void {
    if (Number(request.headers["content-length"] ?? 0) > this.#bodyBytesMax) throw this.#tooLarge();
    let pieces = new GatheredPieces();
    request.on("data", (piece: Buffer) => {
      if (state.bodyDone) return;
      state.requestBytes += piece.length;
      state.heldBytes += piece.length;
      this.#heldBytes += piece.length;
      pieces.add(piece);
      const tooLarge = state.requestBytes > this.#bodyBytesMax;
      if (!tooLarge && (this.#heldBytes <= this.#heldBytesMax || state.requestBytes <= bodyBytesFree)) return;
      pieces = new GatheredPieces();
      this.release(state);
      failed(tooLarge ? this.#tooLarge() : this.#tooMany());
    });
    request.on("end", () => {
      if (state.bodyDone) return;
      complete(pieces.all);
    });
  }

  /** Releases the bytes that a body held, and drops the rest of it. */
  release(state: BodyState): void {
    this.#heldBytes -= state.heldBytes;
    state.heldBytes = 0;
    state.bodyDone = true;
  }

  #tooLarge(): Fault {
    return new Fault(
      "size",
      `Cannot accept the request: its body is larger than ${this.#bodyBytesMax} bytes, which is the limit`,
    );
  }

  #tooMany(): Fault {
    const state = `the bodies of other requests already take ${this.#heldBytesMax} bytes, which is the limit`;
    return new Fault("unavailable", `Cannot accept the request: ${state}. ${nothingSent}`, { reason: "too-many-requests" });
  }
}
