import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { AdminConfig } from "../config/config.ts";
import { Fault, type FaultKind } from "../core/fault.ts";
import { brokenFault, safetyHeaders } from "./answer.ts";
import { BodyReader, type Held } from "./body.ts";
import type { Entered } from "./connections.ts";
import { Guard } from "./guard.ts";
import * as limits from "./limits.ts";
import { BoundedServer, type ListenOn, type Patience } from "./server.ts";

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
  /** By method and path, as in `GET /emulator`; one that takes GET takes HEAD as well. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
  /** Something failed that should not: a bug. */
  readonly error: (error: unknown) => void;
  /** How long a request may take to come, where not as `limits` says: a test can't wait that long. */
  readonly patience?: Patience;
}

/** A request while it is being served. */
interface Visit extends Held, Entered {
  whole: boolean;
}

export class AdminListener {
  readonly #options: AdminListenerOptions;
  readonly #routes: ReadonlyMap<string, AdminRoute>;
  readonly #guard = new Guard({ allowHosts: [], allowOrigins: [], apiKey: undefined });
  readonly #bodies = new BodyReader(adminBodyBytesMax, limits.bodiesMax * adminBodyBytesMax);
  readonly #server: BoundedServer<Visit>;

  constructor(options: AdminListenerOptions) {
    this.#options = options;
    this.#routes = new Map(Object.entries(options.routes));
    this.#server = new BoundedServer<Visit>(
      {
        serve: (request, response, continueAsked) => this.#serve(request, response, continueAsked),
        left: (visit) => this.#bodies.release(visit),
        broken: (socket, errorCode, visit) => this.#broken(socket, errorCode, visit),
        error: (error) => options.error(error),
      },
      options.patience,
    );
  }

  /**
   * Begins to listen, on its own port or on a socket that somebody else opened.
   * @throws Error when the address can't be had, with the system's code.
   */
  listen(on: ListenOn = this.#options.config): Promise<AddressInfo> {
    return this.#server.listen(on);
  }

  /** Ends at once: every request that came whole has its answer already. */
  close(): Promise<void> {
    return this.#server.end();
  }

  #serve(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    const visit: Visit = { request, response, requestBytes: 0, heldBytes: 0, whole: false, over: false };
    this.#server.connections.entered(visit);
    // A box without a battery clock doesn't know the date, and must not claim one (RFC 9110, 6.6.1).
    response.sendDate = false;
    response.on("finish", () => {
      this.#bodies.release(visit);
      this.#server.connections.finished(visit);
    });
    try {
      this.#guard.admit(request);
      const route = this.#routeOf(request);
      this.#bodies.read(
        request,
        visit,
        (pieces) => this.#answer(response, route, Buffer.concat(pieces).toString("utf8")),
        (fault) => this.#refuse(response, fault),
      );
      if (continueAsked) response.writeContinue();
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  #routeOf({ method, url }: IncomingMessage): AdminRoute {
    const [path = "/"] = (url ?? "/").split("?");
    // What HEAD is answered is what GET would be; its body is left out by Node.
    const route = this.#routes.get(`${method === "HEAD" ? "GET" : method} ${path}`);
    if (route !== undefined) return route;
    const names = [...this.#routes.keys()];
    const allow = names.filter((name) => name.endsWith(` ${path}`)).map((name) => name.slice(0, name.indexOf(" ")));
    if (allow.length === 0) {
      throw new Fault("route", `Cannot accept the request: there is no such path here: ask for ${names.join(" or ")}`);
    }
    throw new Fault("method", `Cannot accept the request: ${path} takes ${allow.join(" or ")}`, {
      allow: allow.flatMap((each) => (each === "GET" ? ["GET", "HEAD"] : [each])),
    });
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

  /** What came is no HTTP, or too slow or too large for it. */
  #broken(socket: Socket, errorCode: string | undefined, visit: Visit | undefined): void {
    if (visit !== undefined) this.#bodies.release(visit);
    const fault = brokenFault(errorCode);
    const text = errorText(fault.message);
    const head = [
      `HTTP/1.1 ${fault.httpStatus} ${STATUS_CODES[fault.httpStatus]}`,
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(text)}`,
      ...Object.entries(safetyHeaders).map(([name, value]) => `${name}: ${value}`),
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
  const headers = { "Content-Type": "application/json", "Content-Length": length, ...safetyHeaders, ...more };
  response.writeHead(status, headers).end(text);
}
