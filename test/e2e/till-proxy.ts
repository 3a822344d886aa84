import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Mishap } from "./till-schedule.ts";

/** What stands between till and bridge, and does to the next sale's call what was planned. Every call after it passes. */

export type WayMishap = Extract<
  Mishap,
  { readonly kind: "refused" | "cut-request" | "cut-waiting" | "cut-answer" | "proxy-504" | "proxy-503" }
>;

const ownAnswer = (status: string) =>
  `HTTP/1.1 ${status}\r\nContent-Length: 0\r\nRetry-After: 1\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n`;

export class TillProxy {
  readonly port: number;
  readonly #bridgePort: number;
  /** Calls that came by, without a browser's preflights. */
  calls = 0;
  /** Called when a call comes by. */
  onCall: () => void = () => {};
  #next: WayMishap[] = [];
  #server: Server | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(port: number, bridgePort: number) {
    this.port = port;
    this.#bridgePort = bridgePort;
  }

  async listen(): Promise<void> {
    this.#server = createServer((till) => this.#connected(till));
    this.#server.listen(this.port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  /** The next call meets it; several meet one call each. */
  plan(mishap: WayMishap): void {
    if (mishap.kind !== "refused") {
      this.#next.push(mishap);
      return;
    }
    this.close();
    this.#timer = setTimeout(() => void this.listen(), mishap.ms);
  }

  /** What was planned and met no call is forgotten. */
  reset(): void {
    this.#next = [];
    this.onCall = () => {};
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #connected(till: Socket): void {
    const bridge = connect(this.#bridgePort, "127.0.0.1");
    let mishap: WayMishap | undefined;
    const cut = () => {
      till.destroy();
      bridge.destroy();
    };
    for (const socket of [till, bridge]) {
      this.#sockets.add(socket);
      socket.on("error", cut);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        cut();
      });
    }
    till.on("data", (bytes) => {
      if (bytes.subarray(0, 5).toString() === "POST ") {
        mishap = this.#next.shift();
        this.calls++;
        this.onCall();
      }
      if (mishap?.kind === "proxy-503") till.end(ownAnswer("503 Service Unavailable"));
      else if (mishap?.kind === "cut-request") bridge.write(bytes.subarray(0, mishap.bytes), cut);
      else bridge.write(bytes);
      if (mishap?.kind === "cut-waiting") setTimeout(cut, mishap.ms);
      if (mishap?.kind === "proxy-504") setTimeout(() => till.end(ownAnswer("504 Gateway Timeout")), mishap.ms);
    });
    bridge.on("data", (bytes) => {
      if (mishap?.kind === "cut-answer") till.write(bytes.subarray(0, mishap.bytes), cut);
      else if (!till.writableEnded) till.write(bytes);
    });
  }
}
