import { createConnection, type Socket } from "node:net";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";

/** A till at the end of a cable, whose adapter is plugged in for as long as it is there. It reads no faster than the wire is. */
export class CabledTill {
  readonly #socket: Socket;
  readonly #decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
  #dueMs = 0;
  #wanted = "";
  #answered: ((text: string | undefined) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param path The socket at the cable's other end. */
  constructor(path: string, msPerByte: number) {
    const callback = (n: number, bytes: Uint8Array): boolean => {
      this.#heard(Buffer.from(bytes.subarray(0, n)));
      const now = performance.now();
      this.#dueMs = Math.max(now, this.#dueMs) + n * msPerByte;
      setTimeout(() => this.#socket.resume(), this.#dueMs - now);
      return false;
    };
    this.#socket = createConnection({ path, onread: { buffer: Buffer.alloc(16), callback } });
    this.#socket.on("error", () => {});
  }

  /** Sends a bank request, as its contract frames it, and gives the first answer with this text; undefined if none came in time. */
  ask(payload: string, wanted: string, limitMs: number): Promise<string | undefined> {
    this.#wanted = wanted;
    // Whoever asks anew has given up what came in part.
    this.#decoder.reset();
    return new Promise((resolve) => {
      this.#answered = (text) => {
        clearTimeout(this.#timer);
        this.#answered = undefined;
        resolve(text);
      };
      this.givesUpIn(limitMs);
      this.#socket.write(Buffer.concat(frameOf("length", [Buffer.from(payload)], "arc")));
    });
  }

  /** Waits for the answer for so many milliseconds from now on. */
  givesUpIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#answered?.(undefined), ms);
  }

  /** XOFF: from now on it takes nothing. */
  stopFlow(): void {
    this.#socket.write(Buffer.of(0x13));
  }

  hangUp(): void {
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }

  #heard(bytes: Buffer): void {
    for (const item of this.#decoder.push(bytes)) {
      const text = item.kind === "frame" ? Buffer.concat(item.payload).toString() : "";
      if (text !== "" && text.includes(this.#wanted)) this.#answered?.(text);
    }
  }
}
