import { memoryTransport } from "../../src/device/memory-transport.ts";
import type { Connection, OpenTransport } from "../../src/device/transport.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frame } from "../support/fake-device.ts";
import { type Asked, probeReply } from "../support/terminal.ts";

/** The conduits that the exchange suite runs over: each with a scripted terminal at its far end. */

/** What a test may do with a terminal, whatever it is made of. */
export interface Wire {
  readonly asked: readonly Asked[];
  /** The requests that weren't probes. */
  readonly calls: readonly Asked[];
  reply(framing: Framing, text: string): Promise<void>;
  send(bytes: Uint8Array): Promise<void>;
  frame(framing: Framing, text: string): Buffer;
}

export type Script = (asked: Asked, wire: Wire) => void | Promise<void>;

export interface Bench {
  readonly open: OpenTransport;
  readonly wire: Wire;
  script: Script;
  /** Ends it for good. */
  dispose(): Promise<void>;
}

/** Answers probes, and gives all else to `script`. */
function live(asked: Asked, wire: Wire, script: Script): void | Promise<void> {
  const text = probeReply(asked);
  return text === undefined ? script(asked, wire) : wire.reply(asked.framing, text);
}

class MemoryTerminal implements Wire {
  readonly asked: Asked[] = [];
  readonly near: OpenTransport;
  readonly #opening: Promise<Connection>;
  #turn: Promise<void> = Promise.resolve();

  constructor(script: Script) {
    const decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
    const { near, far } = memoryTransport(0.01);
    this.near = near;
    this.#opening = far({
      space: () => decoder.space(),
      onBytes: (n) => {
        for (const item of decoder.advance(n)) {
          if (item.kind === "frame") this.#take(item.framing, Buffer.concat(item.payload).toString(), script);
        }
      },
      onWritten: () => {},
      onClosed: () => {},
    });
  }

  get calls(): readonly Asked[] {
    return this.asked.filter((asked) => probeReply(asked) === undefined);
  }

  #take(framing: Framing, text: string, script: Script): void {
    const asked = { framing, text, number: this.asked.length + 1 };
    this.asked.push(asked);
    this.#turn = this.#turn.then(() => script(asked, this));
  }

  frame(framing: Framing, text: string): Buffer {
    return frame(framing, text);
  }

  reply(framing: Framing, text: string): Promise<void> {
    return this.send(frame(framing, text));
  }

  async send(bytes: Uint8Array): Promise<void> {
    (await this.#opening).write([Buffer.from(bytes)]);
  }

  async close(): Promise<void> {
    await (await this.#opening).close();
  }
}

export function memoryBench(): Bench {
  let script: Script = () => {};
  const wire = new MemoryTerminal((asked, terminal) => live(asked, terminal, script));
  return {
    open: wire.near,
    wire,
    get script() {
      return script;
    },
    set script(next: Script) {
      script = next;
    },
    dispose: () => wire.close(),
  };
}
