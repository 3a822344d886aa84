import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { nowMs } from "../../core/clock.ts";

/** Where a cable begins and ends: on this machine. */
const here = "127.0.0.1";

/** Milliseconds until a port is tried again that somebody else has for the moment. */
const againMs = 50;

/** A way to a port of this machine, which can be pulled: between till and posline, and between posline and the terminal. */
export class Cable {
  #server: Server | undefined;
  #port: number;
  #target: number;
  readonly #sockets = new Set<Socket>();
  #back: NodeJS.Timeout | undefined;
  #goneUntilMs = 0;

  /**
   * @param target The port that it leads to.
   * @param port Where it begins; 0 is any.
   */
  constructor(target: number, port = 0) {
    this.#target = target;
    this.#port = port;
  }

  /** Where it begins. */
  get port(): number {
    return this.#port;
  }

  /** Leads to another port from now on. */
  lead(target: number): void {
    this.#target = target;
  }

  /** @throws Error of the system if the port can't be had. */
  async plugIn(): Promise<void> {
    const server = createServer((near) => {
      if (nowMs() < this.#goneUntilMs) return void near.on("error", () => {}).destroy();
      const far = connect({ host: here, port: this.#target });
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
    server.listen({ host: here, port: this.#port });
    await once(server, "listening");
    server.on("error", () => {});
    const address = server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  /** Pulls it, and puts it back after so many milliseconds, or as soon as the port is free then. */
  pull(ms: number): void {
    this.close();
    const back = () => {
      this.#back = setTimeout(() => void this.plugIn().catch(back), againMs);
    };
    this.#back = setTimeout(() => void this.plugIn().catch(back), ms);
  }

  /** Cuts what goes over it now, and what comes for so many milliseconds: its port stays its own. */
  cut(ms = 0): void {
    this.#goneUntilMs = nowMs() + ms;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    clearTimeout(this.#back);
    this.#server?.close();
    this.#server = undefined;
    this.cut();
  }
}
