import { join } from "node:path";
import type { LineConfig } from "../../src/config/config.ts";
import { memoryTransport } from "../../src/device/memory-transport.ts";
import { openerOf } from "../../src/device/opener.ts";
import { serialPort } from "../../src/device/serial-port.ts";
import { listenTcp } from "../../src/device/tcp-port.ts";
import type { Connection, OpenTransport } from "../../src/device/transport.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { frame } from "../support/fake-device.ts";
import { type RelayProgram, startRelay } from "../support/relay.ts";
import { type Asked, probeReply, Terminal } from "../support/terminal.ts";
import { configOf } from "./lines.ts";

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

/** A terminal at the far end of any transport, which it opens once. */
class TerminalOver implements Wire {
  readonly asked: Asked[] = [];
  readonly #opening: Promise<Connection>;
  #turn: Promise<void> = Promise.resolve();

  constructor(far: OpenTransport, script: Script) {
    const decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
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

function benchOver(near: OpenTransport, far: OpenTransport, closeFar: (wire: TerminalOver) => Promise<void>): Bench {
  let script: Script = () => {};
  const wire = new TerminalOver(far, (asked, terminal) => live(asked, terminal, script));
  return {
    open: near,
    wire,
    get script() {
      return script;
    },
    set script(next: Script) {
      script = next;
    },
    dispose: () => closeFar(wire),
  };
}

export function memoryBench(): Bench {
  const { near, far } = memoryTransport(0.01);
  return benchOver(near, far, (wire) => wire.close());
}

/** The terminal listens, and the line dials it. */
export function tcpBench(): Bench {
  const listening = listenTcp({ host: "::1", port: 0 });
  const near: OpenTransport = async (handler) => openerOf(configOf({ path: (await listening).path }))(handler);
  const far: OpenTransport = async (handler) => (await listening).open(handler);
  // What nobody has dialled yet is open for ever.
  return benchOver(near, far, async (wire) => {
    if (!(await listening).isAlone) await wire.close();
    await (await listening).close();
  });
}

/** How a line reaches the terminal on a pty, and what ends with it. */
type Way = { readonly open: OpenTransport; readonly end?: () => void };

export function ptyBench(settings: Partial<LineConfig> = {}): Bench {
  return benchOnPty((path, lockFolder) => ({ open: serialPort(configOf({ path, ...settings }), { lockFolder }) }));
}

function benchOnPty(wayTo: (link: string, folder: string) => Way): Bench {
  let script: Script = () => {};
  const folder = scratchFolder();
  const link = join(folder.path, "tty");
  const terminal = new Terminal(link, (asked, wire) => live(asked, wire, script));
  const { open, end = () => {} } = wayTo(link, folder.path);
  return {
    open,
    wire: terminal,
    get script() {
      return script;
    },
    set script(next: Script) {
      script = next;
    },
    dispose: async () => {
      end();
      terminal.unplug();
    },
  };
}

/** A real tty, offered over TCP by another program, which the line dials. */
export function relayBench(program: RelayProgram): Bench {
  return benchOnPty((tty) => {
    const started = startRelay(program, tty);
    return {
      open: async (handler) => openerOf(configOf({ path: (await started).path }))(handler),
      end: () => void started.then((relay) => relay.end()),
    };
  });
}
