import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { Connections, type Entered } from "./connections.ts";
import * as limits from "./limits.ts";

/**
 * An HTTP server within the limits of this room, given to whoever answers: how large headers may be, how long a request may take
 * to come, how many connections there may be, and what becomes of a broken one. What is asked, and who may ask, it doesn't know.
 */

/** Where to listen: at an address, or with the handle of a socket that was opened elsewhere, which its holder hands over. */
export type ListenOn = { readonly host: string; readonly port: number } | { readonly holder: Socket };

/** How long a request may take to come. */
export interface Patience {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly checkConnectionsMs: number;
}

/** Whoever answers. Each request is told to `connections` when it came and when its answer has gone out. */
export interface Answering<V extends Entered> {
  /** @param continueAsked The body follows once `writeContinue` was called. */
  serve(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void;
  /** A request's connection closed before its answer went out. */
  left(visit: V): void;
  /**
   * What came is no HTTP, or too slow or too large for it, and nothing that is under way could be given its answer: answers it
   * on the bare connection, and ends it.
   * @param visit The request that was cut short by it; undefined when none was.
   */
  broken(socket: Socket, errorCode: string | undefined, visit: V | undefined): void;
  /** Something failed that should not: a bug. */
  error(error: unknown): void;
}

export class BoundedServer<V extends Entered> {
  readonly connections = new Connections<V>();
  readonly #answering: Answering<V>;
  readonly #server: Server;

  /** @param patience Where not as `limits` says: a test can't wait that long. */
  constructor(answering: Answering<V>, patience: Patience = limits) {
    this.#answering = answering;
    this.#server = createServer(
      {
        maxHeaderSize: limits.headersBytesMax,
        headersTimeout: patience.headersMs,
        requestTimeout: patience.requestMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: patience.checkConnectionsMs,
        noDelay: true,
        // A request without Host is answered by the guard, in its own words; two of them become one that is no name.
        requireHostHeader: false,
        joinDuplicateHeaders: true,
      },
      (request, response) => this.#serve(request, response, false),
    );
    this.#server.maxConnections = limits.connectionsMax;
    this.#server.on("connection", (socket: Socket) => this.connections.opened(socket, (visit) => answering.left(visit)));
    this.#server.on("checkContinue", (request, response) => this.#serve(request, response, true));
    this.#server.on("checkExpectation", (request, response) => this.#serve(request, response, false));
    // A server that isn't given other streams has sockets.
    this.#server.on("clientError", (error, socket) => this.#broken(error, socket as Socket));
  }

  /**
   * Begins to listen.
   * @throws Error when the address can't be had, with the system's code.
   */
  listen(on: ListenOn): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      const listening = () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => this.#answering.error(error));
        // A server that listens on TCP has an address of this form.
        resolve(this.#server.address() as AddressInfo);
      };
      this.#server.once("error", reject);
      if ("holder" in on) this.#server.listen(on.holder, limits.backlogMax, listening);
      else this.#server.listen({ host: on.host, port: on.port, backlog: limits.backlogMax }, listening);
    });
  }

  /** Stops accepting; settles when the last answer has gone out, and whoever was about to ask has had a moment for it. */
  async close(): Promise<void> {
    // Not the HTTP server's own close: it cuts idle connections at once, and with them the requests that are on their way.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(this.#server, () => resolve()));
    this.connections.close();
    const idle = setTimeout(() => {
      this.#server.closeIdleConnections();
      this.connections.endUnused();
    }, limits.idleMs);
    await closed;
    clearTimeout(idle);
  }

  /** Ends at once, with all connections. */
  async end(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    // Each that waits takes memory, also one that is only to be refused: its answer would wait for those before it.
    if (this.connections.isFull(request.socket)) request.socket.destroy();
    else this.#answering.serve(request, response, continueAsked);
  }

  #broken({ code }: NodeJS.ErrnoException, socket: Socket): void {
    const { verdict, visit } = this.connections.broke(socket, code);
    if (verdict === "end") socket.destroy();
    if (verdict === "answer") this.#answering.broken(socket, code, visit);
  }
}
