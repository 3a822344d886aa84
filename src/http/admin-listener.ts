import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { AdminConfig } from "../config/config.ts";
import { Fault, type FaultKind } from "../core/fault.ts";
import { brokenFault } from "./answer.ts";
import { BodyReader, type Held } from "./body.ts";
import { Guard } from "./guard.ts";
import * as limits from "./limits.ts";

/**
 * The admin port: JSON for whoever looks after posline, beside the services and under the same guard, limits and patience. A page of
 * another site must not turn a till's emulator, any more than its terminal. It knows paths and text, and not what is behind them.
 */

/** Bytes of a request's body: what is asked here are a few words. */
export const adminBodyBytesMax = 64 * 1024;

/** What a route answers. */
export interface AdminAnswer {
  readonly status: number;
  /** JSON. */
  readonly text: string;
}

/** Answers one route, from the request's body as text. */
export type AdminRoute = (body: string) => AdminAnswer;

export interface AdminListenerOptions {
  readonly config: AdminConfig;
  /** By method and path, as in `GET /emulator`. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
  /** Something failed that should not: a bug. */
  readonly error: (error: unknown) => void;
  /** How long a request may take to come, where not as `limits` says: a test can't wait that long. */
  readonly patience?: { readonly headersMs: number; readonly requestMs: number; readonly checkConnectionsMs: number };
}

export class AdminListener {
  readonly #options: AdminListenerOptions;
  readonly #routes: ReadonlyMap<string, AdminRoute>;
  readonly #guard = new Guard({ allowHosts: [], allowOrigins: [], apiKey: undefined });
  readonly #bodies = new BodyReader(adminBodyBytesMax, limits.bodiesMax * adminBodyBytesMax);
  readonly #server: Server;
  /** Connections that were told that they are broken. */
  readonly #told = new WeakSet<Socket>();
  /** The request that came last on each connection. */
  readonly #last = new WeakMap<Socket, { readonly request: IncomingMessage; readonly response: ServerResponse }>();

  constructor(options: AdminListenerOptions) {
    this.#options = options;
    this.#routes = new Map(Object.entries(options.routes));
    const { patience = limits } = options;
    this.#server = createServer(
      {
        maxHeaderSize: limits.headersBytesMax,
        headersTimeout: patience.headersMs,
        requestTimeout: patience.requestMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: patience.checkConnectionsMs,
        noDelay: true,
        // The guard answers both: a request without Host, and one with two, which become one that is no name.
        requireHostHeader: false,
        joinDuplicateHeaders: true,
      },
      (request, response) => this.#serve(request, response),
    );
    this.#server.maxConnections = limits.connectionsMax;
    // A server that isn't given other streams has sockets.
    this.#server.on("clientError", (error, socket) => this.#broken(error, socket as Socket));
  }

  /**
   * Begins to listen.
   * @throws Error when the address can't be had, with the system's code.
   */
  listen(): Promise<AddressInfo> {
    const { host, port } = this.#options.config;
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", this.#options.error);
        // A server that listens on TCP has an address of this form.
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Ends at once: every request that came whole has its answer already. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.#last.set(request.socket, { request, response });
    const held: Held = { requestBytes: 0, heldBytes: 0, whole: false, over: false };
    // A box without a battery clock doesn't know the date, and must not claim one (RFC 9110, 6.6.1).
    response.sendDate = false;
    response.on("close", () => this.#bodies.release(held));
    try {
      this.#guard.admit(request);
      const route = this.#routeOf(request);
      this.#bodies.read(
        request,
        held,
        (pieces) => this.#answer(response, route, Buffer.concat(pieces).toString("utf8")),
        (fault) => this.#refuse(response, fault),
      );
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  #routeOf(request: IncomingMessage): AdminRoute {
    const [path = "/"] = (request.url ?? "/").split("?");
    const route = this.#routes.get(`${request.method} ${path}`);
    if (route !== undefined) return route;
    const names = [...this.#routes.keys()];
    const allow = names.filter((name) => name.endsWith(` ${path}`)).map((name) => name.slice(0, name.indexOf(" ")));
    if (allow.length === 0) {
      throw new Fault("route", `Cannot accept the request: there is no such path here: ask for ${names.join(" or ")}`);
    }
    throw new Fault("method", `Cannot accept the request: ${path} takes ${allow.join(" or ")}`, { allow });
  }

  #answer(response: ServerResponse, route: AdminRoute, body: string): void {
    try {
      const { status, text } = route(body);
      write(response, status, text, {});
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  #refuse(response: ServerResponse, error: unknown): void {
    if (response.headersSent) return;
    if (error instanceof Fault) {
      const { allow, retryAfterS } = error.details;
      write(response, error.httpStatus, errorText(refusals[error.kind] ?? error.message), {
        ...(allow === undefined ? {} : { Allow: allow.join(", ") }),
        ...(retryAfterS === undefined ? {} : { "Retry-After": String(retryAfterS) }),
      });
    } else {
      this.#options.error(error);
      write(response, 500, errorText("Cannot answer: posline failed within: please report it"), {});
    }
  }

  /** What came is no HTTP, or too slow or too large for it. What came whole before it on its connection has its answer. */
  #broken(error: NodeJS.ErrnoException, socket: Socket): void {
    if (this.#told.has(socket)) {
      if (error.code?.startsWith("HPE_") !== true) socket.destroy();
      return;
    }
    if (!socket.writable || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    this.#told.add(socket);
    setTimeout(() => socket.destroy(), limits.lingerMs).unref();
    const last = this.#last.get(socket);
    // It was refused by its headers already: a second answer would be taken for that of another request.
    if (last?.response.headersSent === true && !last.request.complete) return;
    const fault = brokenFault(error.code);
    const text = errorText(fault.message);
    const head = [
      `HTTP/1.1 ${fault.httpStatus} ${STATUS_CODES[fault.httpStatus]}`,
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(text)}`,
      "Connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
  }
}

/** Where the guard's advice is for services: this port has no settings of who may ask. */
const refusals: Readonly<Partial<Record<FaultKind, string>>> = {
  host: "Cannot accept the request: its Host is no name of this port: ask for localhost, or for the address",
  origin: "Cannot accept the request: it comes from a web page, and none is answered here: ask from a program",
};

function errorText(message: string): string {
  return `${JSON.stringify({ error: message })}\n`;
}

function write(response: ServerResponse, status: number, text: string, more: Readonly<Record<string, string>>): void {
  const length = String(Buffer.byteLength(text));
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": length, ...more }).end(text);
}
