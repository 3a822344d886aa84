import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { Connections, type PendingRequest } from "./connections.ts";
import * as limits from "./limits.ts";
import type { ParseError } from "./parse-error.ts";

/**
 * An HTTP server within the limits of this room: how large headers may be, how long a request may take to arrive, how many connections
 * there may be, and what happens after a parse error. It doesn't know what is asked, nor who may ask.
 */

/** Where to listen: at an address, or with the handle of a socket that was opened elsewhere, which its holder hands over. */
export type ListenOn = { readonly host: string; readonly port: number } | { readonly holder: Socket };

/** How long a request may take to arrive, and how long its client may take nothing of the answer once the service ends. */
export interface RequestTimeouts {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly answerMs: number;
  readonly checkConnectionsMs: number;
}

/** What a listener does with requests. It reports each to `connections` when it starts and when its response was sent. */
export interface ServerCallbacks<R extends PendingRequest> {
  /** @param continueAsked The body follows once `writeContinue` was called. */
  onRequest(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void;
  /** A request's client closed the connection, or its side of it, before the answer went out; may be called twice. */
  onClientGone(request: R): void;
  /**
   * What was received is not HTTP, or too slow or too large: answers the request that was cut short by it, and where there is none the
   * bare connection, which it ends.
   */
  onParseError(socket: Socket, error: ParseError, cutShort: R | undefined): void;
  /** Something failed that should not: a bug. */
  onError(error: unknown): void;
}

export class BoundedServer<R extends PendingRequest> {
  readonly connections = new Connections<R>();
  readonly #callbacks: ServerCallbacks<R>;
  readonly #server: Server;
  readonly #timeouts: RequestTimeouts;

  /** @param changed Where not as `limits` says: a test can't wait that long. */
  constructor(callbacks: ServerCallbacks<R>, changed: Partial<RequestTimeouts> = {}) {
    const timeouts = { ...limits, ...changed };
    this.#timeouts = timeouts;
    this.#callbacks = callbacks;
    this.#server = createServer(
      {
        maxHeaderSize: limits.headersBytesMax,
        headersTimeout: timeouts.headersMs,
        requestTimeout: timeouts.requestMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: timeouts.checkConnectionsMs,
        noDelay: true,
        // A request without Host is answered by the guard with its own message; two of them become one that is not a name.
        requireHostHeader: false,
        joinDuplicateHeaders: true,
      },
      (request, response) => this.#serve(request, response, false),
    );
    this.#server.maxConnections = limits.connectionsMax;
    // Or Node ends our side with the client's. Its types leave the setting out.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on("connection", (socket: Socket) => this.connections.opened(socket, (gone) => callbacks.onClientGone(gone)));
    this.#server.on("checkContinue", (request, response) => this.#serve(request, response, true));
    this.#server.on("checkExpectation", (request, response) => this.#serve(request, response, false));
    // A server that isn't given other streams has sockets.
    this.#server.on("clientError", (error, socket) => this.#onClientError(error, socket as Socket));
  }

  /**
   * Begins to listen.
   * @throws Error when the address can't be had, with the system's code.
   */
  listen(on: ListenOn): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      const listening = () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => this.#callbacks.onError(error));
        // A server that listens on TCP has an address of this form.
        resolve(this.#server.address() as AddressInfo);
      };
      this.#server.once("error", reject);
      if ("holder" in on) this.#server.listen(on.holder, limits.backlogMax, listening);
      else this.#server.listen({ host: on.host, port: on.port, backlog: limits.backlogMax }, listening);
    });
  }

  /**
   * Stops accepting; settles when the last answer was sent, and requests that are on their way had a moment to arrive. Who takes nothing
   * of an answer for long is cut off.
   */
  async close(): Promise<void> {
    // Not the HTTP server's own close: it cuts idle connections at once, and with them the requests that are on their way.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(this.#server, () => resolve()));
    this.connections.close();
    const idle = setTimeout(() => {
      this.#server.closeIdleConnections();
      this.connections.destroyUnused();
    }, limits.idleMs);
    const { answerMs, checkConnectionsMs } = this.#timeouts;
    const answered = setInterval(() => this.connections.limitAnswers(answerMs), checkConnectionsMs);
    await closed;
    clearTimeout(idle);
    clearInterval(answered);
    // Now that there is nothing left which it could cut: it alone ends Node's own checks of connections, which go on for ever otherwise.
    this.#server.close();
  }

  /** Ends at once, with all connections. */
  async end(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    // What a read brought behind the last request that is taken.
    if (!this.connections.isEnding(request.socket)) this.#callbacks.onRequest(request, response, continueAsked);
  }

  #onClientError(error: ParseError, socket: Socket): void {
    const { action, cutShort } = this.connections.parseError(socket);
    if (action === "end") socket.destroy();
    if (action === "answer") this.#callbacks.onParseError(socket, error, cutShort);
  }
}
