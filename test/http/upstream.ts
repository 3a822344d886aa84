import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";

/** What TLS needs. */
export type Identity = { readonly key: string; readonly cert: string };

/** A request as an upstream read it. */
export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Counts the connections from 1. */
  readonly connection: number;
}

export type Answer = (heard: Heard, response: ServerResponse) => void;

/** A real HTTP server that does what a test says, in place of a service. */
export class Upstream {
  readonly heard: Heard[] = [];
  answer: Answer;
  port = 0;
  readonly #server: Server;
  readonly #identity: Identity | undefined;
  readonly #numbers = new WeakMap<Socket, number>();
  #connections = 0;
  #waiting: (() => void)[] = [];

  private constructor(answer: Answer, identity: Identity | undefined) {
    this.answer = answer;
    this.#identity = identity;
    const take = (request: IncomingMessage, response: ServerResponse) => this.#take(request, response);
    this.#server = identity === undefined ? createServer(take) : createTlsServer(identity, take);
    const opened = identity === undefined ? "connection" : "secureConnection";
    this.#server.on(opened, (socket: Socket) => this.#numbers.set(socket, ++this.#connections));
  }

  static async start(answer: Answer = (_, response) => response.end("{}"), identity?: Identity): Promise<Upstream> {
    const upstream = new Upstream(answer, identity);
    await upstream.listen();
    return upstream;
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url: path = "", headers, socket } = request;
      const connection = this.#numbers.get(socket) ?? 0;
      const heard = { method, path, headers, body: Buffer.concat(pieces).toString(), connection };
      this.heard.push(heard);
      for (const wake of this.#waiting.splice(0)) wake();
      this.answer(heard, response);
    });
  }

  /** Listens, on the port that it had before where it was stopped. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve));
    // A server that listens on TCP has an address of this form.
    this.port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#identity === undefined ? "http" : "https"}://127.0.0.1:${this.port}`;
  }

  /** Resolves once so many requests were heard. */
  async hears(count: number): Promise<void> {
    while (this.heard.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}
