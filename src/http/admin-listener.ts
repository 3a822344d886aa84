import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { AdminConfig } from "../config/config.ts";
import { Fault } from "../core/fault.ts";
import { quotedName } from "../core/log-text.ts";
import { BodyReader, type BodyState } from "./body.ts";
import type { PendingRequest } from "./connections.ts";
import { Guard } from "./guard.ts";
import * as limits from "./limits.ts";
import { parseErrorFault, safetyHeaders } from "./response-writer.ts";
import { BoundedServer, type ListenOn, type RequestTimeouts } from "./server.ts";

/**
 * The admin port: JSON for operators, beside the services and under the same guard, limits and timeouts. A page of another site must
 * not control a till's emulator, any more than its terminal. It knows paths and text, and not what is behind them.
 */

/** Bytes of a request's body: requests to this port are short. */
export const adminBodyBytesMax = 64 * 1024;

/** What a route answers. */
export interface AdminAnswer {
  readonly status: number;
  readonly text: string;
  /** Its media type, where not JSON. */
  readonly contentType?: string;
}

/** Answers one route, from the request's body as text. */
export type AdminRoute = (body: string) => AdminAnswer | Promise<AdminAnswer>;

export interface AdminListenerOptions {
  readonly config: AdminConfig;
  /** By method and path, as in `GET /emulator`; one that takes GET takes HEAD as well. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
  /** Something failed that should not: a bug. */
  readonly error: (error: unknown) => void;
  /** How long a request may take to arrive, where not as `limits` says: a test can't wait that long. */
  readonly timeouts?: RequestTimeouts;
}

/** A request while it is being served. */
interface AdminRequest extends BodyState, PendingRequest {
  bodyComplete: boolean;
}

export class AdminListener {
  readonly #options: AdminListenerOptions;
  #routes: ReadonlyMap<string, AdminRoute>;
  readonly #guard = new Guard({ service: undefined, allowHosts: [], allowOrigins: [], apiKey: undefined });
  readonly #bodies = new BodyReader(adminBodyBytesMax, limits.bodiesMax * adminBodyBytesMax);
  readonly #server: BoundedServer<AdminRequest>;

  constructor(options: AdminListenerOptions) {
    this.#options = options;
    this.#routes = new Map(Object.entries(options.routes));
    this.#server = new BoundedServer<AdminRequest>(
      {
        onRequest: (request, response, continueAsked) => this.#onRequest(request, response, continueAsked),
        onClientGone: (pending) => this.#bodies.release(pending),
        onParseError: (socket, errorCode, pending) => this.#onParseError(socket, errorCode, pending),
        onError: (error) => options.error(error),
      },
      options.timeouts,
    );
  }

  /**
   * Begins to listen, on its own port or on a socket that somebody else opened.
   * @throws Error when the address can't be had, with the system's code.
   */
  listen(on: ListenOn = this.#options.config): Promise<AddressInfo> {
    return this.#server.listen(on);
  }

  /** Answers by these routes from now on. */
  replace(routes: AdminListenerOptions["routes"]): void {
    this.#routes = new Map(Object.entries(routes));
  }

  /** Ends at once: every complete request has its answer already, or asks for what may be missed once. */
  close(): Promise<void> {
    return this.#server.end();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    const pending: AdminRequest = { request, response, requestBytes: 0, heldBytes: 0, bodyComplete: false, bodyDone: false };
    this.#server.connections.requestStarted(pending);
    // A box without a battery clock doesn't know the date, and must not claim one (RFC 9110, 6.6.1).
    response.sendDate = false;
    response.on("finish", () => {
      this.#bodies.release(pending);
      this.#server.connections.responseFinished(pending);
    });
    try {
      this.#guard.admit(request);
      const route = this.#routeOf(request);
      this.#bodies.read(
        request,
        pending,
        (pieces) => void this.#answer(response, route, Buffer.concat(pieces).toString("utf8")),
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
      throw new Fault(
        "route",
        `Cannot accept the request: this port has no path ${quotedName(path)}: use ${names.join(" or ")}`,
      );
    }
    throw new Fault("method", `Cannot accept the request: ${path} takes ${allow.join(" or ")}, not ${method}`, {
      allow: allow.flatMap((each) => (each === "GET" ? ["GET", "HEAD"] : [each])),
    });
  }

  async #answer(response: ServerResponse, route: AdminRoute, body: string): Promise<void> {
    try {
      const answer = route(body);
      const { status, text, contentType } = answer instanceof Promise ? await answer : answer;
      write(response, status, text, contentType === undefined ? {} : { "Content-Type": contentType });
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  #refuse(response: ServerResponse, error: unknown): void {
    if (response.headersSent) return;
    if (error instanceof Fault) {
      const { allow, retryAfterS } = error.details;
      write(response, error.httpStatus, errorText(error.message), {
        ...(allow === undefined ? {} : { Allow: allow.join(", ") }),
        ...(retryAfterS === undefined ? {} : { "Retry-After": String(retryAfterS) }),
      });
    } else {
      this.#options.error(error);
      write(response, 500, errorText("Cannot answer: internal error in posline: please report it"), {});
    }
  }

  /** What was received is not HTTP, or too slow or too large. */
  #onParseError(socket: Socket, errorCode: string | undefined, pending: AdminRequest | undefined): void {
    if (pending !== undefined) this.#bodies.release(pending);
    const fault = parseErrorFault(errorCode);
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

function errorText(message: string): string {
  return `${JSON.stringify({ error: message })}\n`;
}

function write(response: ServerResponse, status: number, text: string, more: Readonly<Record<string, string>>): void {
  const length = String(Buffer.byteLength(text));
  const headers = { "Content-Type": "application/json", "Content-Length": length, ...safetyHeaders, ...more };
  response.writeHead(status, headers).end(text);
}
