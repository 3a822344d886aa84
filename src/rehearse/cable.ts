import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** Where the cable ends, on this machine. */
const here = "127.0.0.1";

/** The cable between posline and the terminal that is played: a port that leads to the terminal's, and can be pulled. */
export class Cable {
  readonly #terminalPort: number;
  #server: Server | undefined;
  #port = 0;
  #sockets = new Set<Socket>();
  #back: NodeJS.Timeout | undefined;

  constructor(terminalPort: number) {
    this.#terminalPort = terminalPort;
  }

  /** The path of the line for posline. */
  get path(): string {
    return `tcp:${here}:${this.#port}`;
  }

  /** @throws Error of the system if the port can't be had. */
  async plugIn(): Promise<void> {
    const server = createServer((near) => {
      const far = connect({ host: here, port: this.#terminalPort, noDelay: true });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one);
        one.setNoDelay(true);
        one.on("error", () => {});
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
    this.#server = server;
    server.on("error", () => {});
    server.listen({ host: here, port: this.#port });
    await once(server, "listening");
    const address = server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  /** Pulls the cable, and puts it back after so many milliseconds. */
  pull(ms: number): void {
    this.#cut();
    clearTimeout(this.#back);
    this.#back = setTimeout(() => void this.plugIn().catch(() => {}), ms);
  }

  close(): void {
    clearTimeout(this.#back);
    this.#cut();
  }

  #cut(): void {
    this.#server?.close();
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }
}
