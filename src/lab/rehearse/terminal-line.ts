import { listenTcp, type TcpListener } from "../../device/tcp-port.ts";
import { OpenError, type OpenTransport } from "../../device/transport.ts";
import { Cable } from "./cable.ts";

/** The line of an emulated terminal: a port of this machine where it listens, and the cable that leads there from posline. */
export class TerminalLine {
  readonly #listening: TcpListener;
  readonly #cable: Cable;
  /** Rejects once the line is closed. */
  readonly #closed: Promise<never>;
  #end: () => void = () => {};

  /** @throws Error of the system if a port can't be had. */
  static async open(): Promise<TerminalLine> {
    const listening = await listenTcp({ host: "127.0.0.1", port: 0 });
    const cable = new Cable(Number(listening.path.split(":").at(-1)));
    await cable.plugIn();
    return new TerminalLine(listening, cable);
  }

  private constructor(listening: TcpListener, cable: Cable) {
    this.#listening = listening;
    this.#cable = cable;
    this.#closed = new Promise((_, reject) => {
      this.#end = () => reject(new OpenError("the rehearsal has closed it"));
    });
    this.#closed.catch(() => {});
  }

  /** Where posline finds the terminal. */
  get path(): string {
    return `tcp:127.0.0.1:${this.#cable.port}`;
  }

  /** Opens the terminal's end. What still waits for posline ends with the line: its time-out would hold up the process for 5 s. */
  get open(): OpenTransport {
    return (handler) => Promise.race([this.#listening.open(handler), this.#closed]);
  }

  /** Pulls the cable for so many milliseconds. */
  unplug(ms: number): void {
    this.#cable.pull(ms);
  }

  /** Cuts the connection; posline can dial at once. */
  cut(): void {
    this.#cable.cut();
  }

  /** Ends it for good, once nobody has the terminal's end open any more. */
  async close(): Promise<void> {
    this.#cable.close();
    this.#end();
    await this.#listening.close();
  }
}
