import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, Server as NetServer, Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { addressesOf, hostOfAddresses } from "../core/address.ts";
import { codeOf } from "../core/error-code.ts";
import { Connections, type PendingRequest } from "./connections.ts";
import * as limits from "./limits.ts";
import type { ParseError } from "./parse-error.ts";

/**
 * An HTTP server within the limits of this room: how large headers may be, how long a request may take to arrive, how many connections
 * there may be, and what happens after a parse error. Routes, and who may ask, are its user's affair.
 */

/** A place to listen: a host, or the handles of sockets that were opened elsewhere, which their holders hand over. */
export type ListenOn = ListeningAt | { readonly holders: readonly Socket[] };

/** The address that a server is reached at. */
export interface ListeningAt {
  readonly host: string;
  readonly port: number;
}

/** A box without IPv6 has no `::1`. */
const isAbsent = (error: unknown) => ["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(codeOf(error) ?? "");

/** How long a request may take to arrive, and how long its client may take nothing of the answer once the service ends. */
export interface RequestTimeouts {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly answerMs: number;
  readonly checkConnectionsMs: number;
}

/** The user of the server. It reports each request to `connections` when it starts and when its response was sent. */
export interface ServerCallbacks<R extends PendingRequest> {
  /** @param continueAsked The body follows once `writeContinue` was called. */
  onRequest(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void;
  /** A request's client closed the connection, or its side of it, before the answer went out; may be called twice. */
  onClientGone(request: R): void;
  /**
   * Bytes came that are not HTTP, or a request that is too slow or too large: answers the request that was cut short, or, if there is none,
   * the bare connection, which it ends.
   */
  onParseError(socket: Socket, error: ParseError, cutShort: R | undefined): void;
  /** A bug: something failed that should not. */
  onError(error: unknown): void;
}

export class BoundedServer<R extends PendingRequest> {
  readonly connections = new Connections<R>();
  readonly #callbacks: ServerCallbacks<R>;
  readonly #timeouts: RequestTimeouts;
  /** A server for each address. */
  readonly #servers: Server[] = [];
  /** The ends of the connections from within this process, of which Node's servers know nothing. */
  readonly #within = new Set<Promise<void>>();

  /** @param changed Timeouts other than those of `limits`, for a test, which can't wait that long. */
  constructor(callbacks: ServerCallbacks<R>, changed: Partial<RequestTimeouts> = {}) {
    this.#timeouts = { ...limits, ...changed };
    this.#callbacks = callbacks;
  }

  /**
   * Begins to listen, at every address of the host that this box has.
   * @throws Error if an address can't be had, with the system's code; then none is listened on.
   */
  async listen(on: ListenOn): Promise<ListeningAt> {
    try {
      if ("host" in on) return await this.#listenAt(on);
      const opened = await Promise.all(on.holders.map((each) => this.#open(each)));
      return { host: hostOfAddresses(opened.map(({ address }) => address)), port: opened[0]?.port ?? 0 };
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  /**
   * A connection from within this process, which needs no network, and has no address.
   * @throws Error if nothing listens any more.
   */
  connect(): Duplex {
    const [server] = this.#servers;
    if (server === undefined) throw Object.assign(new Error("nothing listens any more"), { code: "ECONNREFUSED" });
    const [near, far] = duplexPair();
    near.once("close", () => far.destroy());
    far.once("close", () => {
      if (!far.writableFinished) near.destroy(new Error("the connection was closed"));
    });
    // A socket's: who is at the near end takes what comes.
    Object.assign(far, { setTimeout: () => far });
    const closed = new Promise<void>((resolve) => far.once("close", () => resolve())).then(() => {
      this.#within.delete(closed);
    });
    this.#within.add(closed);
    server.emit("connection", far);
    return near;
  }

  /**
   * Stops accepting; settles once the last answer was sent, and requests on their way had a moment to arrive. A client that takes nothing
   * of an answer for long is cut off.
   */
  async close(): Promise<void> {
    const servers = this.#servers.splice(0);
    // The HTTP server's own close would cut idle connections at once, and with them requests on their way.
    const closed = Promise.all(
      servers.map((server) => new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))),
    );
    this.connections.close();
    const closeIdle = () => {
      for (const server of servers) server.closeIdleConnections();
      this.connections.destroyUnused();
    };
    // A process that stood still meanwhile first reads what has come.
    const idle = setTimeout(() => setImmediate(closeIdle), limits.idleMs);
    const { answerMs, checkConnectionsMs } = this.#timeouts;
    const answered = setInterval(() => this.connections.limitAnswers(answerMs), checkConnectionsMs);
    await Promise.all([closed, ...this.#within]);
    clearTimeout(idle);
    clearInterval(answered);
    // Nothing is left by now that the HTTP server's close could cut. Only it ends Node's own checks of connections, which go on for ever
    // otherwise.
    for (const server of servers) server.close();
  }

  /** Ends at once, with all connections. */
  async end(): Promise<void> {
    await Promise.all(
      this.#servers.splice(0).map(async (server) => {
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        server.closeAllConnections();
        await closed;
      }),
    );
  }

  /** If any port will do, all addresses get the same one. */
  async #listenAt({ host, port }: ListeningAt): Promise<ListeningAt> {
    let opened: number | undefined;
    let absent: unknown;
    for (const address of addressesOf(host)) {
      try {
        ({ port: opened } = await this.#open({ host: address, port: opened ?? port }));
      } catch (error) {
        if (!isAbsent(error)) throw error;
        absent = error;
      }
    }
    if (opened === undefined) throw absent;
    return { host, port: opened };
  }

  #open(on: Socket | ListeningAt): Promise<AddressInfo> {
    const server = this.#newServer();
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      const listening = () => {
        server.off("error", reject);
        server.on("error", (error) => this.#callbacks.onError(error));
        // A server that listens on TCP has an address of this form.
        resolve(server.address() as AddressInfo);
      };
      server.once("error", reject);
      if (on instanceof Socket) server.listen(on, limits.backlogMax, listening);
      else server.listen({ host: on.host, port: on.port, backlog: limits.backlogMax }, listening);
    });
  }

  #newServer(): Server {
    const { headersMs, requestMs, checkConnectionsMs } = this.#timeouts;
    const server = createServer(
      {
        maxHeaderSize: limits.headersBytesMax,
        headersTimeout: headersMs,
        requestTimeout: requestMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: checkConnectionsMs,
        noDelay: true,
        // A request without Host is answered by the guard with its own message; two of them become one that is not a name.
        requireHostHeader: false,
        joinDuplicateHeaders: true,
      },
      (request, response) => this.#serve(request, response, false),
    );
    server.maxConnections = limits.connectionsMax;
    // Without this, Node ends our side with the client's. Its types leave the setting out.
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on("connection", (socket: Socket) => this.connections.opened(socket, (gone) => this.#callbacks.onClientGone(gone)));
    server.on("checkContinue", (request, response) => this.#serve(request, response, true));
    server.on("checkExpectation", (request, response) => this.#serve(request, response, false));
    // A server that isn't given other streams has sockets.
    server.on("clientError", (error, socket) => this.#onClientError(error, socket as Socket));
    return server;
  }

  #serve(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    // A read may bring requests after the last one that is taken.
    if (!this.connections.isEnding(request.socket)) this.#callbacks.onRequest(request, response, continueAsked);
  }

  #onClientError(error: ParseError, socket: Socket): void {
    const { action, cutShort } = this.connections.parseError(socket);
    if (action === "end") socket.destroy();
    if (action === "answer") this.#callbacks.onParseError(socket, error, cutShort);
  }
}
