import type { Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { Pty } from "./pty.ts";
import { patienceMs } from "./until.ts";

/** Two ttys joined by a cable: what is written to one is read from the other. */
export function nullModem(one: string, other: string): { unplug(): void } {
  const near: Pty = new Pty((bytes) => void far.write(bytes)).linkAt(one);
  const far: Pty = new Pty((bytes) => void near.write(bytes)).linkAt(other);
  return {
    unplug: () => {
      near.unplug();
      far.unplug();
    },
  };
}

/** A till that has a serial port alone, at the other end of a pty: it asks in frames, and notes each frame that comes. */
export class Till {
  readonly answers: string[] = [];
  readonly #pty: Pty;
  readonly #decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: (1 << 24) - 1 });
  #waiting: (() => void)[] = [];
  #gaveUp = false;

  constructor(link: string) {
    this.#pty = new Pty((bytes) => {
      for (const item of this.#decoder.push(bytes)) {
        this.answers.push(item.kind === "frame" ? Buffer.concat(item.payload).toString() : `discarded: ${item.reason}`);
      }
      for (const wake of this.#waiting.splice(0)) wake();
    }).linkAt(link);
  }

  frame(framing: Framing, text: string): Buffer {
    return Buffer.concat(frameOf(framing, [Buffer.from(text)], "arc"));
  }

  send(bytes: Uint8Array): Promise<void> {
    return this.#pty.write(bytes);
  }

  /** Asks, and resolves with the next answer. */
  async ask(framing: Framing, text: string): Promise<string> {
    const count = this.answers.length;
    await this.send(this.frame(framing, text));
    return this.answer(count);
  }

  /**
   * The answer with this number, from 0, once it is there.
   * @throws Error when none comes for so long that none will.
   */
  async answer(index: number): Promise<string> {
    const limit = setTimeout(() => this.#giveUp(), patienceMs);
    try {
      for (;;) {
        const answer = this.answers[index];
        if (answer !== undefined) return answer;
        if (this.#gaveUp) throw new Error(`Waited for answer ${index}, and these came:\n${this.answers.join("\n")}`);
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    } finally {
      clearTimeout(limit);
    }
  }

  #giveUp(): void {
    this.#gaveUp = true;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  unplug(): void {
    this.#pty.unplug();
  }
}
