import { type Connection, type ConnectionHandler, OpenError, type OpenTransport } from "../../src/device/transport.ts";
import { Pty } from "./pty.ts";

/**
 * A device in this process that can be unplugged: posline opens the pty by its link, and an emulated terminal has the other end, as its
 * own port. It is plugged in again by itself.
 */
export class UnpluggableTty {
  readonly #link: string;
  #pty: Pty | undefined;
  #handler: ConnectionHandler | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(link: string) {
    this.#link = link;
    this.#plug();
  }

  /** Opens the terminal's end. */
  readonly open: OpenTransport = async (handler) => {
    const pty = this.#pty;
    if (pty === undefined) throw new OpenError("it is unplugged");
    this.#handler = handler;
    const isOpen = () => this.#handler === handler;
    const connection: Connection = {
      wroteBytes: 0,
      write: (pieces) => {
        void pty.write(Buffer.concat(pieces)).then(() => isOpen() && handler.onWritten());
      },
      close: async () => {
        if (isOpen()) this.#handler = undefined;
      },
    };
    return connection;
  };

  /** Pulls it, and plugs it in again after so many milliseconds. */
  unplug(ms: number): void {
    const handler = this.#handler;
    this.close();
    this.#again = setTimeout(() => this.#plug(), ms);
    handler?.onClosed("it was unplugged");
  }

  close(): void {
    clearTimeout(this.#again);
    this.#handler = undefined;
    this.#pty?.unplug();
    this.#pty = undefined;
  }

  #plug(): void {
    this.#pty = new Pty((bytes) => this.#heard(bytes)).linkAt(this.#link);
  }

  #heard(bytes: Buffer): void {
    for (let from = 0; from < bytes.length; ) {
      const handler = this.#handler;
      const space = handler?.space();
      if (handler === undefined || space === undefined) return;
      const copied = bytes.copy(space, 0, from);
      from += copied;
      handler.onBytes(copied);
    }
  }
}
